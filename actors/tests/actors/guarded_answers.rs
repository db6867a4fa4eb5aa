//! A program's own check of answers to calls: approvals in the inbox, by the call and in chats.

use std::sync::Arc;
use std::time::Duration;

use greenroom_actors::agent::generation::GenerationRequest;
use greenroom_actors::agent::{Approval, OnTimeout};
use greenroom_actors::domain::principal::Principal;
use greenroom_actors::ports::answer_guard::GivenAnswer;
use greenroom_actors::ports::memory::MemoryStore;
use greenroom_actors::ports::model::scripted::ScriptedModel;
use greenroom_actors::ports::store::{Ask, AskFilter};
use greenroom_actors::requests::{
    AnswerAsk, ApproveCall, AskError, ChatReply, ContinueChat, Permissions, Reply,
};
use greenroom_actors::runtime::ContinueChatError;
use greenroom_actors::testkit::{TestClock, pass};
use greenroom_actors::visibility::Visibility;
use greenroom_actors::{Placement, Runtime, RuntimeLimits, RuntimePorts};
use serde_json::json;

use crate::approvals::{Effects, calls, guarded, key, over_100, registry, request, text};
use crate::generations::Collector;

/// Launches a runtime whose agent refunds 500, if `lea` says so.
async fn launch(effects: &Effects, approval: Approval) -> Runtime {
    let script = [calls(&[("c1", "refund", json!({ "amount": 500 }))]), text("refunded")];
    let model = ScriptedModel::local(script);
    let registry = registry(&model, vec![guarded(effects, approval)]);
    let guard = |answer: GivenAnswer| async move {
        let tool = answer.tool().map(str::to_owned);
        let ask = answer.ask.map(|ask| ask.id.to_string()).unwrap_or_default();
        assert!(ask.starts_with("ask_") && answer.execution_id.is_none(), "{ask}");
        assert_eq!(tool.as_deref(), Some("refund"));
        match answer.by {
            Some(by) if *by.id == *"lea" => Ok(()),
            _ => Err("only lea refunds".to_owned()),
        }
    };
    let store = Arc::new(MemoryStore::new());
    let ports = RuntimePorts {
        answer_guard: Some(Arc::new(guard)),
        ..RuntimePorts::new(store, Arc::new(TestClock::new()))
    };
    let limits = RuntimeLimits { placement: Placement::Here, ..RuntimeLimits::default() };
    Runtime::launch(registry, ports, limits).await.unwrap()
}

async fn open(runtime: &Runtime) -> Vec<Ask> {
    let filter = AskFilter { is_open: true, ..AskFilter::default() };
    runtime.inbox(&filter, None, 10).await.unwrap().asks
}

fn approved(by: &str) -> AnswerAsk {
    let data = json!({ "approved": true });
    AnswerAsk { data, by: Some(Principal::verified(by)), ..AnswerAsk::default() }
}

#[actix::test]
async fn answers_to_calls_are_checked_however_they_come() {
    tokio::time::pause();
    let effects = Effects::default();
    let runtime = launch(&effects, over_100()).await;
    let chat = GenerationRequest { is_chat: true, ..request() };
    let (subscriber, _address) = Collector::default().subscribe();
    let generation = runtime.stream_generation(chat, subscriber).await.unwrap();
    pass(Duration::from_millis(50)).await;
    let asks = open(&runtime).await;
    assert_eq!(asks.len(), 1);
    let refused = AskError::Refused("only lea refunds".to_owned());

    let inbox = runtime.answer_ask(asks[0].clone(), approved("ben")).await;
    assert_eq!(inbox.unwrap_err(), refused);
    let by_call = ApproveCall {
        agent_id: "desk".to_owned(),
        generation_id: generation.id.to_string(),
        tool_call_id: "c1".to_owned(),
        visibility: Visibility::Everything,
        answer: approved("ben"),
    };
    assert_eq!(runtime.approve_call(by_call).await.unwrap_err(), refused);
    let say = |by: &str| ContinueChat {
        agent_id: "desk".to_owned(),
        conversation: Some(key()),
        replies: vec![ChatReply {
            tool_call_id: "c1".to_owned(),
            approval_id: Some(asks[0].id.to_string()),
            reply: Reply::Decided { approved: true, reason: None },
        }],
        visibility: Visibility::Everything,
        by: Some(Principal::verified(by)),
        answerer: None,
        permissions: Permissions::default(),
    };
    let (subscriber, _address) = Collector::default().subscribe();
    let in_chat = runtime.continue_chat(say("ben"), subscriber).await;
    assert_eq!(in_chat.unwrap_err(), ContinueChatError::Ask(refused));
    assert_eq!((open(&runtime).await.len(), effects.all().len()), (1, 0));

    let (subscriber, _address) = Collector::default().subscribe();
    runtime.continue_chat(say("lea"), subscriber).await.unwrap();
    pass(Duration::from_millis(50)).await;
    assert_eq!((open(&runtime).await.len(), effects.all().len()), (0, 1));
}

#[actix::test]
async fn a_deadline_that_approves_is_no_answer() {
    tokio::time::pause();
    let effects = Effects::default();
    let approval = over_100().deadline(Duration::from_secs(60)).on_timeout(OnTimeout::Approve);
    let runtime = launch(&effects, approval).await;
    runtime.generate(request()).await.unwrap();
    assert_eq!((open(&runtime).await.len(), effects.all().len()), (1, 0));
    pass(Duration::from_secs(120)).await;
    assert_eq!((open(&runtime).await.len(), effects.all().len()), (0, 1));
}
