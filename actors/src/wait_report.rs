//! Report on what an execution waits for, as far as this process and its store know.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::domain::ids::ExecutionId;
pub use crate::domain::machine::{
    AtDeadline, Awaited, Cause, ChildQuestion, Ending, FailedStep, SkippedCompensation,
};
pub use crate::domain::note::CallStage;
use crate::domain::time::Timestamp;
use crate::ports::store::{Ask, Header, Projection, Status};
use serde::{Deserialize, Serialize};

/// The answer to "why": what an execution waits for, or how it ended.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct WaitReport {
    pub header: Arc<Header>,
    pub status: Status,
    /// Name of the process that owns the execution, if the store is shared.
    #[serde(default)]
    pub server: Option<Arc<str>>,
    /// Empty for an execution that has ended.
    pub waits_for: Vec<Awaited>,
    /// Set for an execution that has ended.
    pub ending: Option<Ending>,
    /// The end that follows, for one that compensates before it.
    #[serde(default)]
    pub pending_ending: Option<Ending>,
    /// Rows of the children that it waits for; a child that was never started has none. They are
    /// looked up by the process that asks.
    #[serde(skip)]
    pub children: BTreeMap<ExecutionId, Projection>,
    /// Open asks by the id of their suspension: that of a suspended step, or those of the calls
    /// that the agent of a step waits for. They are looked up by the process that asks.
    #[serde(skip)]
    pub asks: BTreeMap<Arc<str>, Vec<Ask>>,
    /// Calls of tools by the agents of steps, by their generation. They are looked up by the process
    /// that asks.
    #[serde(skip)]
    pub calls: BTreeMap<Arc<str>, Vec<AwaitedCall>>,
}

/// Call of a tool by the agent of a step, which has no result so far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AwaitedCall {
    pub tool_call_id: Arc<str>,
    /// Name of the tool.
    pub tool: Arc<str>,
    pub stage: CallStage,
    /// Time at which it was begun, if that is recorded.
    pub since: Option<Timestamp>,
}

impl WaitReport {
    /// Returns a report without children for an execution that has not ended.
    pub fn new(header: Arc<Header>, status: Status, waits_for: Vec<Awaited>) -> Self {
        Self {
            header,
            status,
            server: None,
            waits_for,
            ending: None,
            pending_ending: None,
            children: BTreeMap::new(),
            asks: BTreeMap::new(),
            calls: BTreeMap::new(),
        }
    }
}
