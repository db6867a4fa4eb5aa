//! The face for clients of MCP: messages, tools, questions and answers, without the connection.

mod answers;
mod listening;
mod message;
mod param_headers;
mod params;
mod protection;
mod question;
mod resources;
mod run_state;
mod tokens;
mod tools;

use std::time::Duration;

pub use self::answers::{Advice, Asked, Members, Task, answered, completed, discovered, failed};
pub use self::answers::{initialized, input_required, listed, progress, suspended, task, task_now};
pub use self::listening::{Listening, listened, resource_updated, task_changed, tools_changed};
pub use self::message::{Abilities, Headers, Message, Refusal, Request, code, shown};
pub use self::param_headers::{Given, mismatch};
pub use self::params::{CallParams, Response, Responses, ResumeArguments, agent_body, text};
pub use self::protection::{Protection, WELL_KNOWN};
pub use self::question::Question;
pub use self::resources::{no_resource, resource, resource_of, resource_templates, resources};
pub use self::run_state::RunState;
pub use self::tokens::{AskedFor, Asking, Run, Tokens};
pub use self::tools::{Offer, Tool, resume_name};

use crate::auth::SealKey;

/// One face for clients of MCP.
#[derive(Debug, Clone)]
pub struct ServedFace {
    /// `None` at `/mcp`; a name at `/mcp/:name/mcp`.
    pub name: Option<String>,
    pub offer: Offer,
    /// True if executions are resources.
    pub has_resources: bool,
    /// Time after which a call becomes a task, for clients that follow tasks.
    pub task_after: Duration,
    /// Maximum number of resources and tasks that a client watches with one stream.
    pub subscriptions_max: usize,
    /// `None` if clients are not informed where they get a token.
    pub protection: Option<Protection>,
    /// Seals what clients keep for the server.
    pub key: SealKey,
}
