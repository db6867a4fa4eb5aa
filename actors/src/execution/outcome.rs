//! Outcomes of an execution, and the callers that wait for one.

use std::sync::Arc;

use actix::Context;

use crate::commands::{Answer, Refuse, ResumeRefusal, StartAnswer, StartRefusal};
use crate::domain::fact::{Ended, Fact, Recorded};
use crate::domain::ids::ExecutionId;
use crate::execution::ExecutionActor;
use crate::ports::store::{AppendError, Header, ReadError, Store};
use crate::requests::{
    DescribeError, ExecutionOutcome, Halted, ResumeError, StartError, Unavailable,
};
use tokio::sync::oneshot::Sender;

/// Callers that may wait for the outcome of one execution.
const WAITERS_MAX: usize = 10_000;
/// Facts per read when an outcome is looked up in the journal.
const OUTCOME_LOOKUP_PAGE: usize = 500;

/// A caller that waits for an outcome.
pub(super) struct Waiter {
    /// Event number after which an outcome is the caller's.
    pub(super) after_seq: u64,
    /// Last number of the append with the caller's own change: if the store rejects it, this caller
    /// gets the specific refusal.
    pub(super) own_append: Option<u64>,
    pub(super) answer: OutcomeAnswer,
}

/// Relation of a waiting caller to the next append.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Ownership {
    NextAppend,
    Nothing,
}

pub(super) enum OutcomeAnswer {
    Start(StartAnswer),
    Resume(Sender<Result<ExecutionOutcome, ResumeRefusal>>),
    Again(Answer<ExecutionOutcome, DescribeError>),
}

impl OutcomeAnswer {
    /// Returns true if the caller has disconnected.
    pub(super) fn is_closed(&self) -> bool {
        match self {
            Self::Start(StartAnswer::OnSettled(answer)) => answer.is_closed(),
            Self::Start(StartAnswer::AtStart(answer)) => answer.is_closed(),
            Self::Start(StartAnswer::Parent(answer)) => answer.is_closed(),
            Self::Resume(answer) => answer.is_closed(),
            Self::Again(answer) => answer.is_closed(),
        }
    }

    pub(super) fn give(self, outcome: &ExecutionOutcome) {
        match self {
            Self::Start(StartAnswer::OnSettled(answer)) => drop(answer.send(Ok(outcome.clone()))),
            Self::Resume(answer) => drop(answer.send(Ok(outcome.clone()))),
            Self::Again(answer) => drop(answer.send(Ok(outcome.clone()))),
            // These were answered at the start.
            Self::Start(StartAnswer::AtStart(_) | StartAnswer::Parent(_)) => {}
        }
    }

    /// Answers a caller whose own append was rejected: with the specific refusal if there is one,
    /// else with `why`.
    pub(super) fn refuse_append(self, id: &ExecutionId, error: &AppendError, why: &Unavailable) {
        match (self, error) {
            (Self::Start(answer), AppendError::Exists) => {
                answer.refuse(StartRefusal::Error(StartError::Exists(id.clone())));
            }
            (Self::Start(answer), AppendError::KeyTaken) => answer.refuse(StartRefusal::KeyTaken),
            (Self::Resume(answer), AppendError::KeyTaken) => {
                drop(answer.send(Err(ResumeRefusal::KeyTaken)));
            }
            (Self::Resume(answer), AppendError::Stale) => {
                // Another writer moved the execution on: this resume came too late.
                drop(answer.send(Err(ResumeError::NotSuspended.into())));
            }
            (other, _) => other.refuse(why.clone()),
        }
    }
}

impl Refuse for OutcomeAnswer {
    fn refuse(self, why: Unavailable) {
        match self {
            Self::Start(answer) => answer.refuse(why.into()),
            Self::Resume(answer) => answer.refuse(why),
            Self::Again(answer) => answer.refuse(why),
        }
    }
}

impl ExecutionActor {
    pub(super) fn wait_for_outcome(
        &mut self,
        after_seq: u64,
        answer: OutcomeAnswer,
        ownership: Ownership,
    ) {
        let Some(life) = &mut self.life else {
            answer.refuse(self.shared.ended_unanswered(&self.id));
            return;
        };
        if life.stopping.is_some() {
            self.leave_waiter(Waiter { after_seq, own_append: None, answer });
            return;
        }
        // Disconnected callers do not count.
        life.waiters.retain(|waiter| !waiter.answer.is_closed());
        if life.waiters.len() >= WAITERS_MAX {
            let execution = Some(self.id.clone());
            answer.refuse(Unavailable::Busy { execution });
            return;
        }
        let own_append = match ownership {
            Ownership::NextAppend => Some(life.machine.state().last_seq()),
            Ownership::Nothing => None,
        };
        life.waiters.push(Waiter { after_seq, own_append, answer });
    }

    /// Answers with the first outcome after a number: from the journal if it is there, else when it
    /// becomes durable.
    pub(super) fn await_outcome(
        &mut self,
        after_seq: u64,
        answer: OutcomeAnswer,
        ctx: &mut Context<Self>,
    ) {
        let Some(life) = &self.life else {
            answer.refuse(self.shared.ended_unanswered(&self.id));
            return;
        };
        let durable = life.durable_seq;
        let store = Arc::clone(&self.shared.store);
        let header = Arc::clone(&life.header);
        let look_up = async move { first_outcome(&*store, &header, after_seq, durable).await };
        self.query_for(answer, look_up, ctx, move |actor, answer, found, ctx| match found {
            Ok(Some(outcome)) => answer.give(&outcome),
            // More became durable during the read.
            Ok(None) if actor.life.as_ref().is_some_and(|life| life.durable_seq > durable) => {
                actor.await_outcome(durable, answer, ctx);
            }
            Ok(None) => actor.wait_for_outcome(durable, answer, Ownership::Nothing),
            Err(why) => answer.refuse(why.into()),
        });
    }
}

/// Returns the first outcome in the journal after `after`, up to `upto`.
async fn first_outcome(
    store: &dyn Store,
    header: &Header,
    after: u64,
    upto: u64,
) -> Result<Option<ExecutionOutcome>, ReadError> {
    let mut after = after;
    while after < upto {
        let page = store.facts(&header.id, after, OUTCOME_LOOKUP_PAGE).await?;
        let durable = page.iter().filter(|recorded| recorded.seq <= upto);
        if let Some(outcome) = durable.filter_map(|recorded| outcome_of(header, recorded)).next() {
            return Ok(Some(outcome));
        }
        after = page.last().map_or(upto, |last| last.next_seq() - 1);
    }
    Ok(None)
}

/// Returns the outcome that a fact describes, if it does.
pub(super) fn outcome_of(header: &Header, recorded: &Recorded) -> Option<ExecutionOutcome> {
    let (started_at, halted) = if let Some(Ended { since, how }) = recorded.fact.end() {
        (since, Halted::Ended { at: recorded.at, outcome: how.into() })
    } else if let Fact::WorkflowSuspended { since, suspension, others } = &recorded.fact {
        let suspension = Arc::new((**suspension).clone());
        let others = others.as_deref().cloned().map(Arc::new);
        (*since, Halted::Suspended { suspension, others })
    } else {
        return None;
    };
    let (execution_id, trace_id) = (header.id.clone(), Arc::clone(&header.trace.id));
    Some(ExecutionOutcome { execution_id, trace_id, started_at, halted })
}
