//! Snapshots are read as they were written, and their format changes only with its version.

use std::sync::Arc;

use serde_json::{Value, json};

use super::*;
use crate::domain::fact::{Parent, Replayed, Reversal, Start, Suspension, Trace};
use crate::domain::failure::{AttemptError, ErrorClass, ErrorKind};
use crate::domain::ids::ExecutionId;
use crate::domain::principal::Principal;
use crate::domain::question::{Given, Question, Questions};
use crate::domain::state::{
    BegunCompensation, Child, Compensating, End, Hold, Node, Outcome, Phase, Resumed, Sequence,
    Wait,
};
use crate::domain::status::Status;
use crate::domain::time::Timestamp;
use crate::domain::trace::{EntityType, TraceOrigin};
use crate::domain::usage::Usage;

fn start() -> Start {
    Start {
        workflow_id: Arc::from("w"),
        definition_hash: Arc::from("h"),
        input: value(json!({ "n": 1 })),
        user_id: Some(Arc::from("ann")),
        conversation_id: Some(Arc::from("c")),
        context: value(json!({})),
        parent: Some(Parent { execution: ExecutionId::trusted("p"), path: Arc::from("a/b") }),
        depth: 1,
        replayed: Some(Box::new(Replayed {
            execution: ExecutionId::trusted("o"),
            step_id: Arc::from("s"),
            nodes: Vec::new(),
            answer: Some(value(json!(null))),
            by: Some(ann()),
            roles: None,
            is_claim: false,
        })),
        reversal: None,
        trace: Trace::of("e", EntityType::Workflow, &Arc::from("w"), TraceOrigin::New),
    }
}

fn ann() -> Arc<Principal> {
    Arc::new(Principal::claimed("ann"))
}

fn value(value: Value) -> Arc<Value> {
    Arc::new(value)
}

/// A node with a value in each written field; the input of a node is not written.
fn node(phase: Phase) -> Node {
    Node {
        phase,
        input: value(json!(null)),
        attempt: 2,
        failures: 1,
        interruptions: 3,
        resume: Some(value(json!(null))),
        resumed: Some(Box::new(Resumed {
            at: Timestamp(1004),
            by: Some(ann()),
            by_deadline: true,
            id: Some(Arc::from("5f1e")),
        })),
        questions: None,
        noted: None,
        asked: 5,
        started_at: Some(Timestamp(1001)),
        attempt_started_at: Timestamp(1002),
        phase_since: Timestamp(1003),
        errors: vec![AttemptError {
            attempt: 1,
            at: Timestamp(1001),
            message: Arc::from("boom"),
            class: Some(ErrorClass::http(503)),
        }],
        since_seq: 4,
        ended_at: Some(Timestamp(1005)),
        ended_order: 6,
        branches: Vec::new(),
        lanes: None,
        items: Vec::new(),
        chosen: None,
        child: None,
    }
}

fn child() -> Child {
    Child {
        id: ExecutionId::trusted("k"),
        workflow: Arc::from("part"),
        input: value(json!(2)),
        seq: 13,
        resumed: Some(Box::new(Resumed {
            at: Timestamp(1014),
            by: Some(ann()),
            by_deadline: false,
            id: Some(Arc::from("5f1e")),
        })),
        compensable: false,
    }
}

fn suspension() -> Suspension {
    Suspension {
        id: Some(Arc::from("5f1e")),
        by: Some(ann()),
        pause: false,
        payload_omitted: false,
        reason: Arc::from("why"),
        suspended_at: Timestamp(1010),
        step_id: Arc::from("s"),
        path: Arc::from("s"),
        step_index: 0,
        payload: Some(value(json!(1))),
        deadline: Some(Timestamp(1012)),
    }
}

/// A state with a node in each phase, and a value in each field.
fn everything() -> State {
    let wait = Wait {
        id: Arc::from("5f1e"),
        reason: Arc::from("why"),
        payload: Some(value(json!(1))),
        since: Timestamp(1010),
        seq: 11,
        deadline: Some(Timestamp(1012)),
        fired: true,
        ask: None,
    };
    let lifted = Resumed { at: Timestamp(1016), by: None, by_deadline: false, id: None };
    let inside = Sequence { data: value(json!(null)), nodes: vec![node(Phase::Cancelled)] };
    let phases = vec![
        node(Phase::Ready),
        Node { child: Some(child()), ..node(Phase::Running) },
        node(Phase::Waiting(Box::new(wait))),
        node(Phase::Sleeping { until: Timestamp(1014), fired: true, retry: false }),
        Node {
            branches: vec![inside],
            items: vec![value(json!(4))],
            chosen: Some(1),
            ..node(Phase::Completed { output: value(json!(null)) })
        },
        node(Phase::Failed {
            error: Arc::from("boom"),
            class: Some(ErrorClass::of(ErrorKind::Tool)),
            output: Some(value(json!(null))),
        }),
        node(Phase::Skipped),
    ];
    State {
        id: ExecutionId::trusted("e"),
        start: Box::new(start()),
        created_at: Timestamp(1000),
        updated_at: Timestamp(1020),
        next_seq: 21,
        root: Sequence { data: value(json!(null)), nodes: phases },
        replayed_data: Some(value(json!("in"))),
        hold: Some(Hold {
            id: Arc::from("a11b"),
            by: Some(ann()),
            reason: Arc::from("stop"),
            since: Timestamp(1015),
            seq: 16,
            step_index: 1,
        }),
        hold_data: Some(value(json!(true))),
        hold_lifted: Some(Box::new(lifted)),
        holds: 2,
        announced: Status::Suspended,
        announced_suspension: Some(Arc::new(suspension())),
        compensating: None,
        end: None,
        bytes: 7,
        memory: 24,
        facts_applied: 22,
        usage: Some(Box::new(Usage { total_tokens: 23, ..Usage::default() })),
    }
}

fn fresh() -> State {
    let start = Start { replayed: None, parent: None, ..start() };
    let state = State::begin(ExecutionId::trusted("e"), Box::new(start), Timestamp(1000));
    State { root: Sequence::new(value(json!(null))), ..state }
}

#[test]
fn a_state_is_read_as_it_was_written() {
    let ends = [
        Outcome::Completed { result: value(json!(1)) },
        Outcome::Failed { error: Arc::from("boom"), step_id: None, path: None, class: None },
        Outcome::Cancelled { reason: Arc::from("enough") },
    ];
    let ended = ends.map(|outcome| State {
        end: Some(End { at: Timestamp(1030), outcome, by: Some(ann()), compensates: true }),
        hold: None,
        ..everything()
    });
    for state in ended.into_iter().chain([fresh(), everything()]) {
        let written = write_snapshot(&state).unwrap();
        assert_eq!(read_snapshot(&written), Some(state));
    }
}

/// Simulates an execution of so many batches; returns the bytes of its facts and of all snapshots.
/// Asserts that the facts after a snapshot outweigh it by a constant at most.
fn written_over(batches: u64, facts_of_batch: u64, bytes_of_fact: u64) -> (u64, u64) {
    let mut state = fresh();
    let (mut mark, mut written, mut behind) = (SnapshotMark::default(), 0, 0);
    // The minimum counts events, and the batch in which a snapshot comes due is whole.
    let floor = (SNAPSHOT_EVERY + facts_of_batch) * bytes_of_fact;
    for _ in 0..batches {
        state.next_seq += facts_of_batch;
        state.facts_applied += facts_of_batch;
        state.bytes += facts_of_batch * (bytes_of_fact - FACT_BYTES);
        behind += facts_of_batch * bytes_of_fact;
        if mark.is_outgrown_by(&state, SNAPSHOT_EVERY) {
            // a state is about as large as its facts
            let size = state.facts_applied * bytes_of_fact;
            mark = SnapshotMark::of(&state, usize::try_from(size).unwrap());
            (written, behind) = (written + size, 0);
        }
        assert!(behind <= OUTWEIGHS * mark.size + floor, "{behind} behind {}", mark.size);
    }
    (state.facts_applied * bytes_of_fact, written)
}

#[test]
fn snapshots_cost_as_much_as_facts_however_long_an_execution_is() {
    for (batches, facts, bytes) in
        [(2, 500, 200), (20, 500, 120), (400, 500, 200), (400, 500, 20_000), (100_000, 2, 300)]
    {
        let (recorded, written) = written_over(batches, facts, bytes);
        let length = format!("{batches} batches of {facts} facts of {bytes} bytes");
        assert!(written <= 2 * recorded, "{length}: {written} for {recorded}");
    }
}

#[test]
fn an_ended_execution_takes_no_snapshot() {
    let outcome = Outcome::Cancelled { reason: "x".into() };
    let end = Some(End { at: Timestamp(1), outcome, by: None, compensates: false });
    let long = State { next_seq: 5_000, facts_applied: 5_000, ..fresh() };
    assert!(SnapshotMark::default().is_outgrown_by(&long, SNAPSHOT_EVERY));
    assert!(!SnapshotMark::default().is_outgrown_by(&State { end, ..long }, SNAPSHOT_EVERY));
}

/// Snapshots of this format are in files: after a change the next process would misread them, or
/// reject them. Raise [`FORM`], and store what is written now under the new number.
#[test]
fn the_format_changes_with_its_version_only() {
    for (form, state) in
        [(FORM, everything()), (FORM_COMPENSATING, reversing()), (FORM_ASKING, asking())]
    {
        let path = format!("{}/tests/forms/state-{form}.json", env!("CARGO_MANIFEST_DIR"));
        let kept = std::fs::read_to_string(&path).unwrap_or_else(|_| "null".to_owned());
        let written: Value = serde_json::from_slice(&write_snapshot(&state).unwrap()).unwrap();
        let of_file: Value = serde_json::from_str(&kept).unwrap();
        assert!(written == of_file, "raise {form}; {path} is to hold:\n{written:#}");
        assert_eq!(read_snapshot(kept.as_bytes()), Some(state));
    }
}

#[test]
fn compensations_of_the_version_before_reversals_are_read() {
    let path =
        format!("{}/tests/forms/state-{FORM_WITHOUT_REVERSALS}.json", env!("CARGO_MANIFEST_DIR"));
    let kept = std::fs::read_to_string(&path).unwrap();
    assert_eq!(read_snapshot(kept.as_bytes()), Some(compensating()));
}

#[test]
fn questions_of_the_version_before_notes_are_read() {
    let path =
        format!("{}/tests/forms/state-{FORM_WITHOUT_NOTES}.json", env!("CARGO_MANIFEST_DIR"));
    let mut asking = asking();
    let node = asking.root.nodes.last_mut().unwrap();
    node.noted = None;
    node.questions.as_mut().unwrap().before = None;
    assert_eq!(read_snapshot(&std::fs::read(&path).unwrap()), Some(asking));
}

/// Returns the state of an execution whose tool asks.
fn asking() -> State {
    let questions = Questions {
        newest: Arc::new(Question {
            schema: Some(json!({ "type": "string" })),
            can_decline: true,
            memo: Some(value(json!(["memo"]))),
        }),
        is_open: true,
        answers: vec![Given { data: value(json!("blue")), by: Some(ann()) }],
        before: Some(Given { data: value(json!({ "ok": true })), by: Some(ann()) }),
    };
    let mut state = everything();
    let noted = Some(value(json!("here")));
    let asks = Node { questions: Some(Box::new(questions)), noted, ..node(Phase::Running) };
    state.root.nodes.push(asks);
    state
}

/// Returns the state of a reversal that reverses a child in its turn.
fn reversing() -> State {
    let reversal = Reversal {
        execution: ExecutionId::trusted("o"),
        cause: value(json!({ "message": "no" })),
        nodes: Vec::new(),
    };
    let completed = Phase::Completed { output: value(json!(null)) };
    let reversed = Some(Child { compensable: true, ..child() });
    let mut state = compensating();
    *state.start = Start { replayed: None, reversal: Some(Box::new(reversal)), ..start() };
    state.root.nodes.push(Node { child: reversed, ..node(completed) });
    state
}

/// Returns a state with a compensation that has ended, one that asks, and one that is due.
fn compensating() -> State {
    let begun = |path: &str, phase| BegunCompensation {
        path: Arc::from(path),
        node: node(phase),
        skipped: false,
    };
    let failed = Phase::Failed { error: Arc::from("no"), class: None, output: None };
    State {
        compensating: Some(Box::new(Compensating {
            since: Timestamp(1016),
            outcome: Outcome::Cancelled { reason: Arc::from("enough") },
            by: Some(ann()),
            due: vec![Arc::from("a")],
            begun: vec![
                begun("c:compensate", Phase::Completed { output: value(json!(null)) }),
                begun("each[0]/b:compensate", failed),
            ],
        })),
        ..everything()
    }
}

#[test]
fn a_snapshot_of_another_version_is_ignored() {
    let written = String::from_utf8(write_snapshot(&fresh()).unwrap()).unwrap();
    let of_form = |form: u32| {
        let other = written.replace(&format!("\"form\":{FORM}"), &format!("\"form\":{form}"));
        assert_ne!(other, written);
        other
    };
    let (older, newer) = (of_form(FORM - 1), of_form(FORM_ASKING + 1));
    let bare = serde_json::to_string(&fresh()).unwrap();
    let truncated = &written[..written.len() - 1];
    let empty = format!("{{\"form\":{FORM},\"state\":{{}}}}");
    for other in [&*older, &newer, &bare, truncated, "", "[]", &empty] {
        assert_eq!(read_snapshot(other.as_bytes()), None, "{other}");
    }
}
