//! Calls of workflows.

use greenroom_actors::domain::plan::Plan;
use greenroom_actors::requests::StartExecution;
use greenroom_actors::visibility::Visibility;
use serde_json::Value;
use tokio::time::timeout;

use super::Outcome;
use super::feed::Feed;
use super::session::{Session, target_of};
use crate::api::catalogue::RouteName;
use crate::api::faces::mcp::{CallParams, Members, Run, Standing, Task, completed, failed, task};
use crate::api::{ApiError, executions, workflows};

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
        let start = match workflows::start_with(&plan.definition, input, &self.call.caller) {
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
        // the caller has started it just now
        let target = target_of(run, Visibility::Everything);
        let outcome = self.call.runtime.first_outcome(&target);
        let outcome = async {
            match feed {
                Some(feed) => feed.during(self, &target, 0, outcome).await,
                None => outcome.await,
            }
        };
        let in_time = async {
            if self.follows(run) {
                timeout(self.server.task_after, outcome).await.ok()
            } else {
                Some(outcome.await)
            }
        };
        match self.unless_gone(in_time).await {
            Some(Some(Ok(outcome))) => self.settle(run, Standing::of_outcome(&outcome), None).await,
            Some(Some(Err(error))) => self.refuse(&ApiError::from_describe(&run.execution, error)),
            Some(None) => self.become_task(run).await,
            None => {
                self.leave(run).await;
                self.unheard()
            }
        }
    }

    /// Returns true if the client could look after a task.
    fn follows(&self, run: &Run) -> bool {
        self.request.abilities().follows_tasks && self.may(RouteName::DescribeExecution, run)
    }

    /// Cancels the execution of a client that has gone. Older clients may lose a connection and mean
    /// nothing by it.
    async fn leave(&self, run: &Run) {
        if self.request.is_legacy() || !self.may(RouteName::CancelExecution, run) {
            return;
        }
        let target = target_of(run, Visibility::Everything);
        let (runtime, caller) = (&self.call.runtime, &self.call.caller);
        if let Err(refusal) = executions::cancel(runtime, &target, Ok(CLIENT_LEFT), caller).await {
            log::debug!("execution {} continues without its client: {refusal}", run.execution);
        }
    }

    /// Answers with what has become of an execution. `refusal`: why an answer of a person was not
    /// taken.
    pub(super) async fn settle(
        &self,
        run: &Run,
        standing: Standing,
        refusal: Option<&str>,
    ) -> Outcome {
        match standing {
            Standing::Suspended(_) if self.follows(run) => self.become_task(run).await,
            Standing::Suspended(waiting) => self.ask(run, &waiting, refusal).await,
            standing => Ok(self.ended(run, &standing)),
        }
    }

    /// Answers for an execution that has ended.
    pub(super) fn ended(&self, run: &Run, standing: &Standing) -> Members {
        let id = ("execution", run.execution.as_str());
        let text = match standing {
            Standing::Completed(result) => return completed(result, Some(id), &self.request),
            Standing::Failed(Some(step)) => format!("The workflow failed at the step {step}."),
            Standing::Failed(None) => "The workflow failed.".to_owned(),
            Standing::Cancelled(Some(reason)) => format!("The workflow was cancelled: {reason}"),
            Standing::Cancelled(None) => "The workflow was cancelled.".to_owned(),
            Standing::Running | Standing::Suspended(_) => "The workflow has not ended.".to_owned(),
        };
        failed(&text, Some(id))
    }

    /// Answers with a task, which continues without its client.
    async fn become_task(&self, run: &Run) -> Outcome {
        let id = self.tokens().task_id(run);
        let target = target_of(run, Visibility::Everything);
        let state = match executions::describe(&self.call.runtime, &target).await {
            Ok(state) => state,
            Err(refusal) => return self.refuse(&refusal),
        };
        let questions = self.open_questions(run, &state.suspensions).await;
        Ok(task(&Task { id: &id, state: &state, questions: &questions }))
    }
}
