//! Modifiers of steps, whatever their kind.

use std::time::Duration;

use greenroom_actors::domain::definition::OnError;
use serde_json::Value;

use super::Step;
use crate::builder::{Compensation, Retry, Suspend};
use crate::config::milliseconds;

impl Step {
    /// Sets the name for people. Default: the id.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.step.name = name.into();
        self
    }

    /// Sets the purpose.
    pub fn purpose(mut self, purpose: impl Into<String>) -> Self {
        self.step.purpose = purpose.into();
        self
    }

    /// Suspends the step before its work starts.
    ///
    /// ```
    /// use greenroom::builder::{Step, Suspend};
    /// use serde_json::json;
    ///
    /// let approval = Step::map("approval", json!("resume.approved"))
    ///     .suspend(Suspend::always().reason("{{ input.amount }} for {{ input.purpose }}"))
    ///     .resume_schema(json!({ "type": "object", "required": ["approved"] }));
    /// # drop(approval);
    /// ```
    pub fn suspend(mut self, suspend: Suspend) -> Self {
        let (rule, closures) = suspend.named(&self.step.id);
        self.step.suspend = Some(rule);
        self.code.closures.extend(closures);
        self.setting("suspend")
    }

    /// Sets the JSON Schema of the step's `data`.
    pub fn input_schema(mut self, schema: Value) -> Self {
        self.step.input_schema = Some(schema);
        self
    }

    /// Sets the JSON Schema of the step's output.
    pub fn output_schema(mut self, schema: Value) -> Self {
        self.step.output_schema = Some(schema);
        self
    }

    /// Sets the JSON Schema of the payload of its suspension.
    pub fn suspend_schema(mut self, schema: Value) -> Self {
        self.step.suspend_schema = Some(schema);
        self.setting("suspend_schema")
    }

    /// Sets the JSON Schema of the data that resumes it.
    pub fn resume_schema(mut self, schema: Value) -> Self {
        self.step.resume_schema = Some(schema);
        self.setting("resume_schema")
    }

    /// Sets the JSON Schema of the step's `data` to that of a type.
    #[cfg(feature = "schemars")]
    pub fn input_type<T: schemars::JsonSchema>(self) -> Self {
        self.input_schema(crate::schema::of::<T>())
    }

    /// Sets the JSON Schema of the step's output to that of a type.
    ///
    /// ```
    /// use greenroom::builder::Step;
    /// use greenroom::schemars::{self, JsonSchema};
    /// use greenroom::step::StepError;
    /// use serde::Serialize;
    ///
    /// #[derive(Serialize, JsonSchema)]
    /// struct Price {
    ///     cents: u64,
    /// }
    ///
    /// async fn price(count: u64) -> Result<Price, StepError> {
    ///     Ok(Price { cents: 4000 * count })
    /// }
    ///
    /// let step = Step::call("price", price).output_type::<Price>();
    /// # drop(step);
    /// ```
    #[cfg(feature = "schemars")]
    pub fn output_type<T: schemars::JsonSchema>(self) -> Self {
        self.output_schema(crate::schema::of_output::<T>())
    }

    /// Sets the JSON Schema of the data that resumes it to that of a type. If its fields are plain
    /// values, options of an enum, or an `Option` of these, pages ask for them field by field.
    #[cfg(feature = "schemars")]
    pub fn resume_type<T: schemars::JsonSchema>(self) -> Self {
        self.resume_schema(crate::schema::inline::<T>())
    }

    /// Retries failed attempts.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use greenroom::builder::{Retry, Step};
    ///
    /// let pay = Step::run("pay", "pay")
    ///     .retry(Retry::attempts(5).delay(Duration::from_millis(200)).jitter())
    ///     .timeout(Duration::from_secs(3));
    /// # drop(pay);
    /// ```
    pub fn retry(mut self, retry: Retry) -> Self {
        self.step.retry = Some(retry.policy);
        self.setting("retry")
    }

    /// Sets the time limit of one attempt.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.step.timeout_ms = Some(milliseconds(timeout));
        self.setting("timeout")
    }

    /// Sets the effect of a failure after the last attempt.
    ///
    /// ```
    /// use greenroom::builder::{OnError, Mapping, Step};
    /// use serde_json::json;
    ///
    /// let weather = Step::run("weather", "weather")
    ///     .on_error(OnError::Value(Mapping(json!({ "sky": "'unknown'" }))));
    /// # drop(weather);
    /// ```
    pub fn on_error(mut self, on_error: OnError) -> Self {
        self.step.on_error = on_error;
        self
    }

    /// Undoes the step after it has completed, if the execution fails: in reverse order of the steps'
    /// ends, each item and iteration by itself, before the failure is recorded.
    pub fn compensate(mut self, compensation: Compensation) -> Self {
        let (rule, closure, problems) = compensation.named(&self.step.id);
        self.misfits.extend(problems);
        self.step.compensate = Some(Box::new(rule));
        self.carrying(closure).setting("compensate")
    }

    pub(super) fn setting(mut self, key: &'static str) -> Self {
        self.set.push(key);
        self
    }
}
