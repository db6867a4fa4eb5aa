//! Activity of this process and of the other members at the moment.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::cluster::request::{MemberAnswer, Request};
use crate::domain::ids::ExecutionId;
use crate::requests::Unavailable;
use crate::shard::stuck::{STUCK_MAX, StuckExecution};
use crate::shared::Shared;

/// Time that the other members have to answer. A list is not worth more: without the answer of one
/// that is slow or gone, it shows what the others do.
const ANSWERED_WITHIN: Duration = Duration::from_secs(1);

/// Workflows and agents that are running.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Activity {
    workflows: BTreeSet<Arc<str>>,
    agents: BTreeSet<Arc<str>>,
}

impl Activity {
    /// Returns true if an execution of the workflow is running.
    pub fn is_workflow_running(&self, workflow_id: &str) -> bool {
        self.workflows.contains(workflow_id)
    }

    /// Returns true if a generation of the agent is running.
    pub fn is_agent_working(&self, agent_id: &str) -> bool {
        self.agents.contains(agent_id)
    }
}

impl Shared {
    pub(crate) fn activity_here(&self) -> Activity {
        let running = self.current.now().running().into_iter().filter(|(_, count)| *count > 0);
        let deps = self.generations.get();
        Activity {
            workflows: running.map(|(id, _)| Arc::from(id)).collect(),
            agents: deps.map(|deps| deps.active.working()).unwrap_or_default(),
        }
    }

    pub(crate) async fn activity_everywhere(&self) -> Activity {
        let mut all = self.activity_here();
        for Activity { workflows, agents } in self.gather(Request::Activity).await {
            all.workflows.extend(workflows);
            all.agents.extend(agents);
        }
        all
    }

    pub(crate) fn stuck_here(&self) -> Vec<StuckExecution> {
        let stuck = self.stuck.read().unwrap_or_else(PoisonError::into_inner);
        stuck.values().cloned().collect()
    }

    /// Returns the stuck executions of all processes by id; at most [`STUCK_MAX`].
    pub(crate) async fn stuck_everywhere(&self) -> Vec<StuckExecution> {
        let elsewhere: Vec<Vec<StuckExecution>> = self.gather(Request::Stuck).await;
        let all = self.stuck_here().into_iter().chain(elsewhere.into_iter().flatten());
        // one that was handed over may still be known to its last owner
        let by_id: BTreeMap<ExecutionId, StuckExecution> =
            all.map(|stuck| (stuck.execution_id.clone(), stuck)).collect();
        by_id.into_values().take(STUCK_MAX).collect()
    }

    /// Returns the answers of the other members that answer soon.
    async fn gather<T: DeserializeOwned + Send>(&self, request: Request) -> Vec<T> {
        let others = self.other_members();
        if others.is_empty() {
            return Vec::new();
        }
        let answers: Vec<MemberAnswer<Result<T, Unavailable>>> =
            self.ask_members(&others, &request, ANSWERED_WITHIN).await.unwrap_or_default();
        answers.into_iter().flatten().filter_map(|(answer, _)| answer.ok()).collect()
    }
}
