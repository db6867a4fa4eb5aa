//! JSON of all events.

use std::sync::Arc;

use greenroom_actors::domain::fact::{AfterFailure, Others, ResumedBy, Start, Suspension, Trace};
use greenroom_actors::domain::failure::ErrorClass;
use greenroom_actors::domain::principal::Principal;
use greenroom_actors::domain::time::Timestamp;
use greenroom_actors::domain::trace::{EntityType, TraceOrigin};
use serde_json::json;

use super::*;

const SINCE: Timestamp = Timestamp(1_700_000_000_000);

fn id() -> ExecutionId {
    ExecutionId::trusted("x1")
}

fn recorded(seq: u64, fact: Fact) -> Recorded {
    Recorded { seq, at: Timestamp(1_700_000_000_123), fact, by: None }
}

fn id_of() -> Option<Arc<str>> {
    Some("5f1e".into())
}

fn started() -> Fact {
    Fact::WorkflowStarted(Box::new(Start {
        workflow_id: "order".into(),
        definition_hash: "h".into(),
        input: Arc::new(json!({})),
        user_id: None,
        conversation_id: None,
        context: Arc::new(json!({})),
        parent: None,
        depth: 0,
        trace: Trace::of("e", EntityType::Workflow, &"order".into(), TraceOrigin::New),
        replayed: None,
        reversal: None,
    }))
}

/// Returns the data of the events of a fact, without the common keys.
fn data(fact: Fact) -> Vec<Value> {
    let rendered = render_sse(&id(), &[recorded(4, fact)], 0);
    let text = String::from_utf8(rendered.bytes).unwrap();
    let mut frames = Vec::new();
    for (index, frame) in text.split_terminator("\n\n").enumerate() {
        let (number, data) = frame.split_once('\n').unwrap();
        assert_eq!(number, format!("id: {}", 4 + index));
        let mut value: Value = serde_json::from_str(data.strip_prefix("data: ").unwrap()).unwrap();
        let object = value.as_object_mut().unwrap();
        assert_eq!(object.remove("executionId"), Some(json!("x1")));
        assert_eq!(object.remove("timestamp"), Some(json!("2023-11-14T22:13:20.123Z")));
        frames.push(value);
    }
    assert_eq!(frames.len(), rendered.events);
    frames
}

#[test]
fn the_frame_of_an_event_is_an_id_line_and_a_data_line() {
    let rendered = render_sse(&id(), &[recorded(1, started())], 0);
    let expected = "id: 1\ndata: {\"type\":\"workflow-start\",\"executionId\":\"x1\",\
                    \"timestamp\":\"2023-11-14T22:13:20.123Z\"}\n\n";
    assert_eq!(String::from_utf8(rendered.bytes).unwrap(), expected);
}

#[test]
fn events_of_steps_name_the_step_and_nested_ones_the_path() {
    let path: Arc<str> = "post".into();
    let nested: Arc<str> = "checks/ledger/post".into();
    let start =
        Fact::StepStarted { path: path.clone(), attempt: 1, interrupted: false, opening: None };
    assert_eq!(data(start), [json!({ "type": "step-start", "from": "post" })]);
    let slept = Fact::StepSlept { path: path.clone(), attempt: 1, until: SINCE };
    assert_eq!(data(slept), [json!({ "type": "step-start", "from": "post" })]);
    let output = Arc::new(Value::Null);
    let complete = Fact::StepCompleted {
        path: nested,
        attempt: 1,
        since: SINCE,
        output,
        usage: None,
        compensable: false,
        skipped: false,
        mcp: None,
    };
    assert_eq!(
        data(complete),
        [json!({ "type": "step-complete", "from": "post", "path": "checks/ledger/post",
                 "output": null })]
    );
    let skip = Fact::StepCompleted {
        path: "post:compensate".into(),
        attempt: 1,
        since: SINCE,
        output: Arc::new(json!("by hand")),
        usage: None,
        compensable: false,
        skipped: true,
        mcp: None,
    };
    assert_eq!(
        data(skip),
        [json!({ "type": "compensation-complete", "from": "post", "path": "post:compensate",
                 "output": "by hand", "skipped": true })]
    );
    let next = AfterFailure::Retry { until: SINCE };
    let error: Arc<str> = "no".into();
    let failed = Fact::StepFailed {
        path: path.clone(),
        attempt: 2,
        since: SINCE,
        error,
        class: Some(ErrorClass::http(503)),
        next,
        usage: None,
        mcp: None,
    };
    assert_eq!(
        data(failed),
        [json!({ "type": "step-error", "from": "post", "error": "no", "errorKind": "http",
                 "errorStatus": 503, "attempt": 2, "willRetry": true })]
    );
    let skipped = Fact::StepSkipped { path: path.clone() };
    assert_eq!(data(skipped), [json!({ "type": "step-skipped", "from": "post" })]);
    let cancelled = Fact::StepCancelled { path, attempt: 1, since: SINCE };
    assert_eq!(data(cancelled), [json!({ "type": "step-cancelled", "from": "post" })]);
}

#[test]
fn events_of_waits_name_the_suspension() {
    let path: Arc<str> = "post".into();
    let nested: Arc<str> = "checks/ledger/post".into();
    let payload = Some(Arc::new(json!({ "amount": 5 })));
    let deadline = Some(SINCE);
    let suspended = Fact::StepSuspended {
        path: path.clone(),
        reason: "ask".into(),
        payload,
        deadline,
        id: id_of(),
        ask: None,
        question: None,
        mcp: None,
    };
    assert_eq!(
        data(suspended),
        [json!({ "type": "step-suspended", "from": "post", "reason": "ask",
                 "suspensionId": "5f1e", "payload": { "amount": 5 }, "deadline": "2023-11-14T22:13:20.000Z" })]
    );
    let data_of = Arc::new(json!("yes"));
    let resumed = Fact::StepResumed { path, data: data_of, by: ResumedBy::Caller, id: id_of() };
    assert_eq!(
        data(resumed),
        [json!({ "type": "step-resumed", "from": "post", "resumeData": "yes",
                 "suspensionId": "5f1e" })]
    );
    let child = Fact::ChildSuspended {
        path: nested.clone(),
        child_seq: 3,
        reason: "child asks".into(),
        payload: None,
        id: id_of(),
        deadline,
    };
    assert_eq!(
        data(child),
        [json!({ "type": "step-suspended", "from": "post", "path": "checks/ledger/post",
                 "reason": "child asks", "suspensionId": "5f1e",
                 "deadline": "2023-11-14T22:13:20.000Z" })]
    );
    let child_resumed = Fact::ChildResumed { path: nested, child_seq: 3, id: id_of() };
    assert_eq!(
        data(child_resumed),
        [json!({ "type": "step-resumed", "from": "post", "path": "checks/ledger/post",
                 "suspensionId": "5f1e" })]
    );
}

#[test]
fn events_of_the_workflow_carry_its_suspensions() {
    let suspension = Suspension {
        id: id_of(),
        by: None,
        pause: false,
        payload_omitted: false,
        reason: "ask".into(),
        suspended_at: SINCE,
        step_id: "post".into(),
        path: "post".into(),
        step_index: 2,
        payload: None,
        deadline: None,
    };
    let other = Suspension { id: None, path: "other".into(), ..suspension.clone() };
    let others = Some(Box::new(Others { suspensions: vec![other], omitted: 3 }));
    let suspension = Box::new(suspension);
    let shown = json!({ "id": "5f1e", "suspendedAt": "2023-11-14T22:13:20.000Z", "reason": "ask",
                        "suspendedStepIndex": 2, "stepId": "post", "path": "post" });
    let other = json!({ "suspendedAt": "2023-11-14T22:13:20.000Z", "reason": "ask",
                        "suspendedStepIndex": 2, "stepId": "post", "path": "other" });
    let bare = suspension.clone();
    assert_eq!(
        data(Fact::WorkflowSuspended { since: SINCE, suspension, others }),
        [json!({ "type": "workflow-suspended", "suspension": shown,
                 "suspensions": [shown, other], "suspensionsOmitted": 3 })]
    );
    assert_eq!(
        data(Fact::WorkflowSuspended { since: SINCE, suspension: bare, others: None }),
        [json!({ "type": "workflow-suspended", "suspension": shown, "suspensions": [shown] })]
    );
    assert_eq!(data(Fact::WorkflowResumed), [json!({ "type": "workflow-resumed" })]);
    assert_eq!(data(Fact::HoldPlaced { reason: "r".into(), id: None }), [] as [Value; 0]);
}

#[test]
fn an_ended_workflow_gives_its_end_and_its_result() {
    let times = |mut value: Value| {
        value["startAt"] = json!("2023-11-14T22:13:20.000Z");
        value["endAt"] = json!("2023-11-14T22:13:20.123Z");
        value
    };
    let completed = Fact::WorkflowCompleted { since: SINCE, result: Arc::new(json!({ "n": 1 })) };
    assert_eq!(
        data(completed),
        [
            json!({ "type": "workflow-complete", "result": { "n": 1 } }),
            times(json!({ "type": "workflow-result", "status": "completed",
                          "result": { "n": 1 } })),
        ]
    );
    let failed = Fact::WorkflowFailed {
        since: SINCE,
        error: "boom".into(),
        step_id: Some("s".into()),
        path: Some("s".into()),
        class: None,
    };
    assert_eq!(
        data(failed),
        [
            json!({ "type": "workflow-error", "error": "boom" }),
            times(json!({ "type": "workflow-result", "status": "error", "result": null,
                          "error": "boom" })),
        ]
    );
    let reason = "late".into();
    let cancelled = Fact::WorkflowCancelled { since: SINCE, reason, compensates: false };
    assert_eq!(
        data(cancelled),
        [
            json!({ "type": "workflow-cancelled", "reason": "late" }),
            times(json!({ "type": "workflow-result", "status": "cancelled", "result": null })),
        ]
    );
}

#[test]
fn a_subscriber_may_continue_between_the_two_events_of_a_fact() {
    let end = Fact::WorkflowCompleted { since: SINCE, result: Arc::new(json!(1)) };
    let facts = [recorded(1, started()), recorded(2, end)];
    for (after, events) in [(0, 3), (1, 2), (2, 1), (3, 0), (u64::MAX - 1, 0)] {
        assert_eq!(render_sse(&id(), &facts, after).events, events, "after {after}");
        assert_eq!(count_events(&facts, after), events, "after {after}");
    }
    let rest = render_sse(&id(), &facts, 2);
    assert!(rest.bytes.starts_with(b"id: 3\ndata: {\"type\":\"workflow-result\""));
    assert_eq!((last_seq_of(&facts), is_end(&facts)), (Some(3), true));
    assert!(!is_end(&facts[..1]));
}

#[test]
fn events_name_the_principal_if_there_is_one() {
    let by = || Some(Arc::new(Principal::verified("lea")));
    let lea = json!({ "id": "lea", "verified": true });
    let resumed = Fact::StepResumed {
        path: "a".into(),
        data: Arc::new(json!({ "ok": 1 })),
        by: ResumedBy::Caller,
        id: None,
    };
    let child = Fact::ChildResumed { path: "a".into(), child_seq: 3, id: None };
    let reason = "late".into();
    let cancelled = Fact::WorkflowCancelled { since: SINCE, reason, compensates: false };
    let rows = [
        (started(), "replayedBy"),
        (resumed, "resumedBy"),
        (child, "resumedBy"),
        (Fact::WorkflowResumed, "resumedBy"),
        (cancelled, "cancelledBy"),
    ];
    for (fact, key) in rows {
        let facts = [Recorded { by: by(), ..recorded(4, fact) }];
        let text = String::from_utf8(render_sse(&id(), &facts, 0).bytes).unwrap();
        let first = text.split("\n").nth(1).unwrap().strip_prefix("data: ").unwrap();
        let frame: Value = serde_json::from_str(first).unwrap();
        assert_eq!(frame[key], lea, "{frame}");
    }
}
