//! Tools built in Rust.

use std::cell::RefCell;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use greenroom_actors::agent::tool::{
    ToolBody, ToolContext, ToolDefinition, ToolError, ToolFunction,
};
use greenroom_actors::agent::{Approval, OnCrash};
use greenroom_actors::domain::definition::{CommandBody, HttpBody};
use greenroom_actors::ports::model::ToolSpec;
use serde_json::Value;
use tokio::sync::Semaphore;

use super::body::{Command, Http};
use crate::config::tools::{
    CONCURRENCY, MEMORY_BYTES, OUTPUT_BYTES, Parts, in_scope, name_problem, parameters_problem,
};
use crate::config::{ConfigProblem, Spot, ToolConfig, ToolKind};
use crate::threads::blocking;
use crate::typed::Binding;
#[cfg(feature = "schemars")]
use crate::typed::{TypedFunction, tool_function};

/// Builder of a tool, for [`crate::Greenroom::define_tool`]: Rust code, a workflow, an agent, a call
/// of another server or a program. Every kind has the keys of `[tools.*]`.
///
/// ```
/// use std::time::Duration;
///
/// use greenroom::Greenroom;
/// use greenroom::builder::{Command, Http, Step, Tool, Workflow};
/// use greenroom::tool::{Approval, OnCrash};
/// use serde_json::json;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let order = json!({ "type": "object", "required": ["order"],
///     "properties": { "order": { "type": "string" } } });
/// let status = Http::get("https://shop.example/orders/{{ args.order }}")
///     .header("authorization", "Bearer secret:SHOP_TOKEN");
/// let server = Greenroom::new()
///     .workflow(Workflow::new("refund").input_schema(order.clone()).step(Step::map("a", json!(1))))
///     .define_tool(
///         Tool::http("status", "Returns the status of an order", status)
///             .parameters(order.clone())
///             .timeout(Duration::from_secs(5))
///             .concurrency(4),
///     )
///     // the parameters are the input schema of the workflow
///     .define_tool(
///         Tool::workflow("refund", "Refunds an order", "refund")
///             .approval(Approval::always().reason("Refund {{ args.order }}?")?)
///             .on_crash(OnCrash::Ask),
///     )
///     .define_tool(
///         Tool::command("print", "Prints a label", Command::new("lp").args(["{{ args.order }}"]))
///             .parameters(order),
///     );
/// # drop(server);
/// # Ok(())
/// # }
/// ```
pub struct Tool {
    name: String,
    description: String,
    kind: Kind,
    parameters: Option<Value>,
    timeout: Option<Duration>,
    concurrency: Option<usize>,
    approval: Option<Approval>,
    on_crash: OnCrash,
}

enum Kind {
    Function(ToolFunction, Option<Binding>),
    Workflow(String),
    Agent(String),
    Http(HttpBody),
    Command(CommandBody),
}

/// A tool that was checked.
pub(crate) struct Checked {
    pub(crate) name: String,
    /// `None` if there are errors.
    pub(crate) made: Option<Made>,
    /// Errors and warnings.
    pub(crate) problems: Vec<ConfigProblem>,
}

/// A tool as it is registered.
pub(crate) enum Made {
    /// Rust code, with its binding to shared data.
    Function(Box<ToolDefinition>, Option<Binding>),
    /// A tool as a file can have it.
    Configured(Box<ToolConfig>),
}

/// Returns the problems of the approval of a tool with these parameters, as [`Tool::check`] does.
pub(crate) fn approval_problems(
    tool: &str,
    parameters: Option<&Value>,
    approval: &Approval,
) -> Vec<ConfigProblem> {
    with_parts(tool, parameters, |parts| parts.approval(approval)).1
}

/// Checks parts of a tool, and returns the problems.
fn with_parts<T>(
    tool: &str,
    parameters: Option<&Value>,
    check: impl FnOnce(&Parts<'_>) -> T,
) -> (T, Vec<ConfigProblem>) {
    let nowhere = Spot::nowhere(&format!("tool {tool}"));
    let spot = |keys: &[String]| Spot { key: keys.join("."), ..nowhere.clone() };
    let problems = RefCell::new(Vec::new());
    let report = |problem| problems.borrow_mut().push(problem);
    let scope = in_scope(parameters);
    let checked = check(&Parts { scope: &scope, spot: &spot, report: &report });
    (checked, problems.into_inner())
}

impl Tool {
    /// Creates a tool from a function. `parameters` is the JSON Schema of the arguments, of type
    /// `object`; the function only receives arguments that match it.
    pub fn function<F, R>(
        name: impl Into<String>,
        description: impl Into<String>,
        parameters: Value,
        function: F,
    ) -> Self
    where
        F: Fn(Value, ToolContext) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Value, ToolError>> + Send + 'static,
    {
        let function = Arc::new(move |arguments, context| -> BoxFuture<'static, _> {
            Box::pin(function(arguments, context))
        });
        Self::new(name, description, Kind::Function(function, None)).parameters(parameters)
    }

    /// Creates a tool from a function that blocks its thread, for example in a calculation or a file.
    /// It runs on a thread for blocking work. The time limit of the call does not stop it: it has to
    /// look at [`ToolContext::cancellation`] if it takes long. It counts for
    /// [`concurrency`](Self::concurrency) until it has ended.
    pub fn blocking<F>(
        name: impl Into<String>,
        description: impl Into<String>,
        parameters: Value,
        function: F,
    ) -> Self
    where
        F: Fn(Value, &ToolContext) -> Result<Value, ToolError> + Send + Sync + 'static,
    {
        let function = Arc::new(function);
        Self::function(name, description, parameters, move |arguments, context| {
            let (function, slot) = (Arc::clone(&function), context.hold_slot());
            let call = move || {
                let _until_the_end = slot;
                function(arguments, &context)
            };
            async move { blocking(call).await? }
        })
    }

    /// Creates a tool from a function over types, as [`crate::Greenroom::typed_tool`] describes.
    #[cfg(feature = "schemars")]
    pub fn typed<F, Shape>(
        name: impl Into<String>,
        description: impl Into<String>,
        function: F,
    ) -> Self
    where
        F: TypedFunction<ToolContext, Shape>,
        F::Input: schemars::JsonSchema,
    {
        let name = name.into();
        let (function, binding) = tool_function(&name, function);
        Self::new(name, description, Kind::Function(function, Some(binding)))
            .parameters(crate::schema::inline::<F::Input>())
    }

    /// Creates a tool that runs a workflow with the arguments as its input. Its input schema is the
    /// schema of the arguments, unless there is [one](Self::parameters).
    pub fn workflow(
        name: impl Into<String>,
        description: impl Into<String>,
        workflow: impl Into<String>,
    ) -> Self {
        Self::new(name, description, Kind::Workflow(workflow.into()))
    }

    /// Creates a tool that asks an agent. The argument is `prompt`, unless there is a
    /// [schema](Self::parameters).
    pub fn agent(
        name: impl Into<String>,
        description: impl Into<String>,
        agent: impl Into<String>,
    ) -> Self {
        Self::new(name, description, Kind::Agent(agent.into()))
    }

    /// Creates a tool that calls another server. Its texts read `args`, `context` and `user`. It
    /// needs [parameters](Self::parameters).
    pub fn http(name: impl Into<String>, description: impl Into<String>, call: Http) -> Self {
        Self::new(name, description, Kind::Http(call.0))
    }

    /// Creates a tool that runs a program. Its texts read `args`, `context` and `user`. It needs
    /// [parameters](Self::parameters).
    pub fn command(name: impl Into<String>, description: impl Into<String>, run: Command) -> Self {
        Self::new(name, description, Kind::Command(run.0))
    }

    fn new(name: impl Into<String>, description: impl Into<String>, kind: Kind) -> Self {
        Self {
            name: name.into(),
            description: description.into(),
            kind,
            parameters: None,
            timeout: None,
            concurrency: None,
            approval: None,
            on_crash: OnCrash::default(),
        }
    }

    /// Sets the JSON Schema of the arguments, of type `object`.
    pub fn parameters(mut self, schema: Value) -> Self {
        self.parameters = Some(schema);
        self
    }

    /// Sets the JSON Schema of the arguments to that of a type.
    #[cfg(feature = "schemars")]
    pub fn parameters_type<T: schemars::JsonSchema>(self) -> Self {
        self.parameters(crate::schema::inline::<T>())
    }

    /// Sets the time limit of one call, in place of `[limits] tool_timeout`.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Sets the maximum number of concurrent calls; further ones wait.
    pub fn concurrency(mut self, calls: usize) -> Self {
        self.concurrency = Some(calls);
        self
    }

    /// Requires approval of calls that agents make.
    pub fn approval(mut self, approval: Approval) -> Self {
        self.approval = Some(approval);
        self
    }

    /// Sets what happens to a call of an agent that a crash interrupted.
    pub fn on_crash(mut self, on_crash: OnCrash) -> Self {
        self.on_crash = on_crash;
        self
    }

    /// Checks it as the reader of `[tools.*]` does.
    pub(crate) fn check(self) -> Checked {
        let name = self.name.clone();
        let parameters = self.parameters.clone();
        let (made, problems) = with_parts(&name, parameters.as_ref(), |parts| {
            self.check_keys(parts);
            self.compile(parts)
        });
        let made = made.filter(|_| !problems.iter().any(ConfigProblem::is_error));
        Checked { name, made, problems }
    }

    fn check_keys(&self, parts: &Parts<'_>) {
        if let Some(problem) = name_problem(&self.name) {
            parts.refuse(&[], problem);
        }
        if self.description.is_empty() {
            parts.refuse(&["description"], "must not be empty");
        }
        match (&self.parameters, &self.kind) {
            (Some(parameters), _) => {
                parameters_problem(parameters).iter().for_each(|problem| {
                    parts.refuse(&["parameters"], problem);
                });
                parts.warn_of_formats(parameters);
            }
            (None, Kind::Http(_) | Kind::Command(_)) => {
                parts.refuse(&["parameters"], "is missing: it is the JSON Schema of the arguments");
            }
            (None, Kind::Function(..) | Kind::Workflow(_) | Kind::Agent(_)) => {}
        }
        parts.check_duration(&["timeout"], self.timeout);
        if let Some(calls) = self.concurrency {
            parts.check_bounds("concurrency", calls as u64, &CONCURRENCY);
        }
        if let Some(approval) = &self.approval {
            parts.approval(approval);
        }
        if let Kind::Command(body) = &self.kind {
            for (key, bytes, bounds) in [
                ("memory_bytes_max", body.memory_bytes_max, &MEMORY_BYTES),
                ("output_bytes_max", body.output_bytes_max, &OUTPUT_BYTES),
            ] {
                bytes.iter().for_each(|bytes| parts.check_bounds(key, *bytes, bounds));
            }
        }
    }

    fn compile(self, parts: &Parts<'_>) -> Option<Made> {
        let Self { name, description, kind, parameters, .. } = self;
        let Self { timeout, concurrency, approval, on_crash, .. } = self;
        let kind = match kind {
            Kind::Function(function, binding) => {
                let parameters = parameters.unwrap_or_default();
                let spec = ToolSpec { name, description, parameters };
                // a schema that does not compile is reported already
                let made = ToolDefinition::new(spec, ToolBody::Function(function)).ok()?;
                let permits = concurrency.map(|calls| Arc::new(Semaphore::new(calls)));
                let approval = approval.map(Arc::new);
                let made = ToolDefinition { timeout, permits, approval, on_crash, ..made };
                return Some(Made::Function(Box::new(made), binding));
            }
            Kind::Workflow(id) => ToolKind::Workflow(id),
            Kind::Agent(id) => ToolKind::Agent(id),
            Kind::Http(body) => ToolKind::Http(parts.http(&body)?),
            Kind::Command(body) => ToolKind::Command(parts.command(&body)?),
        };
        let spot = Spot::nowhere(&format!("tool {name}"));
        let made = ToolConfig {
            description,
            parameters,
            timeout,
            concurrency,
            approval,
            on_crash,
            kind,
            spot,
        };
        Some(Made::Configured(Box::new(made)))
    }
}

impl fmt::Debug for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match &self.kind {
            Kind::Function(..) => "function",
            Kind::Workflow(_) => "workflow",
            Kind::Agent(_) => "agent",
            Kind::Http(_) => "http",
            Kind::Command(_) => "command",
        };
        f.debug_struct("Tool")
            .field("name", &self.name)
            .field("kind", &kind)
            .finish_non_exhaustive()
    }
}
