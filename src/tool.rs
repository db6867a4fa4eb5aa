//! Tools of agents: their context, failures and definitions, and approvals of their calls.

pub use greenroom_actors::agent::tool::{
    ASK_USER, Answers, Content, ToolBody, ToolContext, ToolDefinition, ToolError, ToolFunction,
    ToolSlot,
};
pub use greenroom_actors::agent::{
    Approval, InvalidApproval, OnCrash, OnTimeout, Remember, ToolAsk,
};
pub use greenroom_actors::ports::model::ToolSpec;
pub use tokio_util::sync::CancellationToken;
