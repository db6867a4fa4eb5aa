//! Answers to calls of tools: checked by the program, repeated, and several in one message of a chat.

use std::future::{pending, ready};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use greenroom_actors::agent::generation::{GenerationRequest, GenerationSubscriber};
use greenroom_actors::agent::tool::{ToolBody, ToolDefinition};
use greenroom_actors::agent::{AgentDefinition, AgentHooks, Approval, Generation, Hooks, RunInfo};
use greenroom_actors::domain::message::{ToolOutcome, ToolResult};
use greenroom_actors::domain::principal::Principal;
use greenroom_actors::ports::model::scripted::ScriptedModel;
use greenroom_actors::ports::store::{AskState, ConversationKey};
use greenroom_actors::requests::{
    AnswerAsk, AskError, ChatReply, ContinueChat, IdempotencyKey, Permissions, Reply,
};
use greenroom_actors::runtime::{ContinueChatError, ContinuedChat};
use greenroom_actors::testkit::{World, pass};
use greenroom_actors::visibility::Visibility;
use greenroom_actors::{Runtime, RuntimeLimits};
use serde_json::json;
use tokio::sync::mpsc::UnboundedReceiver;

use crate::answer_checks::{Checking, beside, checked_over, only_open};
use crate::approvals::{
    Effects, ask, calls, decision, guarded, key, over_100, registry, request, spec, text,
};
use crate::approved_runs::with_boss;
use crate::generations::Collector;

/// Launches a runtime with a generation that waits for the approval of this many calls.
async fn asked(
    count: usize,
    limits: RuntimeLimits,
) -> (Runtime, UnboundedReceiver<Checking>, Generation) {
    let ids: Vec<_> = (1..=count).map(|number| format!("c{number}")).collect();
    let made: Vec<_> =
        ids.iter().map(|id| (id.as_str(), "refund", json!({ "amount": 500 }))).collect();
    let model = ScriptedModel::local([calls(&made), text("done")]);
    let registry = registry(&model, vec![guarded(&Effects::default(), over_100())]);
    let (runtime, checks) = checked_over(registry, limits).await;
    let waiting = runtime.generate(request()).await.unwrap();
    assert_eq!(waiting.asks.len(), count);
    (runtime, checks, waiting)
}

#[actix::test]
async fn a_repeated_answer_to_a_call_gets_the_outcome_of_the_first_also_during_its_check() {
    tokio::time::pause();
    for (body, expected) in [("b", Ok(AskState::Answered)), ("c", Err(AskError::KeyReused))] {
        let (runtime, mut checks, _) = asked(1, RuntimeLimits::default()).await;
        let open = only_open(&runtime).await;
        let send = |body: &str| {
            let key = IdempotencyKey { scope: "k".into(), body_hash: body.into() };
            let given =
                AnswerAsk { idempotency: Some(key), ..decision(json!({ "approved": true })) };
            let open = open.clone();
            beside(&runtime, async move |runtime| {
                runtime.answer_ask(open, given).await.map(|detail| detail.ask.state)
            })
        };
        let (one, other) = (send("b"), send(body));
        let (first, second) = (checks.recv().await.unwrap(), checks.recv().await.unwrap());
        first.pass();
        assert_eq!(one.await.unwrap(), Ok(AskState::Answered));
        second.refuse();
        assert_eq!(other.await.unwrap(), expected);
    }
}

fn reply(waiting: &Generation, number: usize) -> ChatReply {
    ChatReply {
        tool_call_id: format!("c{}", number + 1),
        approval_id: Some(waiting.asks[number].ask_id.to_string()),
        reply: Reply::Decided { approved: true, reason: None },
    }
}

/// Returns a message of the chat with the desk.
fn saying(replies: Vec<ChatReply>) -> ContinueChat {
    ContinueChat {
        agent_id: "desk".to_owned(),
        conversation: Some(key()),
        replies,
        visibility: Visibility::Everything,
        by: Some(Principal::verified("ann")),
        answerer: None,
        permissions: Permissions::default(),
    }
}

async fn say(
    runtime: Runtime,
    replies: Vec<ChatReply>,
    subscriber: GenerationSubscriber,
) -> Result<ContinuedChat, ContinueChatError> {
    runtime.continue_chat(saying(replies), subscriber).await
}

#[actix::test]
async fn the_answers_of_a_message_are_checked_at_once_and_refusals_are_told() {
    tokio::time::pause();
    let (runtime, mut checks, waiting) = asked(3, RuntimeLimits::default()).await;
    let all: Vec<_> = (0..3).map(|number| reply(&waiting, number)).collect();
    let (subscriber, _address) = Collector::default().subscribe();
    let saying = beside(&runtime, async |runtime| say(runtime, all, subscriber).await);
    let mut checking = Vec::new();
    for _ in 0..3 {
        checking.push(checks.recv().await.unwrap());
    }
    let asked: Vec<_> =
        checking.iter().map(|it| it.given.ask.as_ref().map(|ask| Arc::clone(&ask.id))).collect();
    let expected: Vec<_> = waiting.asks.iter().map(|ask| Some(Arc::clone(&ask.ask_id))).collect();
    assert_eq!(asked, expected, "in the order of the calls");
    // the last one is decided first
    checking.pop().unwrap().pass();
    pass(Duration::from_millis(1)).await;
    checking.pop().unwrap().refuse();
    checking.pop().unwrap().pass();
    let Ok(ContinuedChat::Waits(still)) = saying.await.unwrap() else { panic!("one waits") };
    let left: Vec<_> = still.asks.iter().map(|it| (&it.ask_id, it.refused.as_deref())).collect();
    assert_eq!(left, [(&waiting.asks[1].ask_id, Some("the answer was refused: no"))]);

    let second = vec![reply(&waiting, 1)];
    let (subscriber, _address) = Collector::default().subscribe();
    let saying = beside(&runtime, async |runtime| say(runtime, second, subscriber).await);
    checks.recv().await.unwrap().pass();
    assert!(matches!(saying.await.unwrap(), Ok(ContinuedChat::Streams(_))));
}

#[actix::test]
async fn the_answers_of_a_message_wait_for_each_other_rather_than_be_refused_as_busy() {
    tokio::time::pause();
    let limits = RuntimeLimits { answer_checks_max: 1, ..RuntimeLimits::default() };
    let (runtime, mut checks, waiting) = asked(2, limits).await;
    let all: Vec<_> = (0..2).map(|number| reply(&waiting, number)).collect();
    let (subscriber, _address) = Collector::default().subscribe();
    let saying = beside(&runtime, async |runtime| say(runtime, all, subscriber).await);
    let first = checks.recv().await.unwrap();
    assert!(checks.try_recv().is_err(), "one at once");
    first.pass();
    checks.recv().await.unwrap().pass();
    assert!(matches!(saying.await.unwrap(), Ok(ContinuedChat::Streams(_))));
}

#[actix::test]
async fn a_message_that_answers_the_last_asks_of_two_sub_agents_continues_their_caller() {
    tokio::time::pause();
    let delegate = json!({ "agent": "desk", "task": "refund" });
    let one_call = || calls(&[("c1", "refund", json!({ "amount": 500 }))]);
    let script = [
        calls(&[("d1", "delegate_task", delegate.clone()), ("d2", "delegate_task", delegate)]),
        one_call(),
        one_call(),
        text("inner done"),
        text("inner done"),
        text("outer done"),
    ];
    let model = ScriptedModel::local(script);
    let tools = vec![guarded(&Effects::default(), over_100())];
    let registry = with_boss(registry(&model, tools));
    let world = World::launch(registry, RuntimeLimits::default()).await;
    let asked = GenerationRequest { agent_id: "boss".to_owned(), ..request() };
    let waiting = world.runtime.generate(asked).await.unwrap();
    assert_eq!(waiting.asks.len(), 2);
    let replies = waiting.asks.iter().map(|ask| ChatReply {
        tool_call_id: ask.waiting_call().to_string(),
        approval_id: Some(ask.ask_id.to_string()),
        reply: Reply::Decided { approved: true, reason: None },
    });
    let watching = Collector::default();
    let (subscriber, _address) = watching.subscribe();
    let conversation = ConversationKey { agent_id: Arc::from("boss"), ..key() };
    let chat = ContinueChat {
        agent_id: "boss".to_owned(),
        conversation: Some(conversation),
        ..saying(replies.collect())
    };
    let continued = world.runtime.continue_chat(chat, subscriber).await.unwrap();
    let ContinuedChat::Streams(_going) = continued else { panic!("{continued:?}") };
    pass(Duration::from_millis(100)).await;
    assert_eq!(watching.text(), "outer done");
}

/// A guarded tool that never returns.
fn hanging(approval: Approval) -> ToolDefinition {
    let body = ToolBody::Function(Arc::new(|_, _| pending().boxed()));
    ToolDefinition {
        approval: Some(Arc::new(approval)),
        timeout: Some(Duration::from_secs(3_600)),
        ..ToolDefinition::new(spec("refund"), body).unwrap()
    }
}

#[actix::test]
async fn a_deadline_passes_while_too_many_generations_run_for_another_to_continue() {
    tokio::time::pause();
    let one_call = || calls(&[("c1", "refund", json!({ "amount": 500 }))]);
    let model = ScriptedModel::local([one_call(), one_call(), one_call(), text("done")]);
    let registry = registry(&model, vec![hanging(over_100().deadline(Duration::from_secs(60)))]);
    let limits = RuntimeLimits { generations_live_max: 1, ..RuntimeLimits::default() };
    let world = World::launch(registry, limits).await;
    let mut asks = Vec::new();
    for _ in 0..3 {
        let alone = GenerationRequest { conversation_id: None, ..request() };
        asks.extend(world.runtime.generate(alone).await.unwrap().asks);
    }
    let expiring = asks.pop().unwrap();
    for approved in &asks {
        let open = ask(&world, &approved.ask_id).await;
        world.runtime.answer_ask(open, decision(json!({ "approved": true }))).await.unwrap();
    }
    // of those that were interrupted, one runs again, and the other one waits for room
    let world = world.restart().await;
    pass(Duration::from_secs(70)).await;
    assert_eq!(world.runtime.stats().generations_live, 1);
    assert_eq!(ask(&world, &expiring.ask_id).await.state, AskState::Expired);
}

/// Notes the ends of calls.
#[derive(Default)]
struct Ends(Mutex<Vec<ToolOutcome>>);

impl AgentHooks for Ends {
    fn on_tool_end<'a>(&'a self, _: &'a RunInfo, result: &'a ToolResult) -> BoxFuture<'a, ()> {
        self.0.lock().unwrap().push(result.outcome.clone());
        ready(()).boxed()
    }
}

#[actix::test]
async fn a_call_that_waits_for_a_person_has_not_ended() {
    tokio::time::pause();
    let question = calls(&[("c1", "ask_user", json!({ "question": "Why?" }))]);
    let mut registry = registry(&ScriptedModel::local([question, text("done")]), Vec::new());
    let ends = Arc::new(Ends::default());
    let hooks = Some(Hooks(Arc::clone(&ends) as _));
    let desk = AgentDefinition { hooks, ..AgentDefinition::clone(&registry.agents["desk"]) };
    registry.agents.insert("desk".to_owned(), Arc::new(desk));
    let world = World::launch(registry, RuntimeLimits::default()).await;
    let waiting = world.runtime.generate(request()).await.unwrap();
    assert_eq!(*ends.0.lock().unwrap(), []);
    let open = ask(&world, &waiting.asks[0].ask_id).await;
    world.runtime.answer_ask(open, decision(json!("because"))).await.unwrap();
    pass(Duration::from_secs(1)).await;
    assert_eq!(*ends.0.lock().unwrap(), [ToolOutcome::Output(json!("because"))]);
}
