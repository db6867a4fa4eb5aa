//! Closures in place of expressions.
//!
//! Where a builder takes a condition, it takes an expression or a closure over a [`Scope`]; where it
//! takes a value, it takes JSON whose strings are expressions, or such a closure:
//!
//! ```
//! use greenroom::builder::{Block, Scope, Step, Suspend, Workflow};
//! use serde::Deserialize;
//! use serde_json::json;
//!
//! #[derive(Deserialize)]
//! struct Priced {
//!     lines: Vec<String>,
//!     cents: u64,
//! }
//!
//! let reserve = Block::new("reserve").step(Step::run("reserve-line", "reserve"));
//! let order = Workflow::new("order")
//!     .step(
//!         Step::run("price", "price").suspend(
//!             Suspend::when(|cx: &Scope| Ok(cx.input::<u64>()? > 100))
//!                 .payload(|cx: &Scope| Ok(json!({ "count": cx.input::<u64>()? }))),
//!         ),
//!     )
//!     .step(Step::for_each(
//!         "reserved",
//!         |cx: &Scope| Ok(cx.output::<Priced>("price")?.lines),
//!         reserve,
//!     ))
//!     .step(
//!         Step::workflow("pay", "payment")
//!             .input(|cx: &Scope| Ok(cx.output::<Priced>("price")?.cents)),
//!     );
//! assert!(order.compile().is_ok());
//! ```
//!
//! A closure is evaluated where an expression would be: its result is recorded before anything
//! follows from it, and is not asked for again, also after a restart. It must not wait, and must
//! have no effect but its result: a decision that was not recorded is made again. A closure that
//! returns an error or panics fails its step as an expression does, with the kind `expression` or that
//! of [`StepError::kind`], which `retry` and `on_error` can read; one that is
//! [terminal](StepError::terminal) is not retried. Executions that an earlier process started call the
//! closures that this one has under the same ids of workflow and step.

use std::any::Any;
use std::fmt;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use greenroom_actors::domain::expression::{self, ClosureError, Stated, source_of_closure};
use greenroom_actors::domain::failure::ErrorName;
use greenroom_actors::function::{StepError, read_as};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use self::sealed::Give;
use crate::config::milliseconds;

/// Values that a closure can read, those of expressions.
pub struct Scope(expression::Scope);

impl Scope {
    /// Returns the output of the previous step, in a loop that of its last round.
    pub fn data<T: DeserializeOwned>(&self) -> Result<T, StepError> {
        self.named("data")
    }

    /// Returns the input of the execution.
    pub fn input<T: DeserializeOwned>(&self) -> Result<T, StepError> {
        self.named("input")
    }

    /// Returns the operation context, with `user`, `userId` and `conversationId` where known.
    pub fn context<T: DeserializeOwned>(&self) -> Result<T, StepError> {
        self.named("context")
    }

    /// Returns the item of the innermost `for_each`.
    pub fn item<T: DeserializeOwned>(&self) -> Result<T, StepError> {
        self.named("item")
    }

    /// Returns the number of the innermost iteration, from 0 on.
    pub fn index(&self) -> Result<usize, StepError> {
        self.named("index")
    }

    /// Returns the data of the resume, if the step was resumed.
    pub fn resume<T: DeserializeOwned>(&self) -> Result<Option<T>, StepError> {
        self.0.value("resume").map(|value| read_as("resume", value)).transpose()
    }

    /// Returns the caller of the resume (`id`, `verified`), if the step was resumed and the caller is
    /// known; `None` after a deadline.
    pub fn resumed_by<T: DeserializeOwned>(&self) -> Result<Option<T>, StepError> {
        self.named("resumed_by")
    }

    /// Returns, in a compensation, why the execution ends: `kind`, `status`, `message`, `stepId` and
    /// `attempt`. `None` in any other step.
    pub fn error<T: DeserializeOwned>(&self) -> Result<Option<T>, StepError> {
        self.named("error")
    }

    /// Returns the output of an earlier step, by its id.
    pub fn output<T: DeserializeOwned>(&self, step: &str) -> Result<T, StepError> {
        let found = self.output_if_any(step)?;
        found.ok_or_else(|| StepError::terminal(format!("there is no output of step {step} here")))
    }

    /// Returns the output of an earlier step; `None` if the step was not run or failed.
    pub fn output_if_any<T: DeserializeOwned>(&self, step: &str) -> Result<Option<T>, StepError> {
        let output = self.0.value_by_key("steps", step);
        output.map(|value| read_as(&format!("steps.{step}"), value)).transpose()
    }

    /// Returns the execution: `id`, `workflowId`, `startedAt` and what else expressions read.
    pub fn execution<T: DeserializeOwned>(&self) -> Result<T, StepError> {
        self.named("execution")
    }

    fn named<T: DeserializeOwned>(&self, name: &str) -> Result<T, StepError> {
        match (self.0.value(name), name) {
            (Some(value), _) => read_as(name, value),
            (None, "item" | "index") => Err(StepError::terminal(format!(
                "there is no {name} here: the step is in no for_each"
            ))),
            (None, _) => read_as(name, &Value::Null),
        }
    }
}

impl fmt::Debug for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A closure of a workflow under construction. Two are equal if one is a clone of the other.
#[derive(Clone)]
pub struct Closure(expression::Closure);

impl Closure {
    fn new<F, T>(compute: F) -> Self
    where
        F: Fn(&Scope) -> Result<T, StepError> + Send + Sync + 'static,
        T: Serialize,
    {
        Self(Arc::new(move |scope| {
            // also what writes and drops the value is code of the program
            let compute = || {
                let value = compute(&Scope(scope.clone())).map_err(|error| stated(&error))?;
                serde_json::to_value(value).map_err(|error| error.to_string().into())
            };
            let computed = catch_unwind(AssertUnwindSafe(compute));
            computed.unwrap_or_else(|panic| Err(format!("panicked: {}", text_of(&*panic)).into()))
        }))
    }

    pub(crate) fn code(&self) -> expression::Closure {
        Arc::clone(&self.0)
    }
}

impl PartialEq for Closure {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl fmt::Debug for Closure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Closure")
    }
}

/// Returns an error with what it states.
fn stated(error: &StepError) -> ClosureError {
    let stated = Stated {
        name: error.named_kind().and_then(ErrorName::new),
        is_terminal: error.is_terminal(),
        retry_after_ms: error.requested_delay().map(milliseconds),
    };
    ClosureError { message: error.to_string(), stated }
}

fn text_of(panic: &(dyn Any + Send)) -> &str {
    let owned = panic.downcast_ref::<String>().map(String::as_str);
    owned.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("without a message")
}

/// A condition or a value, as it was given.
#[derive(Debug, Clone, PartialEq)]
pub enum Given<T> {
    /// In the language of expressions.
    Written(T),
    Closure(Closure),
}

impl<T: From<String>> Given<T> {
    /// Returns the written form, in which a closure has this name, and the closure.
    pub(super) fn named(self, name: &str) -> (T, Option<(String, Closure)>) {
        match self {
            Self::Written(written) => (written, None),
            Self::Closure(closure) => {
                (source_of_closure(name).into(), Some((name.to_owned(), closure)))
            }
        }
    }
}

/// Shape of what is written in the language of expressions.
#[derive(Debug)]
pub struct Written;

/// Shape of a closure over a [`Scope`], with the type that it returns.
#[derive(Debug)]
pub struct Computed<T>(PhantomData<T>);

/// Conversions that only this library implements.
mod sealed {
    use super::Given;

    /// Conversion of what is given as `Shape` in place of a written `T`.
    pub trait Give<T, Shape> {
        fn given(self) -> Given<T>;
    }
}

impl<S: Into<String>> Give<String, Written> for S {
    fn given(self) -> Given<String> {
        Given::Written(self.into())
    }
}

impl Give<Value, Written> for Value {
    fn given(self) -> Given<Value> {
        Given::Written(self)
    }
}

impl<F, T, W> Give<W, Computed<T>> for F
where
    F: Fn(&Scope) -> Result<T, StepError> + Send + Sync + 'static,
    T: Serialize,
{
    fn given(self) -> Given<W> {
        Given::Closure(Closure::new(self))
    }
}

/// A condition: an expression, or a closure as `|cx: &Scope| Ok(cx.data::<u64>()? > 5)`. `Shape` is
/// inferred. Only this library implements it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a condition",
    note = "a condition is a text, or a closure `|cx: &Scope| -> Result<bool, StepError>`, whose \
            argument has its type written out"
)]
pub trait Condition<Shape>: Give<String, Shape> {}

impl<S: Into<String>> Condition<Written> for S {}

impl<F> Condition<Computed<bool>> for F where
    F: Fn(&Scope) -> Result<bool, StepError> + Send + Sync + 'static
{
}

/// A point in time: an expression, or a closure as `|cx: &Scope| cx.input::<String>()`, whose value is
/// an ISO 8601 text with a zone, or milliseconds since 1970. `Shape` is inferred. Only this library
/// implements it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a point in time",
    note = "a point in time is a text, or a closure `|cx: &Scope| -> Result<T, StepError>`, whose \
            argument has its type written out and whose `T` implements `Serialize`"
)]
pub trait PointInTime<Shape>: Give<String, Shape> {}

impl<S: Into<String>> PointInTime<Written> for S {}

impl<F, T> PointInTime<Computed<T>> for F
where
    F: Fn(&Scope) -> Result<T, StepError> + Send + Sync + 'static,
    T: Serialize,
{
}

/// A value: JSON whose strings are expressions, or a closure as `|cx: &Scope| cx.data::<Order>()`.
/// `Shape` is inferred. Only this library implements it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a value",
    note = "a value is a `serde_json::Value` whose strings are expressions, or a closure \
            `|cx: &Scope| -> Result<T, StepError>`, whose argument has its type written out and \
            whose `T` implements `Serialize`"
)]
pub trait Computation<Shape>: Give<Value, Shape> {}

impl Computation<Written> for Value {}

impl<F, T> Computation<Computed<T>> for F
where
    F: Fn(&Scope) -> Result<T, StepError> + Send + Sync + 'static,
    T: Serialize,
{
}

#[cfg(test)]
mod tests;
