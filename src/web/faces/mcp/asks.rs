//! Asks of executions and agents: which are open, who may answer them, and the answers.

use std::sync::Arc;

use greenroom_actors::domain::fact::Suspension;
use greenroom_actors::ports::store::{ASK_PREFIX, Ask, AskState, AskSubject, AskedCall};
use greenroom_actors::requests::{AnswerAsk, AskAccess};
use serde_json::Value;

use super::session::Session;
use crate::api::catalogue::RouteName;
use crate::api::error::AskRefusal;
use crate::api::faces::mcp::{Asked, Question, Run};
use crate::api::{ApiError, inbox};

/// Suspensions among which one is looked for that the caller may answer.
const ASKS_MAX: usize = 10;

impl Session {
    /// Returns the first ask that the caller may answer, else the first one.
    pub(super) async fn asked(&self, run: &Run, waiting: &[Suspension]) -> Option<Asked> {
        let mut all = self.all_asked(run, waiting).await;
        let first = all.iter().position(|asked| asked.may_answer).unwrap_or_default();
        (first < all.len()).then(|| all.swap_remove(first))
    }

    /// Returns the open asks of an execution that the caller sees: of steps, and of calls that agents
    /// of steps want to make.
    pub(super) async fn all_asked(&self, run: &Run, waiting: &[Suspension]) -> Vec<Asked> {
        let (runtime, caller) = (&self.call.runtime, &self.call.caller);
        let ids = waiting.iter().take(ASKS_MAX).flat_map(ask_ids).take(ASKS_MAX);
        let mut all = Vec::new();
        for id in ids {
            let Ok(ask) = inbox::find(runtime, &id, caller).await else { continue };
            if ask.state != AskState::Open || !is_of(&ask, run) {
                continue;
            }
            let may_answer = self.may_answer(run, &ask);
            let Ok(detail) = inbox::describe(runtime, ask).await else { continue };
            all.push(Asked { detail, may_answer });
        }
        all
    }

    /// Returns true if the caller may answer an ask of the execution now, as in the inbox.
    fn may_answer(&self, run: &Run, ask: &Ask) -> bool {
        let may = match &ask.subject {
            AskSubject::Step(_) => self.may(RouteName::ResumeExecution, run),
            AskSubject::Call(of) => self.check_call(of).is_ok(),
        };
        may && self.is_asked(ask)
    }

    /// Returns true if the caller is one of those who are asked, and no other one has claimed it.
    pub(super) fn is_asked(&self, ask: &Ask) -> bool {
        self.access().check(ask, self.call.runtime.clock().now()).is_ok()
    }

    /// Checks that the caller may answer what a call of an agent asks, by the rules of its route.
    pub(super) fn check_call(&self, of: &AskedCall) -> Result<(), ApiError> {
        let ids = [(":id", &*of.agent_id), (":generationId", &*of.generation_id)];
        self.call.check_like(RouteName::CancelGeneration, &ids)
    }

    /// Answers an ask with what a form has given. One that is not as expected is not found.
    pub(super) async fn answer_form(
        &self,
        id: &str,
        content: Value,
        is_expected: impl Fn(&Ask) -> bool,
    ) -> Result<(), ApiError> {
        let (runtime, caller) = (&self.call.runtime, &self.call.caller);
        let ask = inbox::find(runtime, id, caller).await?;
        if !is_expected(&ask) {
            return Err(ApiError::Ask(AskRefusal::NotFound(id.to_owned())));
        }
        let detail = inbox::describe(runtime, ask).await?;
        let data = Question::answer(&detail, content);
        self.answer_ask(detail.ask, data).await
    }

    /// Answers an ask, as the inbox does.
    pub(super) async fn answer_ask(&self, ask: Ask, data: Value) -> Result<(), ApiError> {
        if let AskSubject::Call(of) = &ask.subject {
            self.check_call(of)?;
        }
        let id = Arc::clone(&ask.id);
        let (by, access) = (self.call.caller.principal(None)?, self.access());
        let answer = AnswerAsk { data, by, access, idempotency: None };
        let answered = self.call.runtime.answer_ask(ask, answer).await;
        answered.map(drop).map_err(|error| ApiError::from_ask(&id, error))
    }

    /// Returns the conditions of an answer of the caller.
    fn access(&self) -> AskAccess {
        AskAccess {
            answerer: Some(self.call.caller.answerer(None)),
            permissions: self.call.permissions(),
            ..AskAccess::default()
        }
    }
}

/// Returns why an answer has to be given again, if it has. After a lost race it has not: then the current
/// state counts. The error is one of the call.
pub(super) fn problem_of(answered: Result<(), ApiError>) -> Result<Option<String>, ApiError> {
    match answered {
        Err(
            refusal @ ApiError::Ask(
                AskRefusal::InvalidData(_)
                | AskRefusal::Refused(_)
                | AskRefusal::NotPermitted { .. },
            ),
        ) => Ok(Some(refusal.to_string())),
        Ok(())
        | Err(ApiError::Ask(
            AskRefusal::Answered { .. } | AskRefusal::Expired { .. } | AskRefusal::Withdrawn { .. },
        )) => Ok(None),
        Err(refusal) => Err(refusal),
    }
}

/// Returns the ids of the asks of a suspension: its own, and those of calls, which an agent has.
fn ask_ids(suspension: &Suspension) -> Vec<String> {
    let own = suspension.id.iter().map(|id| format!("{ASK_PREFIX}{id}"));
    let payload = suspension.payload.as_deref().and_then(|payload| payload.get("asks"));
    let calls = payload.and_then(Value::as_array).into_iter().flatten();
    let calls = calls.filter_map(|ask| Some(ask.get("askId")?.as_str()?.to_owned()));
    own.chain(calls).collect()
}

/// Returns true if the ask is one of the execution.
pub(super) fn is_of(ask: &Ask, run: &Run) -> bool {
    let step = match &ask.subject {
        AskSubject::Step(step) => Some(step),
        AskSubject::Call(call) => call.step.as_ref(),
    };
    step.is_some_and(|step| step.execution_id == run.execution)
}
