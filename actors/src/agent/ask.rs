//! Questions of tools to people: approvals of calls, and input.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::domain::assignment::Assignee;
use crate::domain::expression::{Expression, Template};

/// Requires the approval of a person for calls of a tool.
///
/// ```
/// use greenroom_actors::agent::Approval;
/// use std::time::Duration;
///
/// let approval = Approval::when("args.amount > 100")?
///     .reason("Refund {{ args.amount }} for {{ args.order }}")?
///     .to(["role:support".parse()?, "!self".parse()?])
///     .deadline(Duration::from_secs(3600))
///     .edit();
/// # drop(approval);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Default)]
pub struct Approval {
    pub(crate) when: When,
    pub(crate) reason: Option<Template>,
    pub(crate) to: Vec<Assignee>,
    pub(crate) deadline: Option<Duration>,
    pub(crate) on_timeout: Option<OnTimeout>,
    pub(crate) is_editable: bool,
    pub(crate) remember: Remember,
}

/// Validity of an approval for later calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Remember {
    /// Each call is approved.
    #[default]
    Never,
    /// Once a person has approved a call, further calls of the tool are made without until the
    /// stored conversation is deleted, as long as the schema of the tool's arguments stays the same.
    Chat,
}

/// Decides from arguments and context.
pub(crate) type Condition = dyn Fn(&Value, &Map<String, Value>) -> bool + Send + Sync;

/// Calls that need an approval.
#[derive(Clone, Default)]
pub(crate) enum When {
    #[default]
    Always,
    Expression(Arc<Expression>),
    Function(Arc<Condition>),
}

/// Answer that counts once the deadline of an approval has passed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnTimeout {
    #[default]
    Refuse,
    Approve,
}

/// Treatment of a call that a crash interrupted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OnCrash {
    /// It is made again, under the same idempotency key.
    #[default]
    Repeat,
    /// The model gets the interruption as its result.
    Tell,
    /// A person decides whether it is made again.
    Ask,
}

/// Text that is not a template or an expression.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidApproval(String);

impl Approval {
    /// Requires approval of every call.
    pub fn always() -> Self {
        Self::default()
    }

    /// Requires approval of calls for which an expression over `args`, `context` and `user` is
    /// true. A call for which it cannot be evaluated needs approval too.
    pub fn when(expression: &str) -> Result<Self, InvalidApproval> {
        let compiled = Expression::compile(expression);
        let compiled = compiled.map_err(|error| InvalidApproval(error.to_string()))?;
        Ok(Self { when: When::Expression(Arc::new(compiled)), ..Self::default() })
    }

    /// Requires approval of calls for which a function of the arguments and the context returns
    /// true. A call for which it panics needs approval too.
    pub fn when_fn(
        is_needed: impl Fn(&Value, &Map<String, Value>) -> bool + Send + Sync + 'static,
    ) -> Self {
        Self { when: When::Function(Arc::new(is_needed)), ..Self::default() }
    }

    /// Sets what people read: a template over `args`, `context` and `user`.
    pub fn reason(mut self, template: &str) -> Result<Self, InvalidApproval> {
        let compiled = Template::compile(template);
        self.reason = Some(compiled.map_err(|error| InvalidApproval(error.to_string()))?);
        Ok(self)
    }

    /// Sets who may answer.
    pub fn to(mut self, to: impl IntoIterator<Item = Assignee>) -> Self {
        self.to = to.into_iter().collect();
        self
    }

    /// Sets the time after which the call counts as refused, or as [`Approval::on_timeout`] says.
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = Some(deadline);
        self
    }

    /// Sets the answer that counts once the deadline has passed, which it needs.
    pub fn on_timeout(mut self, on_timeout: OnTimeout) -> Self {
        self.on_timeout = Some(on_timeout);
        self
    }

    /// Sets whether an approval counts for later calls.
    pub fn remember(mut self, remember: Remember) -> Self {
        self.remember = remember;
        self
    }

    /// Returns the expression that decides which calls need it; `None`: all of them, or a function
    /// decides.
    pub fn condition(&self) -> Option<&str> {
        match &self.when {
            When::Expression(expression) => Some(expression.source()),
            When::Always | When::Function(_) => None,
        }
    }

    /// Returns the template of what people read.
    pub fn question(&self) -> Option<&str> {
        self.reason.as_ref().map(Template::source)
    }

    /// Returns who may answer.
    pub fn assignees(&self) -> &[Assignee] {
        &self.to
    }

    /// Returns the time after which the call is decided without a person.
    pub fn time_limit(&self) -> Option<Duration> {
        self.deadline
    }

    /// Returns the answer that was set for a passed deadline.
    pub fn timeout_answer(&self) -> Option<OnTimeout> {
        self.on_timeout
    }

    /// Lets people change the arguments of the call when they approve it.
    pub fn edit(mut self) -> Self {
        self.is_editable = true;
        self
    }
}

impl std::fmt::Debug for Approval {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Approval")
            .field("when", &self.condition())
            .field("reason", &self.question())
            .field("to", &self.to)
            .field("deadline", &self.deadline)
            .field("on_timeout", &self.on_timeout)
            .field("is_editable", &self.is_editable)
            .field("remember", &self.remember)
            .finish_non_exhaustive()
    }
}

/// A question of a tool to a person, for [`crate::agent::tool::ToolContext::ask`].
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolAsk {
    /// Text for people.
    pub question: String,
    /// JSON Schema of the answer; `None` accepts everything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<Value>,
    /// Users and roles that may answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub to: Vec<Assignee>,
    /// Name of the question for clients of MCP; `None`: its number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Time after which the call fails; `None`: it waits for as long as it takes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Duration>,
    /// True if people may decline to answer, and the tool gets a [`ToolAsk::declinable`] answer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_declinable: bool,
    /// Value for the tool when it is called again. It is stored with the ask, and never shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memo: Option<Value>,
}

/// Request of a tool that a person approves its call, beside [`Approval`]: it depends on what the tool
/// finds once it is called.
#[derive(Debug, Clone, PartialEq)]
pub struct CallApproval {
    /// Text for people.
    pub reason: String,
    /// Subject that is approved beside the call; the call finds it as
    /// [`ToolContext::approved`](crate::agent::tool::ToolContext::approved).
    pub subject: Arc<str>,
    /// Users and roles that may answer.
    pub to: Vec<Assignee>,
    /// Time after which the call is refused.
    pub deadline: Option<Duration>,
    /// Request that those who approve have to be allowed to make, as `POST /tools/mcp/files/accept`, beside
    /// being asked: for an approval that counts for more than the call. Front ends check it.
    pub permission: Option<Arc<str>>,
}

impl ToolAsk {
    /// Asks a question.
    pub fn new(question: impl Into<String>) -> Self {
        Self { question: question.into(), ..Self::default() }
    }

    /// Sets the name of the question for clients of MCP that call the tool directly. Questions of one
    /// call have different names.
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// Sets the JSON Schema of the answer.
    pub fn schema(mut self, schema: Value) -> Self {
        self.schema = Some(schema);
        self
    }

    /// Sets who may answer.
    pub fn to(mut self, to: impl IntoIterator<Item = Assignee>) -> Self {
        self.to = to.into_iter().collect();
        self
    }

    /// Sets the time after which the call fails without an answer.
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = Some(deadline);
        self
    }

    /// Lets people decline, with the answer `{"action": "decline"}` or `{"action": "cancel"}` in place
    /// of one that matches the schema. The tool gets that, or `{"action": "accept", "content": ...}`
    /// with the answer.
    pub fn declinable(mut self) -> Self {
        self.is_declinable = true;
        self
    }

    /// Sets a value that the tool finds in [`crate::agent::tool::ToolContext::memo`] when it is called
    /// again. It is stored with the ask, and never shown.
    pub fn memo(mut self, memo: Value) -> Self {
        self.memo = Some(memo);
        self
    }
}
