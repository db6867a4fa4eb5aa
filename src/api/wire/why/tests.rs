//! Explanations on the wire.

use std::collections::BTreeSet;
use std::sync::Arc;

use greenroom_actors::domain::principal::Principal;
use greenroom_actors::domain::state::{End, Outcome};
use greenroom_actors::domain::time::Timestamp;
use greenroom_actors::wait_report::{CallStage, ChildQuestion, Ending};
use serde_json::{json, to_value};

use super::*;
use crate::api::wire::test_header;

fn body(tool: Option<Arc<str>>, stage: CallStage, generation: Option<Arc<str>>) -> Cause {
    Cause::Body { attempt: 2, timeout_ms: Some(5), tool, stage, generation }
}

fn causes() -> Vec<Cause> {
    let child = ExecutionId::trusted("c1");
    let asks =
        Some(ChildQuestion { suspension_id: "c0".into(), reason: "may I".into(), payload: None });
    vec![
        Cause::Hold { suspension_id: "a0".into(), reason: "lunch".into(), by: None },
        Cause::Resume {
            suspension_id: "b0".into(),
            reason: "ann asks".into(),
            payload: Some(Arc::new(json!(5))),
            schema: Some(json!({ "type": "boolean" })),
            deadline: Some(AtDeadline::Resumes),
            has_unused_answer: false,
        },
        Cause::Asks { suspension_id: "a2".into(), reason: "Refund 5".into(), payload: None },
        Cause::Child { child, workflow: "part".into(), asks },
        Cause::Sleep,
        Cause::Retry { failures: 1, attempts_max: 3, errors: Vec::new() },
        body(None, CallStage::Works, None),
        Cause::Missing { what: "function f is not registered".into() },
        Cause::Interrupted { attempt: 2 },
        Cause::Turn,
        Cause::Deciding,
        Cause::Draining,
        Cause::Elsewhere { server: Some("node-b".into()) },
        Cause::Elsewhere { server: None },
    ]
}

fn shown(cause: Cause) -> Value {
    let awaited = Awaited {
        step_id: Some("a".into()),
        path: Some("both/left/a".into()),
        since: Timestamp(1_700_000_000_123),
        until: Some(Timestamp(1_700_000_000_200)),
        cause,
    };
    let wait_report = WaitReport::new(Arc::new(test_header()), Status::Running, vec![awaited]);
    to_value(WhyView::of(&wait_report)).unwrap()["waitsFor"][0].clone()
}

#[test]
fn all_kinds_and_movers_are_documented_and_used() {
    let all: Vec<Value> = causes().into_iter().map(shown).collect();
    let kinds: BTreeSet<_> = all.iter().map(|it| it["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, WAIT_KINDS.into());
    let movers = all.iter().flat_map(|it| it["movedBy"].as_array().unwrap());
    let movers: BTreeSet<_> = movers.map(|mover| mover["by"].as_str().unwrap()).collect();
    assert_eq!(movers, MOVERS.into());
}

#[test]
fn one_of_several_servers_is_named_that_lacks_something() {
    let cause = Cause::Missing { what: "tool pack is not registered".into() };
    let awaited = Awaited {
        step_id: None,
        path: None,
        since: Timestamp(1_700_000_000_123),
        until: None,
        cause,
    };
    let wait_report = WaitReport {
        server: Some("node-a".into()),
        ..WaitReport::new(Arc::new(test_header()), Status::Running, vec![awaited])
    };
    let shown = to_value(WhyView::of(&wait_report)).unwrap();
    assert_eq!(shown["server"], "node-a");
    let awaited = &shown["waitsFor"][0];
    assert_eq!(awaited["message"], "tool pack is not registered at the server node-a");
    let how = awaited["movedBy"][0]["how"].as_str().unwrap();
    assert!(how.starts_with("register it at node-a, or let node-a hand"), "{how}");
}

#[test]
fn a_suspended_step_is_shown_with_its_resume() {
    let expected = json!({
        "kind": "resume", "stepId": "a", "path": "both/left/a",
        "message": "waits for a resume: ann asks",
        "since": "2023-11-14T22:13:20.123Z", "until": "2023-11-14T22:13:20.200Z",
        "suspensionId": "b0", "payload": 5, "resumeSchema": { "type": "boolean" },
        "movedBy": [
            { "by": "resume", "how": "a resume with the requested data",
              "workflowId": "order", "executionId": "e1", "stepId": "both/left/a" },
            { "by": "time",
              "how": "the step is resumed at that time with a value of its definition" },
        ],
    });
    assert_eq!(shown(causes().remove(1)), expected);
}

#[test]
fn a_running_attempt_names_the_tool_that_it_calls() {
    let queued = "attempt 2 waits for a place among the concurrent calls of the tool own.stay";
    for (tool, stage, message) in [
        (None, CallStage::Works, "attempt 2 is running"),
        (Some("own.stay"), CallStage::Works, "attempt 2 calls the tool own.stay"),
        (Some("own.stay"), CallStage::WaitsForPlace, queued),
        (
            Some("own.stay"),
            CallStage::Follows,
            "attempt 2 follows what the tool own.stay has begun elsewhere",
        ),
    ] {
        let mut expected = json!({
            "kind": "step", "stepId": "a", "path": "both/left/a", "message": message,
            "since": "2023-11-14T22:13:20.123Z", "until": "2023-11-14T22:13:20.200Z",
            "attempt": 2,
            "movedBy": [
                { "by": "step", "how": "the attempt ends" },
                { "by": "time", "how": "the attempt times out" },
            ],
        });
        if let Some(tool) = tool {
            expected["tool"] = tool.into();
        }
        let tool = tool.map(Arc::from);
        assert_eq!(shown(body(tool, stage, None)), expected);
    }
}

#[test]
fn the_agent_of_an_attempt_is_shown_with_its_calls() {
    let call = |number: usize, stage| AwaitedCall {
        tool_call_id: format!("c{number}").into(),
        tool: "own.stay".into(),
        stage,
        since: (number == 0).then_some(Timestamp(1_700_000_000_123)),
    };
    let report = |cause, calls: Vec<AwaitedCall>| {
        let awaited =
            Awaited { step_id: None, path: None, since: Timestamp(0), until: None, cause };
        let report = WaitReport::new(Arc::new(test_header()), Status::Running, vec![awaited]);
        let report = WaitReport { calls: [(Arc::from("g"), calls)].into(), ..report };
        to_value(WhyView::of(&report)).unwrap()["waitsFor"][0].clone()
    };
    let running = || body(None, CallStage::Works, Some("g".into()));
    let one = report(running(), vec![call(0, CallStage::WaitsForPlace)]);
    let queued = "waits for a place among the concurrent calls of the tool own.stay";
    assert_eq!(one["message"], format!("attempt 2 runs an agent that {queued}"));
    let expected = json!([{
        "toolCallId": "c0", "tool": "own.stay", "stage": "queued", "message": queued,
        "since": "2023-11-14T22:13:20.123Z",
    }]);
    assert_eq!((&one["generationId"], &one["calls"]), (&json!("g"), &expected));

    let stages = [CallStage::Works, CallStage::Follows, CallStage::Asks, CallStage::WaitsForPlace];
    let calls: Vec<_> = (1..).zip(stages).map(|(number, stage)| call(number, stage)).collect();
    let all = report(running(), calls);
    let expected = "attempt 2 runs an agent that calls the tool own.stay, follows what the tool own.stay \
                    has begun elsewhere, waits for an answer about its call of the tool own.stay, and 1 \
                    more";
    assert_eq!(all["message"], expected);
    let shown: BTreeSet<_> =
        all["calls"].as_array().unwrap().iter().map(|it| it["stage"].as_str().unwrap()).collect();
    assert_eq!(shown, CALL_STAGES.into());
    assert!(all["calls"][0].get("since").is_none(), "absent, not null: {all}");

    let none = report(running(), Vec::new());
    assert_eq!((&none["message"], none.get("calls")), (&json!("attempt 2 is running"), None));

    let payload = Some(Arc::new(json!({ "generationId": "g" })));
    let cause = Cause::Asks { suspension_id: "a2".into(), reason: "Refund 5".into(), payload };
    let asks = report(cause, vec![call(0, CallStage::Asks)]);
    assert_eq!(asks["message"], "waits for answers: Refund 5");
    assert_eq!((&asks["generationId"], &asks["calls"][0]["stage"]), (&json!("g"), &json!("asks")));
}

#[test]
fn an_execution_that_compensates_shows_its_end() {
    let end = End {
        at: Timestamp(1_700_000_000_123),
        outcome: Outcome::Cancelled { reason: "no stock".into() },
        by: Some(Arc::new(Principal::claimed("eve"))),
        compensates: true,
    };
    let (replayable, skipped) = (Vec::new(), Vec::new());
    let pending = Ending { end, failed: None, replayable, skipped, skipped_before: 0 };
    let wait_report = WaitReport {
        pending_ending: Some(pending),
        ..WaitReport::new(Arc::new(test_header()), Status::Running, Vec::new())
    };
    let shown = to_value(WhyView::of(&wait_report)).unwrap();
    let expected = json!({
        "at": "2023-11-14T22:13:20.123Z", "message": "cancelled: no stock", "reason": "no stock",
        "cancelledBy": { "id": "eve", "verified": false }, "replayFrom": []
    });
    assert_eq!(shown["compensates"], expected);
    assert_eq!(shown["ended"], Value::Null);
}
