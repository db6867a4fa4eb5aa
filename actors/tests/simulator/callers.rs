//! Callers: they send requests, and check that what replies say is durable.

use std::sync::Arc;

use greenroom_actors::domain::fact::Fact;
use greenroom_actors::domain::ids::ExecutionId;
use greenroom_actors::domain::machine::Machine;
use greenroom_actors::ports::store::{ASK_PREFIX, AskState};
use greenroom_actors::requests::{
    AnswerAsk, AskAccess, AskError, ControlError, DescribeError, ExecutionOutcome, ExecutionState,
    IdempotencyKey, ResumeError, ResumeExecution, StartError, StartExecution, Target, TraceOrigin,
    Unavailable,
};
use greenroom_actors::{Runtime, visibility::Visibility};
use serde_json::{Map, Value, json};

use crate::simulator::cluster::laws::Asked;
use crate::simulator::promises::{
    Known, Promises, Wish, is_outcome, is_resumed, leaves_running, suspension_answered,
};
use crate::simulator::stage::Stage;

/// A caller of one process.
#[derive(Clone)]
pub(crate) struct Caller {
    pub(crate) stage: Arc<Stage>,
    pub(crate) promises: Arc<Promises>,
    pub(crate) runtime: Runtime,
    /// True if the process is one of several, whose refusals say what may be recorded.
    pub(crate) is_of_cluster: bool,
}

/// Returns true if the request need not be repeated.
pub(crate) type Settled = bool;

#[derive(Clone)]
pub(crate) struct Start {
    pub(crate) workflow: String,
    pub(crate) id: Option<ExecutionId>,
    pub(crate) token: u64,
    pub(crate) key: Option<String>,
}

#[derive(Clone)]
pub(crate) struct Answer {
    pub(crate) step_id: Option<String>,
    pub(crate) suspension_id: Option<String>,
    pub(crate) is_right: bool,
    /// True if it is about a compensation that failed.
    pub(crate) is_about_compensation: bool,
    pub(crate) token: u64,
    pub(crate) key: Option<String>,
}

impl Answer {
    fn data(&self) -> Value {
        let Self { is_right, token, .. } = self;
        if self.is_about_compensation {
            let action = if token % 2 == 0 { "retry" } else { "skip" };
            let action = if *is_right { action } else { "neither" };
            return json!({ "action": action, "output": { "n": token } });
        }
        json!({ "ok": if *is_right { json!(true) } else { json!(1) }, "n": token })
    }
}

pub(crate) fn start_of(start: &Start) -> StartExecution {
    let Start { workflow, id, token, key } = start;
    StartExecution {
        workflow_id: workflow.clone(),
        execution_id: id.clone(),
        input: json!({ "n": token }),
        user_id: None,
        conversation_id: None,
        context: Map::new(),
        idempotency: key.as_deref().map(|key| key_of(key, &token.to_string())),
        trace: TraceOrigin::New,
    }
}

fn key_of(scope: &str, body: &str) -> IdempotencyKey {
    IdempotencyKey { scope: Arc::from(scope), body_hash: Arc::from(body) }
}

pub(crate) fn target(workflow: &str, id: &ExecutionId) -> Target {
    Target {
        workflow_id: workflow.to_owned(),
        execution_id: id.clone(),
        visibility: Visibility::Everything,
    }
}

impl Caller {
    pub(crate) async fn execute(self, start: Start) -> Settled {
        let what = format!(
            "execute {} as {:?} n {} key {:?}",
            start.workflow, start.id, start.token, start.key
        );
        self.stage.note(&what);
        let reply = self.runtime.execute(start_of(&start)).await;
        let known = match &reply {
            Ok(outcome) => {
                self.is_recorded(outcome, None);
                Known::Granted
            }
            Err(StartError::Unavailable(why)) => self.known_of(why),
            Err(
                StartError::UnknownWorkflow(_)
                | StartError::InvalidInput(_)
                | StartError::Exists(_)
                | StartError::KeyReused,
            ) => Known::Refused,
        };
        let is_settled = !matches!(reply, Err(StartError::Unavailable(_)));
        let reply = reply.map(|reply| reply.status());
        self.note_reply(&what, &reply, (Wish::Execute, start.token), known);
        is_settled
    }

    pub(crate) async fn resume(self, target: Target, answer: Answer) -> Settled {
        let data = answer.data();
        let Answer { step_id, suspension_id, is_right, token, key, .. } = answer;
        let id = &target.execution_id;
        let what = format!(
            "resume {id} {step_id:?} {suspension_id:?} right {is_right} n {token} key {key:?}"
        );
        self.stage.note(&what);
        let has_key = key.is_some();
        let idempotency = key.map(|key| key_of(&format!("{id} {key}"), &token.to_string()));
        let (sent_ms, was_resumed) =
            (self.stage.clock.elapsed_ms(), is_resumed(&self.stage, token));
        let asked = Asked::now(&self, id);
        let meant = suspension_id.clone();
        let request =
            ResumeExecution { step_id, suspension_id, data, idempotency, ..Default::default() };
        let reply = self.runtime.resume(&target, request).await;
        if let Some(meant) = meant {
            self.answers_only(&target.execution_id, token, &meant);
        }
        let known = match &reply {
            Ok(outcome) => {
                self.is_recorded(outcome, Some(token));
                Known::Granted
            }
            Err(ResumeError::Unavailable(why)) => self.known_of(why),
            Err(error @ (ResumeError::NotFound | ResumeError::NotSuspended)) => {
                asked.refuses_resume(error);
                Known::Refused
            }
            Err(
                ResumeError::UnknownStep(_)
                | ResumeError::StepNotSuspended(_)
                | ResumeError::Ambiguous { .. }
                | ResumeError::SeveralWait { .. }
                | ResumeError::AsksOpen(_)
                | ResumeError::SuspensionPassed { .. }
                | ResumeError::InvalidData(_)
                | ResumeError::NotAssigned
                | ResumeError::Refused(_)
                | ResumeError::KeyReused,
            ) => Known::Refused,
        };
        // with a key, a request after the resume gets the first answer
        let is_at_once = self.stage.clock.elapsed_ms() == sent_ms;
        let is_late = was_resumed || is_at_once && is_resumed(&self.stage, token);
        let is_settled = !matches!(reply, Err(ResumeError::Unavailable(_)));
        let is_refused = is_settled && known == Known::Refused;
        self.stage.require(!(has_key && is_refused && is_late), || {
            format!("{what}: refused, and the record has it")
        });
        let reply = reply.map(|reply| reply.status());
        self.note_reply(&what, &reply, (Wish::Resume, token), known);
        is_settled
    }

    /// Answers the ask of a suspension. Its execution is that of the target, or a child.
    pub(crate) async fn answer(self, target: Target, answer: Answer) -> Settled {
        let data = answer.data();
        let Answer { suspension_id, is_right, token, key, .. } = answer;
        let id = &target.execution_id;
        let meant = suspension_id.unwrap_or_default();
        let what = format!("answer {id} {meant} right {is_right} n {token} key {key:?}");
        self.stage.note(&what);
        let has_key = key.is_some();
        let (sent_ms, was_resumed) =
            (self.stage.clock.elapsed_ms(), is_resumed(&self.stage, token));
        let idempotency = key.map(|key| key_of(&format!("answer {id} {key}"), &token.to_string()));
        let asked =
            self.runtime.find_ask(&format!("{ASK_PREFIX}{meant}"), &Visibility::Everything).await;
        let reply = match asked {
            Ok(ask) => {
                let answer =
                    AnswerAsk { data, by: None, access: AskAccess::default(), idempotency };
                self.runtime.answer_ask(ask, answer).await
            }
            Err(error) => Err(error),
        };
        self.answers_only(id, token, &meant);
        let known = match &reply {
            Ok(detail) => {
                let is_so =
                    detail.ask.state == AskState::Answered && is_resumed(&self.stage, token);
                self.stage.require(is_so, || format!("{what}: the record does not have it"));
                Known::Granted
            }
            Err(AskError::Unavailable(why)) => self.known_of(why),
            Err(
                AskError::NotFound
                | AskError::Closed { .. }
                | AskError::Changed { .. }
                | AskError::NotAssigned { .. }
                | AskError::NotPermitted { .. }
                | AskError::Refused(_)
                | AskError::Ambiguous { .. }
                | AskError::Claimed { .. }
                | AskError::InvalidData(_)
                | AskError::KeyReused,
            ) => Known::Refused,
        };
        // with a key, a request after the answer gets the same
        let is_at_once = self.stage.clock.elapsed_ms() == sent_ms;
        let is_late = was_resumed || is_at_once && is_resumed(&self.stage, token);
        let is_settled = !matches!(reply, Err(AskError::Unavailable(_)));
        let is_refused = is_settled && known == Known::Refused;
        self.stage.require(!(has_key && is_refused && is_late), || {
            format!("{what}: refused, and the record has it")
        });
        let reply = reply.map(|detail| detail.ask.state);
        self.note_reply(&what, &reply, (Wish::Resume, token), known);
        is_settled
    }

    /// Requires that an answer that names a suspension is not recorded for another one.
    fn answers_only(&self, id: &ExecutionId, token: u64, meant: &str) {
        for projection in self.stage.executions() {
            let facts = self.stage.facts(&projection.header.id);
            let answered = suspension_answered(&facts, token);
            let is_it = answered.as_deref().is_none_or(|answered| answered == meant);
            self.stage.require(is_it, || {
                format!("{id}: resume {token} was for {meant}, and answered {answered:?}")
            });
        }
    }

    pub(crate) async fn suspend(self, target: Target) -> Settled {
        let asked = Asked::now(&self, &target.execution_id);
        let token = self.stage.token();
        let what = format!("suspend {} n {token}", target.execution_id);
        self.stage.note(&what);
        let reply = self.runtime.suspend(&target, Some(format!("hold {token}")), None).await;
        let reply = reply.map(|reply| reply.reason);
        self.note_control(&what, &reply, (Wish::Suspend, token), &asked)
    }

    pub(crate) async fn cancel(self, target: Target) -> Settled {
        let asked = Asked::now(&self, &target.execution_id);
        let token = self.stage.token();
        let what = format!("cancel {} n {token}", target.execution_id);
        self.stage.note(&what);
        let reply = self.runtime.cancel(&target, Some(format!("cancel {token}")), None).await;
        if let Ok(reply) = &reply {
            let ended = self.stage.projection(&reply.execution_id);
            let has_ended = ended.is_some_and(|found| found.status.is_terminal());
            let is_durable = has_ended || reply.compensates && self.compensates(&target);
            self.stage.require(is_durable, || format!("{what}: not durable at its reply"));
        }
        let reply = reply.map(|reply| reply.reason);
        self.note_control(&what, &reply, (Wish::Cancel, token), &asked)
    }

    fn compensates(&self, target: &Target) -> bool {
        let facts = self.stage.facts(&target.execution_id);
        facts.iter().any(|it| matches!(it.fact, Fact::CompensationStarted { .. }))
    }

    /// Notes the reply to a suspend or cancel.
    fn note_control(
        &self,
        what: &str,
        reply: &Result<Arc<str>, ControlError>,
        wished: (Wish, u64),
        asked: &Asked,
    ) -> Settled {
        let known = match reply {
            Ok(_) => Known::Granted,
            Err(ControlError::Unavailable(why)) => self.known_of(why),
            Err(
                error @ (ControlError::NotFound
                | ControlError::Already(_)
                | ControlError::Compensating),
            ) => {
                asked.refuses_control(error);
                Known::Refused
            }
        };
        self.note_reply(what, reply, wished, known);
        !matches!(reply, Err(ControlError::Unavailable(_)))
    }

    pub(crate) async fn describe(self, target: Target) -> Settled {
        let asked = Asked::now(&self, &target.execution_id);
        match self.runtime.describe(&target).await {
            Ok(state) => {
                asked.shows(state.last_seq);
                self.is_durable(&state);
            }
            Err(DescribeError::NotFound) => {
                // it may be durable by now, but a later read would have found it
                self.stage.note(&format!("{} is not found", target.execution_id));
                asked.finds_nothing();
            }
            Err(DescribeError::Unavailable(_)) => return false,
        }
        true
    }

    /// Returns what a refusal says: one without an execution, that nothing of the request is or
    /// will be recorded.
    fn known_of(&self, why: &Unavailable) -> Known {
        match why {
            Unavailable::Draining { execution: None }
            | Unavailable::Busy { execution: None }
            | Unavailable::Moved { execution: None }
            | Unavailable::Store { execution: None, .. }
            | Unavailable::TooLarge
            | Unavailable::Unreachable
            | Unavailable::NoMemory
                if self.is_of_cluster =>
            {
                Known::Refused
            }
            _ => Known::Nothing,
        }
    }

    pub(super) fn note_reply<T: std::fmt::Debug, E: std::fmt::Debug>(
        &self,
        what: &str,
        reply: &Result<T, E>,
        (wish, token): (Wish, u64),
        known: Known,
    ) {
        self.stage.note(&format!("  {what}: {reply:?}"));
        let reply = reply.as_ref().map_or_else(|error| format!("{error:?}"), |_| "Ok".to_owned());
        let word = reply.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
        self.stage.count(&format!("{wish:?} {word}"));
        self.promises.add(wish, token, known);
    }

    /// Requires that the outcome in a reply is durable. A start returns the first outcome of its
    /// execution, a resume one after the resume.
    fn is_recorded(&self, reply: &ExecutionOutcome, resumed_with: Option<u64>) {
        let facts = self.stage.facts(&reply.execution_id);
        let token = resumed_with.map(|token| format!("\"n\":{token}"));
        let resumed = token.and_then(|token| {
            facts.iter().position(|recorded| {
                serde_json::to_string(&recorded.fact).is_ok_and(|text| text.contains(&token))
            })
        });
        let is_so = match resumed_with {
            None => {
                facts.iter().find(|it| leaves_running(it)).is_some_and(|it| is_outcome(it, reply))
            }
            Some(_) => facts.iter().skip(resumed.unwrap_or(0)).any(|it| is_outcome(it, reply)),
        };
        self.stage.require(is_so, || format!("the outcome {reply:?} is not in the record"));
    }

    /// Requires that the state shown follows from durable facts.
    fn is_durable(&self, state: &ExecutionState) {
        let id = &state.header.id;
        let facts = self.stage.facts(id);
        let Some(plan) = self.stage.plans.get(&*state.header.workflow_id) else { return };
        let shows = |count: usize| {
            let folded = Machine::replay(Arc::clone(plan), id.clone(), &facts[..count]).unwrap();
            let folded = folded.state();
            folded.last_seq() == state.last_seq
                && folded.announced == state.status
                && folded.steps(plan) == state.steps
        };
        let is_shown = (1..=facts.len())
            .rev()
            .filter(|count| facts[count - 1].next_seq() - 1 <= state.last_seq)
            .take_while(|count| facts[count - 1].next_seq() - 1 == state.last_seq)
            .any(shows);
        self.stage.require(is_shown, || {
            format!(
                "{id} is shown as {:?} at {}, which does not follow from durable facts",
                state.status, state.last_seq
            )
        });
    }
}
