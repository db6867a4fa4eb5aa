//! Nodes that begin and cease to wait.

use std::sync::Arc;

use serde_json::Value;

use crate::assignment::AskRules;
use crate::fact::{Recorded, ResumedBy};
use crate::question::{Question, Questions};
use crate::state::node::{Node, Phase, Resumed, Wait};
use crate::time::Timestamp;

/// Deadline, rules and question of a suspension.
pub(super) type Asked<'f> =
    (Option<Timestamp>, &'f Option<Arc<AskRules>>, &'f Option<Arc<Question>>);

/// Lets a node wait.
pub(super) fn wait(
    node: &mut Node,
    (id, reason, payload): (&Option<Arc<str>>, &Arc<str>, &Option<Arc<Value>>),
    (deadline, ask, question): Asked<'_>,
    recorded: &Recorded,
) {
    let Recorded { seq, at, .. } = *recorded;
    node.started_at.get_or_insert(at);
    node.asked += 1;
    // older than the memo of a question
    node.noted = None;
    node.phase = Phase::Waiting(Box::new(Wait {
        // Derived from the number of suspensions if the fact has none.
        id: id.clone().unwrap_or_default(),
        reason: Arc::clone(reason),
        payload: payload.clone(),
        since: at,
        seq,
        deadline,
        fired: false,
        ask: ask.clone(),
    }));
    if let Some(newest) = question {
        match &mut node.questions {
            Some(questions) => questions.add(newest),
            None => node.questions = Some(Questions::first(newest, node.given())),
        }
    }
}

/// Records that the timer of a node is due.
pub(super) fn fire(node: &mut Node) {
    if let Phase::Sleeping { fired, .. } = &mut node.phase {
        *fired = true;
    } else if let Phase::Waiting(wait) = &mut node.phase {
        wait.fired = true;
    }
}

/// Ends the wait of a node.
pub(super) fn resume(node: &mut Node, data: &Arc<Value>, by: ResumedBy, recorded: &Recorded) {
    let Recorded { at, by: caller, .. } = recorded;
    let (at, by, by_deadline) = (*at, caller.clone(), by == ResumedBy::Deadline);
    node.resume = Some(Arc::clone(data));
    if let Some(questions) = &mut node.questions {
        questions.answer(data, by.as_ref());
    }
    let id = node.wait_id();
    node.resumed = Some(Box::new(Resumed { at, by, by_deadline, id }));
    node.phase = Phase::Ready;
}

/// Records that the child of a node was resumed.
pub(super) fn set_child_resumed(node: &mut Node, Recorded { at, by, .. }: &Recorded) {
    let id = node.wait_id();
    if let Some(child) = &mut node.child {
        let (at, by) = (*at, by.clone());
        child.resumed = Some(Box::new(Resumed { at, by, by_deadline: false, id }));
    }
    node.phase = Phase::Running;
}

/// Records the number of the newest event of a child.
pub(super) fn set_child_seq(node: &mut Node, seq: u64) {
    if let Some(child) = &mut node.child {
        child.seq = seq;
    }
}
