//! Tasks: calls that continue without their client, which asks after them.

use greenroom_actors::ports::store::{ASK_PREFIX, AskSubject};
use greenroom_actors::requests::ExecutionState;
use serde_json::json;

use super::Outcome;
use super::asks::is_of;
use super::session::Session;
use crate::api::catalogue::RouteName;
use crate::api::error::AskRefusal;
use crate::api::faces::mcp::{
    Members, Question, Refusal, Response, Responses, Run, RunState, Task, code, task_now, text,
};
use crate::api::{ApiError, executions, inbox};

impl Session {
    /// Carries `tasks/get` out.
    pub(super) async fn show_task(&mut self) -> Outcome {
        let (id, run) = self.take_task(RouteName::DescribeExecution)?;
        let state = self.task_state(&run).await?;
        let run_state = RunState::of_state(&state);
        let (questions, result) = match &run_state {
            RunState::Suspended(waiting) => (self.open_questions(&run, waiting).await, None),
            RunState::Completed(_) | RunState::Failed(_) => {
                (Vec::new(), Some(self.ended(&run, &run_state)))
            }
            RunState::Running | RunState::Cancelled(_) => (Vec::new(), None),
        };
        Ok(task_now(&Task { id: &id, state: &state, questions: &questions }, result))
    }

    /// Carries `tasks/update` out: takes the answers of a person. Those to what no longer waits are
    /// ignored.
    pub(super) async fn update_task(&mut self) -> Outcome {
        let responses = Responses::take(&mut self.request)?;
        let (_, run) = self.take_task(RouteName::ResumeExecution)?;
        self.task_state(&run).await?;
        for key in responses.keys() {
            match self.answer_key(&run, key, &responses).await {
                Ok(())
                | Err(ApiError::Ask(
                    AskRefusal::NotFound(_)
                    | AskRefusal::Answered { .. }
                    | AskRefusal::Expired { .. }
                    | AskRefusal::Withdrawn { .. },
                )) => {}
                Err(ApiError::InvalidBody(problem)) => return Err(self.request.invalid(problem)),
                Err(refusal @ ApiError::Ask(_)) => {
                    return Err(self.request.invalid(format!("inputResponses.{key}: {refusal}")));
                }
                Err(refusal) => return Err(self.request.refused(&refusal)),
            }
        }
        Ok(Members::new())
    }

    /// Carries `tasks/cancel` out. A task that has ended stays as it is.
    pub(super) async fn cancel_task(&mut self) -> Outcome {
        let (_, run) = self.take_task(RouteName::CancelExecution)?;
        let (runtime, caller) = (&self.call.runtime, &self.call.caller);
        match executions::cancel(runtime, &self.target(&run), Ok(b"{}"), caller).await {
            Ok(_) | Err(ApiError::ExecutionAlready { .. } | ApiError::ExecutionCompensates(_)) => {
                Ok(Members::new())
            }
            Err(ApiError::ExecutionNotFound(_)) => Err(self.unknown_task()),
            Err(refusal) => Err(self.request.refused(&refusal)),
        }
    }

    /// Answers an ask of the execution; another one is not found.
    async fn answer_key(
        &self,
        run: &Run,
        key: &str,
        responses: &Responses,
    ) -> Result<(), ApiError> {
        let (runtime, caller) = (&self.call.runtime, &self.call.caller);
        let unknown = || ApiError::Ask(AskRefusal::NotFound(key.to_owned()));
        if !key.starts_with(ASK_PREFIX) {
            return Err(unknown());
        }
        let ask = inbox::find(runtime, key, caller).await?;
        let may = match &ask.subject {
            AskSubject::Step(_) => true,
            AskSubject::Call(of) => self.check_call(of).is_ok(),
        };
        if !may || !is_of(&ask, run) {
            return Err(unknown());
        }
        let response = responses.of(key).map_err(ApiError::InvalidBody)?;
        let Some(Response::Accepted(content)) = response else { return Ok(()) };
        let detail = inbox::describe(runtime, ask).await?;
        // the person has only opened the page
        if self.shown(&detail).is_some_and(|question| !question.is_form()) {
            return Ok(());
        }
        let data = Question::answer(&detail, content);
        self.answer_ask(detail.ask, data).await
    }

    /// Takes the id of a task that the caller may do this to. That of another user is as unknown as
    /// one that never was.
    fn take_task(&mut self, route: RouteName) -> Result<(String, Run), Refusal> {
        if !self.request.abilities().follows_tasks {
            return Err(self.without_tasks());
        }
        let id = text(&mut self.request, "taskId")?;
        let id = id.ok_or_else(|| self.request.invalid("taskId is missing"))?;
        let run = self.tokens().read_task_id(&id).filter(|run| self.may(route, run));
        let run = run.ok_or_else(|| self.unknown_task())?;
        Ok((id, run))
    }

    async fn task_state(&self, run: &Run) -> Result<ExecutionState, Refusal> {
        let state = executions::describe(&self.call.runtime, &self.target(run)).await;
        state.map_err(|refusal| match refusal {
            ApiError::ExecutionNotFound(_) => self.unknown_task(),
            refusal => self.request.refused(&refusal),
        })
    }

    fn unknown_task(&self) -> Refusal {
        self.request.invalid("unknown task")
    }

    /// Refuses a client that has not declared tasks.
    pub(super) fn without_tasks(&self) -> Refusal {
        let text = "The client has to declare the extension io.modelcontextprotocol/tasks";
        let needed = json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } });
        let data = json!({ "requiredCapabilities": needed });
        self.request.refuse(code::CAPABILITY_MISSING, text).with(data)
    }
}
