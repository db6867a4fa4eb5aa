//! Modifiers of steps, and optional parts of some kinds.

use std::time::Duration;

use greenroom_actors::domain::definition::{Body, Case, OnError, Projection, StepKind};
use greenroom_actors::domain::plan::Problem;
use serde_json::Value;

use super::Step;
use crate::builder::{Block, Compensation, Computation, Condition, Retry, Suspend};
use crate::config::workflows::kind;
use crate::config::{AgentOptions, milliseconds};

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

    /// Sets the number of items that [`Step::for_each`] runs at once. Default: 1.
    pub fn concurrency(mut self, items: u32) -> Self {
        if let StepKind::ForEach { concurrency, .. } = &mut self.step.kind {
            *concurrency = items;
        }
        self.setting("concurrency")
    }

    /// Adds a case to [`Step::branch`], whose condition may be a closure.
    ///
    /// ```
    /// use greenroom::builder::{Block, Scope, Step, Workflow};
    /// use serde_json::json;
    ///
    /// let small = Block::new("small").step(Step::map("pay", json!("'at once'")));
    /// let large = Block::new("large").step(Step::map("ask", json!("'after a question'")));
    /// let pays = Step::branch("pays", [("input < 10", small)])
    ///     .case(|cx: &Scope| Ok(cx.input::<u64>()? < 100), large);
    /// assert!(Workflow::new("expenses").step(pays).compile().is_ok());
    /// ```
    pub fn case<Shape>(mut self, condition: impl Condition<Shape>, block: Block) -> Self {
        let Block { block, misfits, code } = block;
        self.misfits.extend(misfits);
        self.code.add(code);
        let mut closure = None;
        if let StepKind::Branch { cases, .. } = &mut self.step.kind {
            // by block: executions that were started before find it when cases are added
            let name = format!("{}.cases.{}", self.step.id, block.name);
            let (when, named) = condition.given().named(&name);
            closure = named;
            cases.push(Case { when, block });
        }
        self.carrying(closure).setting("cases")
    }

    /// Sets the block that [`Step::branch`] runs if no case is true.
    pub fn otherwise(mut self, block: Block) -> Self {
        let Block { block, misfits, code } = block;
        self.misfits.extend(misfits);
        self.code.add(code);
        if let StepKind::Branch { default, .. } = &mut self.step.kind {
            *default = Some(block);
        }
        self.setting("default")
    }

    /// Sets the template of an agent step's prompt.
    pub fn prompt(mut self, template: impl Into<String>) -> Self {
        if let StepKind::Agent { prompt, .. } = &mut self.step.kind {
            *prompt = Some(template.into());
        }
        self.setting("prompt")
    }

    /// Sets the JSON Schema of the object that an agent step returns.
    pub fn schema(mut self, json_schema: Value) -> Self {
        if let StepKind::Agent { schema, .. } = &mut self.step.kind {
            *schema = Some(json_schema);
        }
        self.setting("schema")
    }

    /// Sets options of an agent step.
    pub fn options(mut self, agent_options: AgentOptions) -> Self {
        if let StepKind::Agent { options, .. } = &mut self.step.kind {
            *options = agent_options.into_wire();
        }
        self.setting("options")
    }

    /// Sets the arguments of a step whose body is a [`tool`](crate::builder::tool). JSON whose strings
    /// are expressions, or a closure over a [`Scope`](crate::builder::Scope). Default: its `data`.
    pub fn args<Shape>(mut self, value: impl Computation<Shape>) -> Self {
        let (value, closure) = value.given().named(&format!("{}.args", self.step.id));
        if let StepKind::Then { body } | StepKind::Tap { body } = &mut self.step.kind {
            if let Body::Tool { args, .. } = body {
                *args = Some(Projection(value));
            } else {
                self.misfits.push(Problem {
                    place: vec!["steps".to_owned(), self.step.id.clone(), "args".to_owned()],
                    message: kind::ARGS_ALONE.to_owned(),
                });
            }
        }
        self.carrying(closure).setting("args")
    }

    /// Sets the input of a sub-workflow: JSON whose strings are expressions, or a closure over a
    /// [`Scope`](crate::builder::Scope).
    pub fn input<Shape>(mut self, value: impl Computation<Shape>) -> Self {
        let (value, closure) = value.given().named(&format!("{}.input", self.step.id));
        if let StepKind::Workflow { input, .. } = &mut self.step.kind {
            *input = Some(Projection(value));
        }
        self.carrying(closure).setting("input")
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
    /// use greenroom::builder::{OnError, Projection, Step};
    /// use serde_json::json;
    ///
    /// let weather = Step::run("weather", "weather")
    ///     .on_error(OnError::Value(Projection(json!({ "sky": "'unknown'" }))));
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

    fn setting(mut self, key: &'static str) -> Self {
        self.set.push(key);
        self
    }
}
