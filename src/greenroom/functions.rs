//! Functions of steps, and the data that they share.

use std::sync::Arc;

use greenroom_actors::function::{StepContext, StepError, StepFunction, StepOutcome};

use super::Greenroom;
use crate::threads::blocking;
use crate::typed::{Carried, TypedFunction, step_function};

impl Greenroom {
    /// Registers a function that steps can `run`. It shares its thread with other executions:
    /// blocking work belongs in a [`blocking_function`](Self::blocking_function). A panic fails the
    /// step. [`call`](Self::call) registers functions over types.
    ///
    /// ```
    /// use greenroom::Greenroom;
    /// use greenroom::builder::{Step, Workflow};
    /// use greenroom::step::{StepContext, StepError, StepOutcome};
    /// use serde_json::json;
    ///
    /// /// Suspends, and returns the answer.
    /// async fn confirm(step: StepContext) -> Result<StepOutcome, StepError> {
    ///     Ok(match step.resume_as::<bool>()? {
    ///         Some(yes) => json!({ "confirmed": yes }).into(),
    ///         None => StepOutcome::suspended("Really?"),
    ///     })
    /// }
    ///
    /// let server = Greenroom::new()
    ///     .function("confirm", confirm)
    ///     .workflow(Workflow::new("sure").step(Step::run("confirm", "confirm")));
    /// # drop(server);
    /// ```
    #[must_use]
    pub fn function<F, R>(mut self, name: &str, function: F) -> Self
    where
        F: Fn(StepContext) -> R + Send + Sync + 'static,
        R: Future<Output = Result<StepOutcome, StepError>> + Send + 'static,
    {
        let function = Arc::new(move |step| -> futures_util::future::BoxFuture<'static, _> {
            Box::pin(function(step))
        });
        self.add_function(name, function);
        self
    }

    /// Registers a function over types that steps can `run`: its input is read from the step's
    /// `data`, its result is the output. An input that does not fit is a terminal failure, which
    /// names the field. See [`crate::typed`] for the arguments.
    ///
    /// ```
    /// use greenroom::Greenroom;
    /// use greenroom::step::StepError;
    /// use serde::Deserialize;
    ///
    /// #[derive(Deserialize)]
    /// struct Line {
    ///     cents: u64,
    ///     count: u64,
    /// }
    ///
    /// async fn total(lines: Vec<Line>) -> Result<u64, StepError> {
    ///     Ok(lines.iter().map(|line| line.cents * line.count).sum())
    /// }
    ///
    /// let server = Greenroom::new().call("total", total);
    /// # drop(server);
    /// ```
    #[must_use]
    pub fn call<F, Shape>(mut self, name: &str, function: F) -> Self
    where
        F: TypedFunction<StepContext, Shape>,
    {
        let (function, binding) = step_function(name, function);
        self.bindings.push(binding);
        self.add_function(name, function);
        self
    }

    /// Registers a function that blocks its thread, for example in a calculation or a file. It runs
    /// on a thread for blocking work, and a panic fails the step. A cancel or a timeout of the step
    /// does not stop it: it has to look at [`StepContext::cancellation`] if it takes long.
    ///
    /// ```
    /// use greenroom::Greenroom;
    ///
    /// let server = Greenroom::new().blocking_function("size", |step| {
    ///     let path: String = step.data_as()?;
    ///     Ok(serde_json::json!(std::fs::metadata(path)?.len()).into())
    /// });
    /// # drop(server);
    /// ```
    #[must_use]
    pub fn blocking_function<F>(self, name: &str, function: F) -> Self
    where
        F: Fn(&StepContext) -> Result<StepOutcome, StepError> + Send + Sync + 'static,
    {
        let function = Arc::new(function);
        self.function(name, move |step| {
            let function = Arc::clone(&function);
            async move { blocking(move || function(&step)).await? }
        })
    }

    /// Shares a value with functions and tools, which take it as a [`Data`](crate::typed::Data)
    /// argument. One of each type can be registered, before or after the functions.
    ///
    /// ```
    /// use greenroom::Greenroom;
    /// use greenroom::step::StepError;
    /// use greenroom::typed::Data;
    ///
    /// struct Prices {
    ///     lamp: u64,
    /// }
    ///
    /// async fn price(Data(prices): Data<Prices>, count: u64) -> Result<u64, StepError> {
    ///     Ok(prices.lamp * count)
    /// }
    ///
    /// let server = Greenroom::new().data(Prices { lamp: 40 }).call("price", price);
    /// # drop(server);
    /// ```
    #[must_use]
    pub fn data<T: Send + Sync + 'static>(self, value: T) -> Self {
        self.data_arc(Arc::new(value))
    }

    /// Shares a value that is in an `Arc` already, which may be one of a trait: an
    /// `Arc<dyn Shop>` is a `Data<dyn Shop>`.
    #[must_use]
    pub fn data_arc<T: ?Sized + Send + Sync + 'static>(mut self, value: Arc<T>) -> Self {
        if !self.state.add(value) {
            let name = std::any::type_name::<T>();
            self.problems.push(format!("data of type {name} is registered twice"));
        }
        self
    }

    /// Adds a function of a step. Several steps can carry the same one, if it captures nothing.
    pub(super) fn add_carried(&mut self, carried: &Carried) {
        let known = self.carried.get(&carried.name);
        if known.is_some() && known == carried.plain.as_ref() {
            return;
        }
        if let Some(plain) = carried.plain {
            self.carried.insert(carried.name.clone(), plain);
        }
        let (function, binding) = carried.make();
        self.bindings.push(binding);
        if self.registry.functions.insert(carried.name.clone(), function).is_some() {
            self.problems.push(format!(
                "function {} is registered twice; a step with Step::call registers its function \
                 by the id of the step",
                carried.name
            ));
        }
    }

    fn add_function(&mut self, name: &str, function: StepFunction) {
        if name.is_empty() {
            self.problems.push("a function has no name: steps `run` it by one".to_owned());
        }
        if self.registry.functions.insert(name.to_owned(), function).is_some() {
            self.problems.push(format!("function {name} is registered twice"));
        }
    }
}
