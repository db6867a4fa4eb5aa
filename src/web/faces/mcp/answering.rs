//! Questions of executions that wait, and the answers of people.

use greenroom_actors::domain::fact::Suspension;
use greenroom_actors::domain::ids::ExecutionId;
use greenroom_actors::ports::store::{ASK_PREFIX, Status};
use greenroom_actors::requests::{AskAccess, ExecutionOutcome, ResumeExecution, Target};
use serde_json::Value;

use super::Outcome;
use super::feed::Feed;
use super::session::Session;
use crate::api::catalogue::RouteName;
use crate::api::error::AskRefusal;
use crate::api::faces::mcp::{
    Asked, Asking, CallParams, Of, Question, Refusal, Response, Responses, ResumeArguments, Run,
    Standing, failed, input_required, suspended,
};
use crate::api::{ApiError, executions, inbox};

/// Suspensions among which one is looked for that the caller may answer.
const ASKS_MAX: usize = 10;

impl Session {
    /// Answers for an execution that waits: with a question, if the client can show it.
    pub(super) async fn ask(
        &self,
        run: &Run,
        waiting: &[Suspension],
        refusal: Option<&str>,
    ) -> Outcome {
        let asked = self.asked(run, waiting).await;
        let answerable = asked.as_ref().filter(|asked| asked.may_answer);
        if self.request.abilities().shows_forms
            && let Some(Asked { detail, .. }) = answerable
            && let Some(question) = Question::of(detail)
        {
            let question = match refusal {
                Some(refusal) => question.again(refusal),
                None => question,
            };
            let of = Of::Workflow(run.workflow.clone());
            return self.question(of, run.execution.as_str(), &detail.ask.id, &question);
        }
        Ok(suspended(run, waiting, asked.as_ref()))
    }

    /// Asks a person through the client.
    pub(super) fn question(&self, of: Of, run: &str, ask: &str, question: &Question) -> Outcome {
        let asking = Asking { of, run: run.to_owned(), ask: ask.to_owned() };
        match self.tokens().state(asking, self.call.runtime.clock().now()) {
            Some(state) => Ok(input_required(ask, question, &state)),
            None => Err(self.request.refused(&ApiError::Internal)),
        }
    }

    /// Returns the id of what asks, and of its ask, of a state that came back to the same tool.
    pub(super) fn asked_before(&self, of: &Of, state: &str) -> Result<(String, String), Refusal> {
        let asking = self.tokens().read_state(state, self.call.runtime.clock().now());
        let asking = asking.filter(|asking| asking.of == *of).ok_or_else(|| {
            self.request.invalid(
                "requestState is not valid; it is good for an hour, for the same user and tool",
            )
        })?;
        Ok((asking.run, asking.ask))
    }

    /// Returns the question that a task shows, with the id of its ask.
    pub(super) async fn open_question(
        &self,
        run: &Run,
        waiting: &[Suspension],
    ) -> Option<(String, Question)> {
        let asked = self.asked(run, waiting).await.filter(|asked| asked.may_answer)?;
        let question = Question::of(&asked.detail)?;
        Some((asked.detail.ask.id.to_string(), question))
    }

    /// Returns the first ask that the caller may answer, else the first one.
    async fn asked(&self, run: &Run, waiting: &[Suspension]) -> Option<Asked> {
        let (runtime, caller) = (&self.call.runtime, &self.call.caller);
        let may_resume = self.may(RouteName::ResumeExecution, run);
        let mut first = None;
        for suspension in waiting.iter().take(ASKS_MAX) {
            let Some(id) = &suspension.id else { continue };
            let found = inbox::find(runtime, &format!("{ASK_PREFIX}{id}"), caller).await;
            let Ok(ask) = found else { continue };
            let answerer = Some(caller.answerer(None));
            let access = AskAccess { answerer, ..AskAccess::default() };
            let may_answer = may_resume && access.check_asked(&ask).is_ok();
            let Ok(detail) = inbox::describe(runtime, ask).await else { continue };
            let asked = Asked { detail, may_answer };
            if may_answer {
                return Some(asked);
            }
            first.get_or_insert(asked);
        }
        first
    }

    /// Takes the answer to a question, which came back with its state.
    pub(super) async fn answer_question(
        &self,
        workflow: &str,
        state: &str,
        responses: &Responses,
        feed: Option<&Feed>,
    ) -> Outcome {
        let (execution, ask) = self.asked_before(&Of::Workflow(workflow.to_owned()), state)?;
        let execution = ExecutionId::parse(&execution).map_err(|_| self.request.invalid("run"))?;
        let run = Run { workflow: workflow.to_owned(), execution };
        match responses.of(&ask) {
            Some(Response::Accepted(content)) => {
                let data = self.answer_from(&ask, content).await;
                self.resume(&run, Some(&ask), data, feed).await
            }
            Some(Response::Declined) => self.decline(&run).await,
            None => self.stand(&run, None).await,
        }
    }

    /// Returns the answer to an ask from what a form has given.
    pub(super) async fn answer_from(&self, ask: &str, content: Value) -> Value {
        let (runtime, caller) = (&self.call.runtime, &self.call.caller);
        let Ok(ask) = inbox::find(runtime, ask, caller).await else { return content };
        match inbox::describe(runtime, ask).await {
            Ok(detail) => Question::answer(&detail, content),
            Err(_) => content,
        }
    }

    /// Answers for a person who does not: the execution still waits.
    async fn decline(&self, run: &Run) -> Outcome {
        let target = self.target(run);
        match executions::describe(&self.call.runtime, &target).await {
            Ok(state) => match Standing::of_state(&state) {
                Standing::Suspended(waiting) => {
                    Ok(suspended(run, &waiting, self.asked(run, &waiting).await.as_ref()))
                }
                standing => Ok(self.ended(run, &standing)),
            },
            Err(refusal) => self.refuse(&refusal),
        }
    }

    /// Carries out the tool that answers what an execution waits for.
    pub(super) async fn call_resume(
        &self,
        workflow: &str,
        params: CallParams,
        feed: Option<&Feed>,
    ) -> Outcome {
        if let Some(state) = &params.state {
            return self.answer_question(workflow, state, &params.responses, feed).await;
        }
        let read = ResumeArguments::read(params.arguments);
        let ResumeArguments { execution, ask, data } = match read {
            Ok(arguments) => arguments,
            Err(text) => return Ok(failed(&text, None)),
        };
        match ExecutionId::parse(&execution) {
            Ok(execution) => {
                let run = Run { workflow: workflow.to_owned(), execution };
                self.resume(&run, ask.as_deref(), data, feed).await
            }
            Err(_) => self.refuse(&ApiError::ExecutionNotFound(execution)),
        }
    }

    /// Resumes an execution and answers with what becomes of it; if another answer was first, with
    /// what is true now.
    async fn resume(
        &self,
        run: &Run,
        ask: Option<&str>,
        data: Value,
        feed: Option<&Feed>,
    ) -> Outcome {
        if !self.may(RouteName::ResumeExecution, run) {
            return self.refuse(&ApiError::ExecutionNotFound(run.execution.to_string()));
        }
        let resuming = self.resumed(run, ask, data, feed);
        let Some(resumed) = self.unless_gone(resuming).await else { return self.unheard() };
        match resumed {
            Ok(outcome) => self.settle(run, Standing::of_outcome(&outcome), None).await,
            Err(
                ApiError::SuspensionPassed { .. }
                | ApiError::NotSuspended(_)
                | ApiError::ExecutionAlready { .. },
            ) => self.stand(run, None).await,
            Err(
                refusal @ (ApiError::ResumeDataInvalid(_) | ApiError::Ask(AskRefusal::Refused(_))),
            ) if self.request.abilities().shows_forms => {
                self.stand(run, Some(&refusal.to_string())).await
            }
            Err(refusal) => self.refuse(&refusal),
        }
    }

    async fn resumed(
        &self,
        run: &Run,
        ask: Option<&str>,
        data: Value,
        feed: Option<&Feed>,
    ) -> Result<ExecutionOutcome, ApiError> {
        let (runtime, caller, target) = (&self.call.runtime, &self.call.caller, self.target(run));
        let suspension_id = ask.map(|ask| ask.strip_prefix(ASK_PREFIX).unwrap_or(ask).to_owned());
        let resume = ResumeExecution {
            suspension_id,
            data,
            by: caller.principal(None)?,
            answerer: Some(caller.answerer(None)),
            ..ResumeExecution::default()
        };
        let Some(feed) = feed else {
            return executions::resume(runtime, &target, Ok(resume)).await;
        };
        let after = executions::describe(runtime, &target).await?.last_seq;
        let resuming = executions::resume(runtime, &target, Ok(resume));
        feed.during(self, &target, after, resuming).await
    }

    /// Answers with what is true now, once the execution has left `running`.
    async fn stand(&self, run: &Run, refusal: Option<&str>) -> Outcome {
        let target: Target = self.target(run);
        let halted = self.call.runtime.state_when(&target, |state| state.status != Status::Running);
        match self.unless_gone(halted).await {
            Some(Ok(state)) => self.settle(run, Standing::of_state(&state), refusal).await,
            Some(Err(error)) => self.refuse(&ApiError::from_describe(&run.execution, error)),
            None => self.unheard(),
        }
    }
}
