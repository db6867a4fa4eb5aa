//! Facts of the executions that the bare server stores in PostgreSQL: those that greenroom records
//! for the same requests, so that both write rows of one size.

use std::sync::Arc;

use greenroom_actors::domain::fact::{Fact, Recorded, ResumedBy, Start, Suspension};
use greenroom_actors::domain::time::Timestamp;
use greenroom_actors::domain::trace::{EntityType, RootRow, Trace, TraceOrigin};
use serde_json::{Value, json};

/// Stands for the hash of a definition.
pub(crate) const DEFINITION: &str =
    "839465e44716e2bd5dd0dcc7590366abe3a989c5d45d3a3a1c15a49e8508bd01";
/// Stands for the id of a suspension.
const SUSPENSION: &str = "0f97d6380ae90c63";

/// Facts as one JSON array, and the number of the last.
pub(crate) struct Facts {
    pub(crate) events: Vec<u8>,
    pub(crate) last: i64,
}

impl Facts {
    /// Numbers facts, from the given number on.
    fn numbered(first: u64, at: Timestamp, facts: impl IntoIterator<Item = Fact>) -> Self {
        let recorded = |(seq, fact)| Recorded { seq, at, fact, by: None };
        let facts: Vec<_> = (first..).zip(facts).map(recorded).collect();
        let last = facts.last().map_or(0, |fact| fact.seq);
        // cannot fail: every key is a text
        let events = serde_json::to_vec(&facts).unwrap_or_default();
        Self { events, last: i64::try_from(last).unwrap_or_default() }
    }

    pub(crate) fn noop3(trace: Trace, at: Timestamp, input: Value, n: i64) -> Self {
        let steps = ["one", "two", "three"].into_iter().zip(n + 1..);
        let result = Arc::new(json!({ "n": n + 3 }));
        let facts = std::iter::once(started(trace, input))
            .chain(steps.flat_map(|(step, n)| ran(step, at, json!({ "n": n }))))
            .chain([Fact::WorkflowCompleted { since: at, result }]);
        Self::numbered(1, at, facts)
    }

    /// Returns the facts, and the suspension in its own column.
    pub(crate) fn suspended(
        trace: Trace,
        at: Timestamp,
        input: Value,
        reason: &str,
    ) -> (Self, Vec<u8>) {
        let payload = Some(Arc::new(json!({ "amount": input["amount"] })));
        let (path, reason, id): (Arc<str>, Arc<str>, Arc<str>) =
            ("manager".into(), reason.into(), SUSPENSION.into());
        let suspension = Suspension {
            id: Some(id.clone()),
            reason: reason.clone(),
            suspended_at: at,
            step_id: path.clone(),
            path: path.clone(),
            step_index: 0,
            payload: payload.clone(),
            deadline: None,
            by: None,
            pause: false,
            payload_omitted: false,
        };
        // cannot fail: every key is a text
        let column = serde_json::to_vec(&suspension).unwrap_or_default();
        let facts = [
            started(trace, input),
            Fact::StepSuspended {
                path,
                reason,
                payload,
                deadline: None,
                id: Some(id),
                ask: None,
                question: None,
                mcp: None,
            },
            Fact::WorkflowSuspended { since: at, suspension: Box::new(suspension), others: None },
        ];
        (Self::numbered(1, at, facts), column)
    }

    pub(crate) fn resumed(at: Timestamp, data: Value, result: Value) -> Self {
        let output = json!({ "approved": data["approved"] });
        let resumed = Fact::StepResumed {
            path: "manager".into(),
            data: Arc::new(data),
            by: ResumedBy::Caller,
            id: Some(SUSPENSION.into()),
        };
        let facts = [Fact::WorkflowResumed, resumed]
            .into_iter()
            .chain(ran("manager", at, output))
            .chain(ran("pay", at, result.clone()))
            .chain([Fact::WorkflowCompleted { since: at, result: Arc::new(result) }]);
        Self::numbered(4, at, facts)
    }
}

/// Returns the trace of an execution, which has begun it.
pub(crate) fn trace_of(id: &str, workflow: &str, row: i64) -> Trace {
    Trace::of(id, EntityType::Workflow, &workflow.into(), TraceOrigin::New)
        .anchored(RootRow::Execution(row))
}

fn started(trace: Trace, input: Value) -> Fact {
    Fact::WorkflowStarted(Box::new(Start {
        workflow_id: trace.root_id.clone(),
        definition_hash: DEFINITION.into(),
        input: Arc::new(input),
        user_id: None,
        conversation_id: None,
        context: Arc::new(json!({})),
        parent: None,
        depth: 0,
        trace,
        replayed: None,
        reversal: None,
    }))
}

/// Returns the facts of a step that has run.
fn ran(step: &str, at: Timestamp, output: Value) -> [Fact; 2] {
    let path: Arc<str> = step.into();
    let started =
        Fact::StepStarted { path: path.clone(), attempt: 1, interrupted: false, opening: None };
    let output = Arc::new(output);
    [
        started,
        Fact::StepCompleted {
            path,
            attempt: 1,
            since: at,
            output,
            usage: None,
            compensable: false,
            skipped: false,
            mcp: None,
        },
    ]
}
