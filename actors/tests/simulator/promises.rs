//! Replies to callers, compared with the record. Each request carries a unique number, by which it
//! is found there.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use greenroom_actors::domain::fact::{Fact, Recorded, ResumedBy};
use greenroom_actors::domain::state::Outcome;
use greenroom_actors::ports::store::Projection;
use greenroom_actors::requests::ExecutionOutcome;
use serde_json::Value;

use crate::simulator::approvals;
use crate::simulator::stage::Stage;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Wish {
    Execute,
    Resume,
    Suspend,
    Cancel,
    Approve,
}

/// Knowledge of a caller about its request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Known {
    /// It was carried out.
    Granted,
    /// It was not and will not be carried out.
    Refused,
    /// Unknown: the process ended, or the store failed.
    Nothing,
}

#[derive(Default)]
pub(crate) struct Promises(Mutex<Vec<(Wish, u64, Known)>>);

impl Promises {
    pub(crate) fn add(&self, wish: Wish, token: u64, known: Known) {
        self.0.lock().unwrap().push((wish, token, known));
    }

    /// Checks that each granted request is recorded once, that none refused to all is recorded, and
    /// none twice. A request with a key may be refused to an early caller and granted to another.
    pub(crate) fn check(&self, stage: &Stage) {
        let mut found: BTreeMap<(Wish, u64), u64> = BTreeMap::new();
        for projection in stage.executions() {
            for recorded in stage.facts(&projection.header.id) {
                if let Some(wish) = wish_of(&recorded.fact, &projection) {
                    *found.entry(wish).or_default() += 1;
                }
            }
        }
        for (token, times) in approvals::recorded(stage) {
            found.insert((Wish::Approve, token), times);
        }
        for ((wish, token), times) in &found {
            stage.require(*times == 1, || format!("{wish:?} {token} is recorded {times} times"));
        }
        let mut replies: BTreeMap<(Wish, u64), Vec<Known>> = BTreeMap::new();
        for (wish, token, known) in self.0.lock().unwrap().iter() {
            replies.entry((*wish, *token)).or_default().push(*known);
        }
        for (wish, known) in replies {
            let times = found.get(&wish).copied().unwrap_or(0);
            let is_granted = known.contains(&Known::Granted);
            let is_refused = known.iter().all(|known| *known == Known::Refused);
            let is_kept = !(is_granted && times != 1 || is_refused && times != 0);
            stage.require(is_kept, || {
                format!("{wish:?}: its callers know {known:?}, the record has it {times} times")
            });
        }
    }
}

/// Returns true if a resume is durable.
pub(crate) fn is_resumed(stage: &Stage, token: u64) -> bool {
    stage.executions().iter().any(|projection| {
        let facts = stage.facts(&projection.header.id);
        facts.iter().any(|it| wish_of(&it.fact, projection) == Some((Wish::Resume, token)))
    })
}

/// Returns the suspension that a resume answered, if it is durable. Suspensions of a hold are not
/// in its facts.
pub(crate) fn suspension_answered(facts: &[Recorded], token: u64) -> Option<Arc<str>> {
    let mut waiting = BTreeMap::new();
    for recorded in facts {
        match &recorded.fact {
            Fact::StepSuspended { path, id, .. } => drop(waiting.insert(path, id.clone())),
            Fact::StepResumed { path, data, .. } => {
                let answered = waiting.remove(path).flatten();
                if token_of(data) == Some(token) {
                    return answered;
                }
            }
            _ => {}
        }
    }
    None
}

/// Checks that ids of suspensions are unique.
pub(crate) fn suspension_ids_are_unique(stage: &Stage) {
    let mut seen = BTreeSet::new();
    for projection in stage.executions() {
        for recorded in stage.facts(&projection.header.id) {
            if let Fact::StepSuspended { path, id, .. } = &recorded.fact {
                let is_new = id.as_ref().is_some_and(|id| seen.insert(Arc::clone(id)));
                stage.require(is_new, || {
                    format!(
                        "{} {path}: the suspension {id:?} was there before",
                        projection.header.id
                    )
                });
            }
        }
    }
}

/// Returns the number in an input or an answer. Answers about a compensation have it in `output`.
fn token_of(value: &Value) -> Option<u64> {
    value.get("n").or_else(|| value.get("output")?.get("n"))?.as_u64()
}

/// Returns the request that a fact carries out.
fn wish_of(fact: &Fact, projection: &Projection) -> Option<(Wish, u64)> {
    let number = |value: &Value| token_of(value).filter(|n| *n >= 100);
    match fact {
        Fact::WorkflowStarted(start) if projection.header.parent.is_none() => {
            Some((Wish::Execute, number(&start.input)?))
        }
        Fact::StepResumed { data, by: ResumedBy::Caller, .. } | Fact::HoldLifted { data } => {
            Some((Wish::Resume, number(data)?))
        }
        Fact::HoldPlaced { reason, .. } => {
            Some((Wish::Suspend, reason.strip_prefix("hold ")?.parse().ok()?))
        }
        Fact::WorkflowCancelled { reason, .. } => {
            Some((Wish::Cancel, reason.strip_prefix("cancel ")?.parse().ok()?))
        }
        _ => None,
    }
}

/// Returns true if the fact matches the reply.
pub(crate) fn is_outcome(recorded: &Recorded, reply: &ExecutionOutcome) -> bool {
    let end = reply.end();
    match &recorded.fact {
        Fact::WorkflowSuspended { suspension, .. } => reply.suspension() == Some(&**suspension),
        Fact::WorkflowCompleted { result, .. } => {
            end.and_then(Outcome::result).is_some_and(|given| given == result)
        }
        Fact::WorkflowFailed { error, .. } => {
            reply.failure().is_some_and(|failure| failure.message == *error)
        }
        Fact::WorkflowCancelled { reason, .. } => {
            end == Some(&Outcome::Cancelled { reason: Arc::clone(reason) })
        }
        _ => false,
    }
}

/// Returns true if a fact answers waiting callers.
pub(crate) fn leaves_running(recorded: &Recorded) -> bool {
    matches!(recorded.fact, Fact::WorkflowSuspended { .. }) || recorded.fact.end().is_some()
}
