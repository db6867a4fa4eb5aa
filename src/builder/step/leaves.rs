//! Steps without blocks: a constructor for each kind, and its optional keys.

use std::time::Duration;

use greenroom_actors::domain::definition::{Body, Mapping, StepKind};
use greenroom_actors::domain::plan::Problem;
use greenroom_actors::function::StepContext;
use serde_json::Value;

use super::Step;
use crate::builder::code::Code;
use crate::builder::{Computation, PointInTime, run};
use crate::config::workflows::kind;
use crate::config::{AgentOptions, milliseconds};
use crate::typed::{Carried, TypedFunction};

impl Step {
    /// Runs a body; its output is the next step's `data`.
    ///
    /// ```
    /// use greenroom::builder::{Http, Step, http, run};
    ///
    /// let price = Step::then("price", run("price"));
    /// let stock = Step::then("stock", http(Http::get("https://stock.example/{{ input.item }}")));
    /// # drop((price, stock));
    /// ```
    pub fn then(id: impl Into<String>, body: Body) -> Self {
        Self::new(id, StepKind::Then { body })
    }

    /// Evaluates a value: strings are expressions, also inside arrays and objects. Like
    /// [`Step::then`] with [`map()`](crate::builder::map()), but of the kind `andMap`.
    ///
    /// ```
    /// use greenroom::builder::Step;
    /// use serde_json::json;
    ///
    /// let total = Step::map("total", json!({ "sum": "data.price * input.count", "vat": 0.2 }));
    /// # drop(total);
    /// ```
    pub fn map(id: impl Into<String>, value: Value) -> Self {
        Self::new(id, StepKind::Map { map: Mapping(value) })
    }

    /// Calls a registered function; short for [`Step::then`] with [`run`].
    pub fn run(id: impl Into<String>, function: impl Into<String>) -> Self {
        Self::then(id, run(function))
    }

    /// Calls a [typed function](crate::typed), which the step carries: it is registered together
    /// with the workflow, under the id of the step. Another function of this name is refused.
    ///
    /// ```
    /// use greenroom::builder::{Step, Workflow};
    /// use greenroom::step::StepError;
    ///
    /// async fn double(n: u32) -> Result<u32, StepError> {
    ///     n.checked_mul(2).ok_or_else(|| StepError::terminal("too large"))
    /// }
    ///
    /// let twice = Workflow::new("twice").step(Step::call("double", double));
    /// # drop(twice);
    /// ```
    pub fn call<F, Shape>(id: impl Into<String>, function: F) -> Self
    where
        F: TypedFunction<StepContext, Shape>,
    {
        let id = id.into();
        let functions = vec![Carried::new(id.clone(), function)];
        let code = Code { functions, closures: Vec::new() };
        Self { code, ..Self::run(id.clone(), id) }
    }

    /// Runs a body for its effect, beside the flow; `data` passes through, even if it fails.
    ///
    /// ```
    /// use greenroom::builder::{Step, tool};
    /// use serde_json::json;
    ///
    /// let notify = Step::tap("notify", tool("send_mail")).args(json!({ "to": "input.employee" }));
    /// # drop(notify);
    /// ```
    pub fn tap(id: impl Into<String>, body: Body) -> Self {
        Self::new(id, StepKind::Tap { body })
    }

    /// Sets the arguments of a step whose body is a [`tool`](crate::builder::tool). JSON whose strings
    /// are expressions, or a closure over a [`Scope`](crate::builder::Scope). Default: its `data`.
    pub fn args<Shape>(mut self, value: impl Computation<Shape>) -> Self {
        let (value, closure) = value.given().named(&format!("{}.args", self.step.id));
        if let StepKind::Then { body } | StepKind::Tap { body } = &mut self.step.kind {
            if let Body::Tool { args, .. } = body {
                *args = Some(Mapping(value));
            } else {
                self.misfits.push(Problem {
                    place: vec!["steps".to_owned(), self.step.id.clone(), "args".to_owned()],
                    message: kind::ARGS_ALONE.to_owned(),
                });
            }
        }
        self.carrying(closure).setting("args")
    }

    /// Runs an agent on the text of the step's `data`, or on [`Step::prompt`]. Output: `text` and
    /// `usage`, or the object if [`Step::schema`] is set.
    ///
    /// ```
    /// use greenroom::builder::Step;
    /// use greenroom::config::AgentOptions;
    /// use serde_json::json;
    ///
    /// let sort = Step::agent("sort", "assistant")
    ///     .prompt("Is this urgent? {{ input.text }}")
    ///     .schema(json!({ "type": "object", "properties": { "urgent": { "type": "boolean" } } }))
    ///     .options(AgentOptions { max_steps: Some(1), ..AgentOptions::default() });
    /// # drop(sort);
    /// ```
    pub fn agent(id: impl Into<String>, agent: impl Into<String>) -> Self {
        let agent = agent.into();
        Self::new(id, StepKind::Agent { agent, prompt: None, schema: None, options: None })
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

    /// Runs another workflow as a separate execution, on the step's `data` or on [`Step::input`].
    ///
    /// ```
    /// use greenroom::builder::Step;
    /// use serde_json::json;
    ///
    /// let pay = Step::workflow("pay", "payment").input(json!({ "amount": "data.total" }));
    /// # drop(pay);
    /// ```
    pub fn workflow(id: impl Into<String>, workflow: impl Into<String>) -> Self {
        Self::new(id, StepKind::Workflow { workflow: workflow.into(), input: None })
    }

    /// Sets the input of a sub-workflow: JSON whose strings are expressions, or a closure over a
    /// [`Scope`](crate::builder::Scope).
    pub fn input<Shape>(mut self, value: impl Computation<Shape>) -> Self {
        let (value, closure) = value.given().named(&format!("{}.input", self.step.id));
        if let StepKind::Workflow { input, .. } = &mut self.step.kind {
            *input = Some(Mapping(value));
        }
        self.carrying(closure).setting("input")
    }

    /// Waits; `data` passes through. The timer survives a restart.
    pub fn sleep(id: impl Into<String>, duration: Duration) -> Self {
        Self::new(id, StepKind::Sleep { duration_ms: milliseconds(duration) })
    }

    /// Waits until a point in time; `data` passes through. The expression, or the closure over a
    /// [`Scope`](crate::builder::Scope), returns an ISO 8601 text with a zone, or milliseconds since 1970.
    ///
    /// ```
    /// use greenroom::builder::Step;
    ///
    /// let departure = Step::sleep_until("departure", "input.departs");
    /// # drop(departure);
    /// ```
    pub fn sleep_until<Shape>(id: impl Into<String>, until: impl PointInTime<Shape>) -> Self {
        let id = id.into();
        let (until, closure) = until.given().named(&format!("{id}.until"));
        Self::new(id, StepKind::SleepUntil { until }).carrying(closure)
    }
}
