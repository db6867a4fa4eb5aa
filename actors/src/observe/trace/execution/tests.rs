//! Facts of executions, and the spans derived from them.

mod attributes;
mod compensations;

use std::fmt::Write;
use std::sync::Arc;

use serde_json::{Value, json};

use super::*;
use crate::domain::fact::{AfterFailure, ResumedBy, Start};
use crate::domain::trace::{Anchor, EntityType, RootRow, TraceOrigin};
use crate::observe::span::SpanPhase;
use crate::observe::trace::latest_of;

pub(crate) fn header_of(id: &str) -> Arc<Header> {
    let workflow_id: Arc<str> = Arc::from("order");
    let trace = Trace::of(id, EntityType::Workflow, &workflow_id, TraceOrigin::New);
    let trace = Trace { anchor: Anchor::of(RootRow::Execution(7)), ..trace };
    Arc::new(Header {
        id: ExecutionId::trusted(id),
        workflow_id,
        definition_hash: Arc::from("h"),
        user_id: Some(Arc::from("ann")),
        conversation_id: None,
        parent: None,
        trace,
        created_at: Timestamp(0),
    })
}

fn at(ms: i64, fact: Fact) -> Recorded {
    Recorded { seq: 0, at: Timestamp(ms), fact, by: None }
}

pub(crate) fn started() -> Recorded {
    let header = header_of("e");
    let start = Start {
        workflow_id: Arc::from("order"),
        definition_hash: Arc::from("h"),
        input: Arc::new(json!({ "n": 1 })),
        user_id: None,
        conversation_id: None,
        context: Arc::new(Value::Null),
        parent: None,
        depth: 0,
        replayed: None,
        reversal: None,
        trace: header.trace.clone(),
    };
    at(0, Fact::WorkflowStarted(Box::new(start)))
}

pub(crate) fn completed() -> Recorded {
    at(90, Fact::WorkflowCompleted { since: Timestamp(0), result: Arc::new(json!(2)) })
}

fn cancelled() -> Recorded {
    let (since, reason) = (Timestamp(0), Arc::from("enough"));
    at(90, Fact::WorkflowCancelled { since, reason, compensates: false })
}

/// Facts of steps. Each attempt begins 10 ms after the previous one.
pub(crate) struct Story;

impl Story {
    fn since(attempt: u32) -> Timestamp {
        Timestamp(i64::from(attempt) * 10)
    }

    pub(crate) fn step(path: &str, attempt: u32) -> Recorded {
        let fact =
            Fact::StepStarted { path: Arc::from(path), attempt, interrupted: false, opening: None };
        Recorded { seq: 0, at: Self::since(attempt), fact, by: None }
    }

    pub(crate) fn done(path: &str, attempt: u32) -> Recorded {
        let (path, since, compensable) = (Arc::from(path), Self::since(attempt), false);
        let output = Arc::new(json!("out"));
        at(
            80,
            Fact::StepCompleted {
                path,
                attempt,
                since,
                output,
                usage: None,
                compensable,
                skipped: false,
                mcp: None,
            },
        )
    }

    fn failed(ms: i64, path: &str, attempt: u32, next: AfterFailure) -> Recorded {
        let (path, since) = (Arc::from(path), Self::since(attempt));
        let error = Arc::from("no luck");
        at(
            ms,
            Fact::StepFailed {
                path,
                attempt,
                since,
                error,
                class: None,
                next,
                usage: None,
                mcp: None,
            },
        )
    }

    pub(crate) fn cancelled(path: &str, attempt: u32) -> Recorded {
        let (path, since) = (Arc::from(path), Self::since(attempt));
        at(85, Fact::StepCancelled { path, attempt, since })
    }

    fn suspended(ms: i64, path: &str) -> Recorded {
        let (path, reason) = (Arc::from(path), Arc::from("ask"));
        let fact = Fact::StepSuspended {
            path,
            reason,
            payload: None,
            deadline: None,
            id: None,
            ask: None,
            question: None,
            mcp: None,
        };
        Recorded { seq: ms.unsigned_abs(), ..at(ms, fact) }
    }

    fn resumed(ms: i64, path: &str) -> Recorded {
        let (path, data) = (Arc::from(path), Arc::new(Value::Null));
        at(ms, Fact::StepResumed { path, data, by: ResumedBy::Caller, id: None })
    }
}

/// Formats the spans of a story, one per line: name and attempt, parent, start, end and status.
fn picture(facts: &[Recorded]) -> String {
    let events = spans_of_record(&header_of("e"), facts);
    let spans = latest_of(events);
    let label = |span: &Span| match &span.work {
        SpanWork::Step { path, attempt, .. } => format!("{path}#{attempt}"),
        SpanWork::Wait { path, .. } => format!("wait {}", path.as_deref().unwrap_or("-")),
        _ => "root".to_owned(),
    };
    let mut lines = String::new();
    for span in &spans {
        let parent = span.parent.map(|id| spans.iter().find(|span| span.id == id).map(label));
        let parent = match parent {
            None => "nothing".to_owned(),
            Some(known) => known.unwrap_or_else(|| "unknown".to_owned()),
        };
        let end = span.end.map_or_else(|| "-".to_owned(), |end| end.0.to_string());
        let status = match &span.status {
            SpanStatus::Unset => "unset",
            SpanStatus::Ok => "ok",
            SpanStatus::Error(message) => message,
        };
        let (name, start) = (label(span), span.start.0);
        writeln!(lines, "{name} in {parent} {start}..{end} {status}").unwrap();
    }
    lines
}

/// Name, facts and expected spans of a story.
type Row = (&'static str, Vec<Recorded>, &'static str);

fn path() -> StepPath {
    Arc::from("a")
}

fn attempts() -> Vec<Row> {
    let retry = || AfterFailure::Retry { until: Timestamp(20) };
    vec![
        (
            "a step that is done",
            vec![started(), Story::step("a", 1), Story::done("a", 1), completed()],
            "root in nothing 0..90 ok\na#1 in root 10..80 ok\n",
        ),
        (
            "what has not ended",
            vec![started(), Story::step("a", 1)],
            "root in nothing 0..- unset\na#1 in root 10..- unset\n",
        ),
        (
            "a condition that did not hold",
            vec![started(), at(5, Fact::StepSkipped { path: path() }), completed()],
            "root in nothing 0..90 ok\n",
        ),
        (
            "another attempt: the pause before it is a gap",
            vec![
                started(),
                Story::step("a", 1),
                Story::failed(15, "a", 1, retry()),
                Story::step("a", 2),
                Story::done("a", 2),
                completed(),
            ],
            "root in nothing 0..90 ok\na#1 in root 10..15 no luck\na#2 in root 20..80 ok\n",
        ),
        (
            "a cancel in the pause before another attempt",
            vec![
                started(),
                Story::step("a", 1),
                Story::failed(15, "a", 1, retry()),
                Story::cancelled("a", 1),
                cancelled(),
            ],
            "root in nothing 0..90 cancelled: enough\na#1 in root 10..15 no luck\n",
        ),
    ]
}

fn ends() -> Vec<Row> {
    vec![
        (
            "a failure ends the execution",
            vec![
                started(),
                Story::step("a", 1),
                Story::failed(15, "a", 1, AfterFailure::Fail),
                at(
                    16,
                    Fact::WorkflowFailed {
                        since: Timestamp(0),
                        error: Arc::from("no luck"),
                        step_id: Some(Arc::from("a")),
                        path: None,
                        class: None,
                    },
                ),
            ],
            "root in nothing 0..16 no luck\na#1 in root 10..15 no luck\n",
        ),
        (
            "a cancel ends what is open",
            vec![
                started(),
                Story::step("a", 1),
                Story::step("a/left/b", 2),
                Story::cancelled("a/left/b", 2),
                Story::cancelled("a", 1),
                cancelled(),
            ],
            "root in nothing 0..90 cancelled: enough\n\
             a#1 in root 10..85 cancelled\na/left/b#2 in a#1 20..85 cancelled\n",
        ),
        (
            "a crash",
            vec![
                started(),
                Story::step("a", 1),
                at(
                    20,
                    Fact::StepStarted {
                        path: path(),
                        attempt: 2,
                        interrupted: true,
                        opening: None,
                    },
                ),
                Story::done("a", 2),
            ],
            "root in nothing 0..- unset\na#1 in root 10..20 interrupted\na#2 in root 20..80 ok\n",
        ),
        (
            "a stop in order",
            vec![
                started(),
                Story::step("a", 1),
                at(15, Fact::StepReleased { path: path(), attempt: 1, since: Timestamp(10) }),
                Story::step("a", 2),
            ],
            "root in nothing 0..- unset\na#1 in root 10..15 interrupted\na#2 in root 20..- unset\n",
        ),
    ]
}

fn pauses() -> Vec<Row> {
    vec![
        (
            "a sleep is its step's attempt",
            vec![
                started(),
                at(10, Fact::StepSlept { path: path(), attempt: 1, until: Timestamp(80) }),
                at(80, Fact::TimerFired { path: path() }),
                Story::done("a", 1),
            ],
            "root in nothing 0..- unset\na#1 in root 10..80 ok\n",
        ),
        (
            "a question before the first attempt",
            vec![
                started(),
                Story::suspended(3, "a"),
                Story::resumed(8, "a"),
                Story::step("a", 1),
                Story::done("a", 1),
                completed(),
            ],
            "root in nothing 0..90 ok\nwait a in root 3..8 unset\na#1 in root 10..80 ok\n",
        ),
        (
            "an attempt that asks by itself, twice",
            vec![
                started(),
                Story::step("a", 1),
                Story::suspended(12, "a"),
                Story::resumed(15, "a"),
                Story::step("a", 2),
                Story::suspended(25, "a"),
            ],
            "root in nothing 0..- unset\na#1 in root 10..12 unset\nwait a in root 12..15 unset\n\
             a#2 in root 20..25 unset\nwait a in root 25..- unset\n",
        ),
        (
            "a deadline that passed",
            vec![
                started(),
                Story::suspended(3, "a"),
                Story::failed(10, "a", 1, AfterFailure::Fail),
            ],
            "root in nothing 0..- unset\nwait a in root 3..10 no luck\na#1 in root 10..10 no luck\n",
        ),
        (
            "a cancel while it waits",
            vec![started(), Story::suspended(3, "a"), Story::cancelled("a", 0), cancelled()],
            "root in nothing 0..90 cancelled: enough\nwait a in root 3..85 cancelled\n",
        ),
    ]
}

fn holds_and_children() -> Vec<Row> {
    vec![
        (
            "a hold",
            vec![
                started(),
                Story::step("a", 1),
                at(12, Fact::HoldPlaced { reason: Arc::from("stop"), id: None }),
                Story::done("a", 1),
                at(82, Fact::HoldLifted { data: Arc::new(Value::Null) }),
                completed(),
            ],
            "root in nothing 0..90 ok\na#1 in root 10..80 ok\nwait - in root 12..82 unset\n",
        ),
        (
            "a cancel while it is held",
            vec![
                started(),
                at(12, Fact::HoldPlaced { reason: Arc::from("stop"), id: None }),
                cancelled(),
            ],
            "root in nothing 0..90 cancelled: enough\nwait - in root 12..90 cancelled\n",
        ),
        (
            "a child: the attempt of its step continues",
            vec![
                started(),
                Story::step("a", 1),
                at(
                    12,
                    Fact::ChildSuspended {
                        path: path(),
                        child_seq: 2,
                        reason: Arc::from("ask"),
                        payload: None,
                        id: None,
                        deadline: None,
                    },
                ),
                at(30, Fact::ChildResumed { path: path(), child_seq: 3, id: None }),
                Story::done("a", 1),
            ],
            "root in nothing 0..- unset\na#1 in root 10..80 ok\n",
        ),
    ]
}

#[test]
fn spans_are_derived_from_facts() {
    let rows = [attempts(), ends(), pauses(), holds_and_children()].concat();
    for (story, facts, expected) in rows {
        assert_eq!(picture(&facts), expected, "{story}");
        let header = header_of("e");
        let whole = spans_of_record(&header, &facts);
        let mut memory = SpanMemory::default();
        let live: Vec<_> =
            facts.iter().flat_map(|it| memory.apply(&header, std::slice::from_ref(it))).collect();
        assert_eq!(live, whole, "{story}, a commit for each fact");
        let begun = whole.iter().filter(|it| it.phase == SpanPhase::Started).count();
        assert!(begun >= 1, "{story}");
    }
}

#[test]
fn without_memory_ends_are_rebuilt_from_their_facts() {
    let header = header_of("e");
    let facts = [started(), Story::step("a", 1), Story::done("a", 1), completed()];
    let whole = latest_of(spans_of_record(&header, &facts));
    let blind: Vec<_> =
        facts.iter().flat_map(|it| spans_of_record(&header, std::slice::from_ref(it))).collect();
    for (known, rebuilt) in whole.iter().zip(latest_of(blind)) {
        assert_eq!((known.id, known.start, known.end), (rebuilt.id, rebuilt.start, rebuilt.end));
        assert_eq!((known.parent, &known.status), (rebuilt.parent, &rebuilt.status));
    }
    let lone = [Story::resumed(5, "a"), Story::cancelled("a", 1)];
    assert_eq!(
        spans_of_record(&header, &lone),
        [],
        "without the start of a suspension its end has no span"
    );
}

#[test]
fn attributes_include_content_only_on_request() {
    let facts = [started(), Story::step("a/left/b", 1), Story::done("a/left/b", 1), completed()];
    let spans = latest_of(spans_of_record(&header_of("e"), &facts));
    let lines = |span: &Span, content: bool| -> Vec<String> {
        let attributes = span.attributes(content);
        attributes.into_iter().map(|(key, value)| format!("{key}={value:?}")).collect()
    };
    let common = [
        r#"entity.type=Text("workflow")"#,
        r#"entity.id=Text("order")"#,
        r#"entity.name=Text("order")"#,
        r#"workflow.execution.id=Text("e")"#,
        r#"user.id=Text("ann")"#,
    ];
    let root = [
        r#"gen_ai.operation.name=Text("invoke_workflow")"#,
        r#"gen_ai.workflow.name=Text("order")"#,
    ];
    let said = [r#"workflow.input=Text("{\"n\":1}")"#, r#"workflow.output=Text("2")"#];
    assert_eq!(lines(&spans[0], false), [&common[..], &root].concat());
    assert_eq!(lines(&spans[0], true), [&common[..], &root, &said].concat());
    let step = [
        r#"workflow.step.id=Text("b")"#,
        r#"workflow.step.path=Text("a/left/b")"#,
        "workflow.step.attempt=Int(1)",
        r#"workflow.step.output=Text("\"out\"")"#,
    ];
    assert_eq!(lines(&spans[1], true), [&common[..], &step].concat());
}
