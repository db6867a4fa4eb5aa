//! Answers, sub-agents, and the stored form.

use serde_json::json;

use super::*;
use crate::ports::store::AskKind;

fn pending(id: &str, kind: AskKind) -> PendingAsk {
    PendingAsk {
        ask_id: Arc::from(id),
        kind,
        tool_call_id: Arc::from("c1"),
        tool_name: Arc::from("refund"),
        input: json!({ "amount": 1 }),
        reason: "Refund 1?".to_owned(),
        schema: None,
        deadline: None,
        shown_at: None,
        refused: None,
    }
}

fn open(number: usize, state: CallState) -> OpenCall {
    let call = ToolCall {
        tool_call_id: format!("c{number}"),
        tool_name: "refund".to_owned(),
        input: Value::Null,
    };
    OpenCall { state, ..OpenCall::new(number, &call) }
}

fn asked(id: &str, kind: AskKind) -> CallState {
    let ask = pending(id, kind);
    CallState::Asked(Box::new(CallAsk {
        ask,
        on_timeout: OnTimeout::Refuse,
        is_editable: false,
        remembered_schema: Some(Arc::from("schema")),
        subject: Some(Arc::from("subject")),
        permission: Some(Arc::from("permission")),
        is_repetition: false,
        is_declinable: false,
    }))
}

pub(super) fn continuation(calls: Vec<OpenCall>) -> Continuation {
    Continuation {
        message_id: "m".to_owned(),
        answer_left: 1,
        results_left: 1,
        calls,
        ..Continuation::default()
    }
}

#[test]
fn a_run_goes_on_once_all_its_asks_are_answered() {
    let child = CallState::Child {
        generation_id: Arc::from("g2"),
        asks: vec![pending("x", AskKind::Approval)],
        is_ready: false,
    };
    let mut continuation = continuation(vec![
        open(0, asked("a", AskKind::Approval)),
        open(1, asked("b", AskKind::Input)),
        open(3, child),
    ]);
    let ids = |continuation: &Continuation| -> Vec<_> {
        continuation.asks().iter().map(|ask| ask.ask_id.to_string()).collect()
    };
    assert_eq!(ids(&continuation), ["a", "b", "x"]);
    assert_eq!(continuation.asks()[2].shown_at.as_deref(), Some("c3"));

    let by = DecidedBy::Person;
    let reason = Some("too much".to_owned());
    assert!(continuation.answer("a", CallAnswer::Refused { by, reason }));
    let approved = || CallAnswer::Approved { by: DecidedBy::Person, input: None };
    assert!(!continuation.answer("a", approved()), "once");
    assert!(!continuation.answer("x", approved()), "the child's own");
    assert!(!continuation.is_ready());
    let refused = CallState::Refused { reason: "refused by a person: too much".to_owned() };
    assert_eq!(continuation.calls[0].state, refused);

    assert!(continuation.answer("b", CallAnswer::Given(json!("blue"))));
    assert_eq!(continuation.calls[1].answers, [json!("blue")]);
    assert!(!continuation.is_ready() && !continuation.is_released);
    assert!(!continuation.child_is_ready("g9"));
    assert!(continuation.child_is_ready("g2"));
    assert!(continuation.is_ready() && continuation.is_released);
    assert!(!continuation.child_is_ready("g2"), "once");
    assert_eq!(ids(&continuation), [""; 0]);
}

#[test]
fn a_refused_repetition_says_that_an_attempt_may_have_had_its_effect() {
    let refused = |by: DecidedBy, reason: Option<&str>| CallAnswer::Refused {
        by,
        reason: reason.map(str::to_owned),
    };
    let before = "a restart interrupted the call, which may or may not have had its effect; to \
                  repeat it was ";
    let rows = [
        (refused(DecidedBy::Person, Some("too much")), "refused by a person: too much"),
        (refused(DecidedBy::Person, None), "refused by a person"),
        (refused(DecidedBy::Deadline, Some(" ")), "refused"),
        (answer_of_timeout(OnTimeout::Refuse), "refused: it was not answered in time"),
    ];
    for (answer, text) in rows {
        for is_repetition in [false, true] {
            let state = asked("a", AskKind::Approval);
            let CallState::Asked(ask) = state else { panic!("{state:?}") };
            let state = CallState::Asked(Box::new(CallAsk { is_repetition, ..*ask }));
            let mut continuation = continuation(vec![open(0, state)]);
            assert!(continuation.answer("a", answer.clone()));
            let reason = if is_repetition { format!("{before}{text}") } else { text.to_owned() };
            assert_eq!(continuation.calls[0].state, CallState::Refused { reason });
        }
    }
}

fn approval(id: &str, approved: Option<bool>) -> ToolApproval {
    ToolApproval {
        approval_id: id.to_owned(),
        tool_call_id: "c0".to_owned(),
        approved,
        reason: None,
    }
}

#[test]
fn decisions_inside_a_sub_agent_are_not_those_about_its_call() {
    let asks = vec![pending("x", AskKind::Approval), pending("y", AskKind::Approval)];
    let (generation_id, is_ready) = (Arc::from("g2"), false);
    let child = CallState::Child { generation_id, asks, is_ready };
    let mut continuation = continuation(vec![open(0, child)]);
    let own = approval("own", Some(true));
    continuation.approvals = vec![own.clone(), approval("x", None), approval("y", None)];
    assert!(continuation.child_is_ready("g2"));
    assert_eq!(continuation.approvals, [own]);
}

#[test]
fn only_people_approve_further_calls() {
    let rows = [
        (CallAnswer::Approved { by: DecidedBy::Person, input: None }, 1),
        (answer_of_timeout(OnTimeout::Approve), 0),
        (answer_of_timeout(OnTimeout::Refuse), 0),
    ];
    for (answer, remembered) in rows {
        let mut continuation = continuation(vec![open(0, asked("a", AskKind::Approval))]);
        assert!(continuation.answer("a", answer.clone()));
        assert_eq!(continuation.approved_tools.len(), remembered, "{answer:?}");
    }
}

#[test]
fn a_continuation_is_read_as_it_is_written() {
    let calls = vec![
        open(0, asked("a", AskKind::Approval)),
        open(1, CallState::Approved { input: Some(json!({})) }),
        open(2, CallState::Refused { reason: "refused".to_owned() }),
        open(3, CallState::Answered),
    ];
    let continuation = continuation(calls);
    let text = serde_json::to_string(&continuation).unwrap();
    assert_eq!(serde_json::from_str::<Continuation>(&text).unwrap(), continuation);
}

/// Continuation as versions store it that know only the members without a default.
const OLDER: &str = r#"{
    "messages": [],
    "options": {
        "temperature": 0.5, "maxOutputTokens": null, "topP": null, "frequencyPenalty": null,
        "presencePenalty": null, "seed": 7, "stopSequences": ["end"], "providerOptions": null
    },
    "bounds": { "steps": 10, "tokens": 5000, "toolCalls": null, "objectRepairs": 2 },
    "repairs": 1,
    "callsMade": 3,
    "context": { "userId": "ann" },
    "depth": 1,
    "messageId": "m1",
    "isChat": true,
    "answerLeft": 1000,
    "resultsLeft": 2000,
    "memory": {
        "key": { "agent_id": "clerk", "user_id": "ann", "conversation_id": "c1" },
        "continued": { "message_id": "m1", "parts": [], "created_at": null }
    },
    "usage": {
        "promptTokens": 1, "completionTokens": 2, "totalTokens": 3, "cachedInputTokens": 0,
        "reasoningTokens": 0
    }
}"#;

#[test]
fn a_continuation_of_an_older_version_is_read_and_keeps_its_names() {
    let read: Continuation = serde_json::from_str(OLDER).unwrap();
    assert_eq!((read.message_id(), read.is_chat, read.depth), ("m1", true, 1));
    assert!(read.memory.is_some() && read.calls.is_empty() && !read.is_repair);
    let older: Map<String, Value> = serde_json::from_str(OLDER).unwrap();
    let written = serde_json::to_value(&read).unwrap();
    for (name, value) in older {
        assert_eq!(written[&name], value, "{name}");
    }
}
