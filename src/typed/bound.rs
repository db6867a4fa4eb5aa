//! Typed functions as functions over JSON, bound to the program's state at the start.

use std::any::TypeId;
use std::fmt;
use std::sync::{Arc, OnceLock};

use futures_util::FutureExt;
#[cfg(feature = "schemars")]
use greenroom_actors::agent::tool::{ToolContext, ToolError, ToolFunction};
use greenroom_actors::function::{StepContext, StepError, StepFunction};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{CallContext, FromState, State, TypedFunction};

/// Finds the state of one function; an error says what is missing.
pub(crate) struct Binding {
    /// The function, as problems name it.
    of: String,
    bind: Bind,
}

type Bind = Box<dyn FnOnce(&State) -> Result<(), String> + Send + Sync>;

impl Binding {
    /// Binds the function, or returns the problem.
    pub(crate) fn bind(self, state: &State) -> Result<(), String> {
        let Self { of, bind } = self;
        bind(state).map_err(|missing| format!("{of} {missing}"))
    }
}

impl fmt::Debug for Binding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Binding({})", self.of)
    }
}

/// A typed function that a step carries until its workflow is registered.
#[derive(Clone)]
pub(crate) struct Carried {
    pub(crate) name: String,
    make: Make,
    /// Type of a function that captures nothing: two of the same type are the same.
    pub(crate) plain: Option<TypeId>,
}

/// Makes a function over JSON of a name.
type Make = Arc<dyn Fn(&str) -> (StepFunction, Binding) + Send + Sync>;

impl Carried {
    pub(crate) fn new<F, Shape>(name: String, function: F) -> Self
    where
        F: TypedFunction<StepContext, Shape>,
    {
        let plain = (size_of::<F>() == 0).then(TypeId::of::<F>);
        Self { name, make: Arc::new(move |name| step_function(name, function.clone())), plain }
    }

    pub(crate) fn make(&self) -> (StepFunction, Binding) {
        (self.make)(&self.name)
    }
}

impl fmt::Debug for Carried {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Carried({})", self.name)
    }
}

/// Returns a function over JSON, and the binding to its state. A `data` that does not fit the input
/// is a terminal failure.
pub(crate) fn step_function<F, Shape>(name: &str, function: F) -> (StepFunction, Binding)
where
    F: TypedFunction<StepContext, Shape>,
{
    let of = format!("function {name}");
    let (bound, binding) = unbound::<StepContext, F, Shape>(of.clone());
    let of: Arc<str> = of.into();
    let function: StepFunction = Arc::new(move |step: StepContext| {
        let (bound, function, of) = (Arc::clone(&bound), function.clone(), Arc::clone(&of));
        async move {
            let state = found(&bound, &of).map_err(StepError::terminal)?;
            let input = read("data", &of, &step.data).map_err(StepError::terminal)?;
            let output = function.call(state, input, step).await?;
            Ok(written("output", &of, &output).map_err(StepError::terminal)?.into())
        }
        .boxed()
    });
    (function, binding)
}

/// Returns a tool's function over JSON, and the binding to its state.
#[cfg(feature = "schemars")]
pub(crate) fn tool_function<F, Shape>(name: &str, function: F) -> (ToolFunction, Binding)
where
    F: TypedFunction<ToolContext, Shape>,
{
    let of = format!("tool {name}");
    let (bound, binding) = unbound::<ToolContext, F, Shape>(of.clone());
    let of: Arc<str> = of.into();
    let function: ToolFunction = Arc::new(move |arguments: Value, context: ToolContext| {
        let (bound, function, of) = (Arc::clone(&bound), function.clone(), Arc::clone(&of));
        async move {
            let state = found(&bound, &of)?;
            let input = read("arguments", &of, &arguments)?;
            let output = function.call(state, input, context).await?;
            written("result", &of, &output).map_err(ToolError::new)
        }
        .boxed()
    });
    (function, binding)
}

fn unbound<C, F, Shape>(of: String) -> (Arc<OnceLock<F::State>>, Binding)
where
    C: CallContext,
    F: TypedFunction<C, Shape>,
{
    let bound = Arc::new(OnceLock::new());
    let target = Arc::clone(&bound);
    let bind = Box::new(move |state: &State| {
        let found = F::State::from_state(state)?;
        target.get_or_init(|| found);
        Ok(())
    });
    (bound, Binding { of, bind })
}

/// Returns the state; a server binds all its functions before it starts.
fn found<S: FromState>(bound: &OnceLock<S>, of: &str) -> Result<S, String> {
    bound.get().cloned().ok_or_else(|| format!("{of} is called before the start of its server"))
}

/// Reads a value; an error names the function and the field.
fn read<T: DeserializeOwned>(what: &str, of: &str, value: &Value) -> Result<T, String> {
    serde_path_to_error::deserialize(value).map_err(|error| {
        let (place, inner) = (error.path().to_string(), error.inner());
        match place.as_str() {
            "." => format!("{what} of {of}: {inner}"),
            place => format!("{what} of {of}: {place}: {inner}"),
        }
    })
}

fn written<T: Serialize>(what: &str, of: &str, value: &T) -> Result<Value, String> {
    serde_json::to_value(value).map_err(|error| format!("{what} of {of}: {error}"))
}
