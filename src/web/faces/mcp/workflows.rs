//! Calls of workflows.

use greenroom_actors::domain::plan::Plan;
use greenroom_actors::ports::store::Status;
use greenroom_actors::requests::{StartExecution, Target};
use greenroom_actors::visibility::Visibility;
use serde_json::Value;
use tokio::time::timeout;

use super::Outcome;
use super::feed::Feed;
use super::session::{Session, target_of};
use crate::api::catalogue::RouteName;
use crate::api::faces::mcp::{CallParams, Members, Run, RunState, Task, completed, failed, task};
use crate::api::{ApiError, executions, workflows};
use crate::web::workflows::idempotency_key;

/// Body of the cancellation by a client that has gone.
const CLIENT_LEFT: &[u8] = br#"{"reason":"the client of the call disconnected"}"#;

impl Session {
    /// Runs a workflow, or takes the answer to a question of a call before.
    pub(super) async fn call_workflow(
        &self,
        plan: &Plan,
        params: CallParams,
        feed: Option<&Feed>,
    ) -> Outcome {
        let id = &plan.definition.id;
        if let Some(state) = &params.state {
            return self.answer_question(id, state, &params.responses, feed).await;
        }
        let input = Value::Object(params.arguments);
        let key = idempotency_key(self.call.request.headers());
        let start =
            workflows::start_with(&plan.definition, input, key.as_deref(), &self.call.caller);
        let start = match start {
            Ok(start) => StartExecution { trace: self.trace(), ..start },
            Err(refusal) => return self.refuse(&refusal),
        };
        match workflows::begin(&self.call.runtime, start).await {
            Ok(execution) => {
                let run = Run { workflow: id.clone(), execution };
                self.first_answer(&run, feed).await
            }
            Err(refusal) => self.refuse(&refusal),
        }
    }

    /// Waits for an execution that this call has started.
    async fn first_answer(&self, run: &Run, feed: Option<&Feed>) -> Outcome {
        // the caller has started it: now, or earlier with this key, whose scope has the user
        let target = target_of(run, Visibility::Everything);
        let runtime = &self.call.runtime;
        let outcome = async {
            if self.is_repeatable() {
                // an execution that began earlier may have been resumed since
                let halted = runtime.state_when(&target, |state| state.status != Status::Running);
                halted.await.map(|state| RunState::of_state(&state))
            } else {
                let outcome = runtime.first_outcome(&target).await;
                outcome.map(|outcome| RunState::of_outcome(&outcome))
            }
        };
        let outcome = Feed::around(feed, self, (&target, 0), outcome);
        let in_time = async {
            if self.follows(run) {
                timeout(self.server.task_after, outcome).await.ok()
            } else {
                Some(outcome.await)
            }
        };
        match self.while_connected(in_time).await {
            Some(Some(Ok(state))) => self.settle(run, state, None).await,
            Some(Some(Err(error))) => {
                self.refuse_for(run, &ApiError::from_describe(&run.execution, error))
            }
            Some(None) => self.become_task(run).await,
            None => {
                self.leave(run, &target).await;
                self.disconnected()
            }
        }
    }

    /// Returns true if the client repeats the call after it has lost the connection, and finds the
    /// same execution.
    fn is_repeatable(&self) -> bool {
        idempotency_key(self.call.request.headers()).is_some()
    }

    /// Returns true if the client could look after a task.
    fn follows(&self, run: &Run) -> bool {
        self.request.abilities().follows_tasks && self.may(RouteName::DescribeExecution, run)
    }

    /// Answers a client that has gone while its call continued an execution. One that it follows as
    /// a task continues.
    pub(super) async fn left(&self, run: &Run) -> Outcome {
        if !self.follows(run) {
            self.leave(run, &self.target(run)).await;
        }
        self.disconnected()
    }

    /// Cancels the execution of a client that has gone. Older clients may lose a connection and mean
    /// nothing by it.
    async fn leave(&self, run: &Run, target: &Target) {
        let means_nothing = self.request.is_legacy() || self.is_repeatable();
        if means_nothing || !self.may(RouteName::CancelExecution, run) {
            return;
        }
        let (runtime, caller) = (&self.call.runtime, &self.call.caller);
        if let Err(refusal) = executions::cancel(runtime, target, Ok(CLIENT_LEFT), caller).await {
            log::debug!("execution {} continues without its client: {refusal}", run.execution);
        }
    }

    /// Answers with what has become of an execution. `refusal`: why an answer of a person was not
    /// taken.
    pub(super) async fn settle(
        &self,
        run: &Run,
        state: RunState,
        refusal: Option<&str>,
    ) -> Outcome {
        match state {
            RunState::Suspended(_) if self.follows(run) => self.become_task(run).await,
            RunState::Suspended(waiting) => self.ask(run, &waiting, refusal).await,
            state => Ok(self.ended(run, &state)),
        }
    }

    /// Answers for an execution that has ended.
    pub(super) fn ended(&self, run: &Run, state: &RunState) -> Members {
        let id = ("execution", run.execution.as_str());
        let text = match state {
            RunState::Completed(result) => return completed(result, Some(id), &self.request),
            RunState::Failed(Some(step)) => format!("The workflow failed at the step {step}."),
            RunState::Failed(None) => "The workflow failed.".to_owned(),
            RunState::Cancelled(Some(reason)) => format!("The workflow was cancelled: {reason}"),
            RunState::Cancelled(None) => "The workflow was cancelled.".to_owned(),
            RunState::Running | RunState::Suspended(_) => "The workflow has not ended.".to_owned(),
        };
        failed(&text, Some(id))
    }

    /// Answers with a task, which continues without its client.
    async fn become_task(&self, run: &Run) -> Outcome {
        let id = self.tokens().task_id(run);
        let target = target_of(run, Visibility::Everything);
        let state = match executions::describe(&self.call.runtime, &target).await {
            Ok(state) => state,
            Err(refusal) => return self.refuse_for(run, &refusal),
        };
        let questions = self.open_questions(run, &state.suspensions).await;
        Ok(task(&Task { id: &id, state: &state, questions: &questions }))
    }
}
