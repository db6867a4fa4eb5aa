//! Runs that wait for people: withdrawn, cancelled, continued in chats, in steps and by sub-agents,
//! and after a restart.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::FutureExt as _;
use greenroom_actors::RuntimeLimits;
use greenroom_actors::agent::generation::{GenerationEvent, GenerationRequest};
use greenroom_actors::agent::tool::{ToolBody, ToolContext, ToolDefinition};
use greenroom_actors::agent::{AgentDefinition, OnCrash, Remember};
use greenroom_actors::domain::message::{Part, ToolOutcome};
use greenroom_actors::domain::principal::Principal;
use greenroom_actors::ports::model::scripted::ScriptedModel;
use greenroom_actors::ports::store::{
    AskState, AskSubject, ConversationKey, GenerationStatus, PageSize, Status,
};
use greenroom_actors::registry::Registry;
use greenroom_actors::requests::{
    AnswerAsk, ApproveCall, AskError, ChatReply, ContinueChat, IdempotencyKey, Permissions, Reply,
};
use greenroom_actors::runtime::ContinuedChat;
use greenroom_actors::testkit::{World, pass, start, target};
use greenroom_actors::visibility::Visibility;
use serde_json::json;

use crate::approvals::{
    Effects, answer, ask, calls, decision, denied, done, generate, guarded, key, open_asks,
    over_100, recorded, registry, request, spec, text, world,
};
use crate::generations::Collector;

#[actix::test]
async fn a_new_message_withdraws_what_is_asked() {
    tokio::time::pause();
    let effects = Effects::default();
    let script = [calls(&[("c1", "refund", json!({ "amount": 500 }))]), text("of course")];
    let (world, model) = world(script, vec![guarded(&effects, over_100())]).await;
    let waiting = generate(&world).await;
    let next = generate(&world).await;
    assert_eq!(next.text, "of course");
    let (status, _, outcomes) = recorded(&world, &waiting.id).await;
    assert_eq!(status, GenerationStatus::Cancelled);
    let why = "not approved: the user went on";
    assert_eq!(outcomes, [denied(why)]);
    assert_eq!(ask(&world, &waiting.asks[0].ask_id).await.state, AskState::Withdrawn);
    let asked = model.requests().pop().unwrap();
    let results =
        asked.messages.iter().flat_map(|message| &message.parts).filter_map(|part| match part {
            Part::ToolResult(result) => Some(result.outcome.clone()),
            _ => None,
        });
    assert_eq!(results.collect::<Vec<_>>(), [denied(why)], "the model reads it");
    assert_eq!(effects.all().len(), 0);
}

#[actix::test]
async fn an_answer_and_a_new_message_at_once_have_one_winner() {
    tokio::time::pause();
    for moments in 0..24 {
        let effects = Effects::default();
        let ask_it = calls(&[("c1", "refund", json!({ "amount": 500 }))]);
        let script = [ask_it, text("one"), text("two")];
        let (world, _) = world(script, vec![guarded(&effects, over_100())]).await;
        let waiting = generate(&world).await;
        let open = ask(&world, &waiting.asks[0].ask_id).await;
        let answering = world.runtime.answer_ask(open, decision(json!({ "approved": true })));
        let asking = async {
            for _ in 0..moments {
                tokio::task::yield_now().await;
            }
            generate(&world).await
        };
        let (answered, _) = tokio::join!(answering, asking);
        let (status, _, outcomes) = recorded(&world, &waiting.id).await;
        let withdrawn = denied("not approved: the user went on");
        let expected = match answered.is_ok() {
            true => (GenerationStatus::Completed, vec![done()], 1),
            false => (GenerationStatus::Cancelled, vec![withdrawn], 0),
        };
        assert_eq!((status, outcomes, effects.all().len()), expected, "after {moments}");
    }
}

#[actix::test]
async fn a_suspended_generation_is_cancelled_with_its_asks() {
    tokio::time::pause();
    let effects = Effects::default();
    let script = [calls(&[("c1", "refund", json!({ "amount": 500 }))])];
    let (world, _) = world(script, vec![guarded(&effects, over_100())]).await;
    let waiting = generate(&world).await;
    let all = Visibility::Everything;
    world.runtime.cancel_generation("desk", &waiting.id, &all).await.unwrap();
    assert_eq!(recorded(&world, &waiting.id).await.0, GenerationStatus::Cancelled);
    assert_eq!(open_asks(&world).await, []);
    let again = world.runtime.cancel_generation("desk", &waiting.id, &all).await;
    assert!(again.is_err());
}

#[actix::test]
async fn a_chat_goes_on_with_the_answers_of_its_message() {
    tokio::time::pause();
    let effects = Effects::default();
    let script = [
        calls(&[
            ("c1", "refund", json!({ "amount": 500 })),
            ("c2", "refund", json!({ "amount": 600 })),
        ]),
        text("one is refunded"),
    ];
    let (world, _) = world(script, vec![guarded(&effects, over_100())]).await;
    let first = Collector::default();
    let (subscriber, _address) = first.subscribe();
    let chat = GenerationRequest { is_chat: true, ..request() };
    let streamed = world.runtime.stream_generation(chat, subscriber).await.unwrap();
    pass(Duration::from_millis(50)).await;
    assert!(matches!(first.last(), Some(GenerationEvent::Finish { .. })), "{:?}", first.last());
    let asks: Vec<_> = first.asks();
    assert_eq!(asks.len(), 2);

    let reply = |id: &str, ask: &str, approved| ChatReply {
        tool_call_id: id.to_owned(),
        approval_id: Some(ask.to_owned()),
        reply: Reply::Decided { approved, reason: None },
    };
    let say = |replies| ContinueChat {
        agent_id: "desk".to_owned(),
        conversation: Some(key()),
        replies,
        visibility: Visibility::Everything,
        by: Some(Principal::verified("ann")),
        answerer: None,
        permissions: Permissions::default(),
    };
    let (subscriber, _address) = Collector::default().subscribe();
    let half = say(vec![reply("c1", &asks[0].ask_id, true)]);
    let half = world.runtime.continue_chat(half, subscriber).await.unwrap();
    let ContinuedChat::Waits(waits) = half else { panic!("{half:?}") };
    assert_eq!((waits.generation_id.as_str(), waits.asks.len()), (&*streamed.id, 1));

    let second = Collector::default();
    let (subscriber, _address) = second.subscribe();
    let rest = say(vec![reply("c1", &asks[0].ask_id, true), reply("c2", &asks[1].ask_id, false)]);
    let rest = world.runtime.continue_chat(rest, subscriber).await.unwrap();
    let ContinuedChat::Streams(_going) = rest else { panic!("{rest:?}") };
    pass(Duration::from_millis(50)).await;
    assert_eq!(second.text(), "one is refunded");
    assert_eq!(second.message_id(), first.message_id());
    assert_eq!(second.results(), [done(), denied("refused by a person")]);
    assert_eq!(recorded(&world, &streamed.id).await.0, GenerationStatus::Completed);

    let (subscriber, _address) = Collector::default().subscribe();
    let late = say(vec![reply("c1", &asks[0].ask_id, true)]);
    assert!(world.runtime.continue_chat(late, subscriber).await.is_err(), "nothing waits");
}

#[actix::test]
async fn an_approval_counts_for_the_rest_of_the_chat_where_the_tool_says_so() {
    tokio::time::pause();
    for (remember, asked) in [(Remember::Never, 1), (Remember::Chat, 0)] {
        let effects = Effects::default();
        let ask = |id| calls(&[(id, "refund", json!({ "amount": 500 }))]);
        let script = [ask("c1"), ask("c2"), text("done"), ask("c3"), text("done")];
        let tool = guarded(&effects, over_100().remember(remember));
        let (world, _) = world(script, vec![tool]).await;
        generate(&world).await;
        answer(&world, json!({ "approved": true })).await;
        pass(Duration::from_millis(100)).await;
        assert_eq!(open_asks(&world).await.len(), asked, "in the same run");
        if asked == 1 {
            answer(&world, json!({ "approved": true })).await;
            pass(Duration::from_millis(100)).await;
        }
        assert_eq!(generate(&world).await.asks.len(), asked, "in the next run");
    }
}

#[actix::test]
async fn a_step_waits_with_its_agent() {
    tokio::time::pause();
    let effects = Effects::default();
    let script = [calls(&[("c1", "refund", json!({ "amount": 500 }))]), text("refunded")];
    let (world, _) = world(script, vec![guarded(&effects, over_100())]).await;
    let halted = world.runtime.execute(start("w", "e", json!({}))).await.unwrap();
    assert_eq!(halted.status(), Status::Suspended);
    let open = open_asks(&world).await;
    assert_eq!(open.len(), 1, "the step has no ask of its own");
    assert!(matches!(&open[0].subject, AskSubject::Call(call) if &*call.agent_id == "desk"));

    let world = world.restart().await;
    answer(&world, json!({ "approved": true })).await;
    pass(Duration::from_millis(100)).await;
    let state = world.runtime.describe(&target("w", "e")).await.unwrap();
    assert_eq!(state.status, Status::Completed);
    assert_eq!(effects.all(), [json!({ "amount": 500 })]);
}

#[actix::test]
async fn an_ask_ends_with_the_step_that_waits_for_it() {
    tokio::time::pause();
    let script = [calls(&[("c1", "refund", json!({ "amount": 500 }))])];
    let (world, _) = world(script, vec![guarded(&Effects::default(), over_100())]).await;
    world.runtime.execute(start("w", "e", json!({}))).await.unwrap();
    let open = open_asks(&world).await;
    world.runtime.cancel(&target("w", "e"), None, None).await.unwrap();
    pass(Duration::from_millis(100)).await;
    assert_eq!(ask(&world, &open[0].id).await.state, AskState::Withdrawn);
    let AskSubject::Call(call) = &open[0].subject else { panic!("{open:?}") };
    assert_eq!(recorded(&world, &call.generation_id).await.0, GenerationStatus::Cancelled);
}

/// An agent `boss` that delegates to `desk`.
pub(crate) fn with_boss(mut registry: Registry) -> Registry {
    let boss = AgentDefinition {
        sub_agents: vec!["desk".to_owned()],
        memory: true,
        ..AgentDefinition::clone(&registry.agents["desk"])
    };
    let boss = AgentDefinition {
        id: "boss".to_owned(),
        tools: greenroom_actors::agent::Choice::default(),
        ..boss
    };
    registry.agents.insert("boss".to_owned(), Arc::new(boss));
    registry
}

#[actix::test]
async fn an_approval_of_a_sub_agent_is_asked_once_and_continues_inside() {
    tokio::time::pause();
    let effects = Effects::default();
    let script = [
        calls(&[("d1", "delegate_task", json!({ "agent": "desk", "task": "refund" }))]),
        calls(&[("c1", "refund", json!({ "amount": 500 }))]),
        text("inner done"),
        text("outer done"),
    ];
    let model = ScriptedModel::local(script);
    let registry = with_boss(registry(&model, vec![guarded(&effects, over_100())]));
    let world = World::launch(registry, RuntimeLimits::default()).await;
    let asked = GenerationRequest { agent_id: "boss".to_owned(), ..request() };
    let waiting = world.runtime.generate(asked).await.unwrap();
    let [pending] = waiting.asks.as_slice() else { panic!("{waiting:?}") };
    assert_eq!((&*pending.tool_name, &**pending.waiting_call()), ("refund", "d1"));
    assert_eq!(open_asks(&world).await.len(), 1);

    let world = world.restart().await;
    answer(&world, json!({ "approved": true })).await;
    pass(Duration::from_millis(100)).await;
    let all = &Visibility::Everything;
    let entry = world.runtime.generation("boss", &waiting.id, all).await.unwrap().unwrap();
    assert_eq!((entry.record.status, entry.record.error), (GenerationStatus::Completed, None));
    assert_eq!(entry.record.output, Some(json!("outer done")));
    let inner = ToolOutcome::Output(json!("inner done"));
    assert_eq!(entry.steps[0].tool_results[0].outcome, inner);
    assert_eq!(effects.all(), [json!({ "amount": 500 })]);
    assert_eq!(model.requests().len(), 4);
}

#[actix::test]
async fn a_refusal_inside_a_sub_agent_is_not_one_of_its_call() {
    tokio::time::pause();
    for (approved, inner) in [(false, denied("refused by a person")), (true, done())] {
        let script = [
            calls(&[("d1", "delegate_task", json!({ "agent": "desk", "task": "refund" }))]),
            calls(&[("c1", "refund", json!({ "amount": 500 }))]),
            text("inner done"),
            text("outer done"),
        ];
        let model = ScriptedModel::local(script);
        let tool = guarded(&Effects::default(), over_100());
        let registry = with_boss(registry(&model, vec![tool]));
        let world = World::launch(registry, RuntimeLimits::default()).await;
        let asked = GenerationRequest { agent_id: "boss".to_owned(), ..request() };
        let waiting = world.runtime.generate(asked).await.unwrap();
        let open = open_asks(&world).await;
        let AskSubject::Call(call) = &open[0].subject else { panic!("{open:?}") };
        answer(&world, json!({ "approved": approved })).await;
        assert_eq!(recorded(&world, &call.generation_id).await.2, [inner], "of the inner call");
        let boss = ConversationKey { agent_id: Arc::from("boss"), ..key() };
        let size = PageSize::of(10);
        let stored = world.runtime.conversations().messages(&boss, None, size).await.unwrap();
        let shown = |part: &Part| match part {
            Part::ToolApproval(approval) => panic!("of no call of this run: {approval:?}"),
            Part::ToolResult(result) => Some(result.outcome.clone()),
            _ => None,
        };
        let shown = stored.iter().flat_map(|it| &it.parts).filter_map(shown);
        assert_eq!(shown.collect::<Vec<_>>(), [ToolOutcome::Output(json!("inner done"))], "it ran");
        let late = world.runtime.approve_call(ApproveCall {
            agent_id: "boss".to_owned(),
            generation_id: waiting.id,
            tool_call_id: "d1".to_owned(),
            visibility: Visibility::Everything,
            answer: decision(json!({ "approved": true })),
        });
        let late = late.await;
        assert!(matches!(late, Err(AskError::Closed { .. })), "{late:?}");
    }
}

#[actix::test]
async fn an_interrupted_run_goes_on_where_it_was() {
    tokio::time::pause();
    let interrupted = "interrupted by a restart; it may or may not have had its effect";
    let rows = [
        (OnCrash::Repeat, done(), 2),
        (OnCrash::Tell, ToolOutcome::Error(interrupted.to_owned()), 1),
    ];
    for (on_crash, outcome, made) in rows {
        let effects = Effects::default();
        let tool = ToolDefinition { on_crash, ..slow(&effects) };
        let script = [calls(&[("c1", "slow", json!({}))]), text("done")];
        let (world, model) = world(script, vec![tool]).await;
        let begun = world.runtime.begin_generation(request()).await.unwrap();
        let id = begun.id.to_string();
        pass(Duration::from_secs(1)).await;
        assert_eq!(effects.all().len(), 1);
        let world = world.restart().await;
        pass(Duration::from_secs(20)).await;
        let (status, said, outcomes) = recorded(&world, &id).await;
        assert_eq!((status, said.as_str()), (GenerationStatus::Completed, "done"));
        assert_eq!(outcomes, [outcome]);
        let keys = effects.keys();
        assert_eq!(keys.len(), made);
        assert!(keys.iter().all(|key| *key == keys[0]), "{keys:?}");
        assert_eq!(model.requests().len(), 2, "the model is not asked again");
    }
}

/// A tool that takes ten seconds.
pub(crate) fn slow(effects: &Effects) -> ToolDefinition {
    let effects = effects.clone();
    let body = move |arguments, context: ToolContext| {
        effects.0.lock().unwrap().push((arguments, context.idempotency_key));
        async {
            tokio::time::sleep(Duration::from_secs(10)).await;
            Ok(json!("done"))
        }
        .boxed()
    };
    ToolDefinition::new(spec("slow"), ToolBody::Function(Arc::new(body))).unwrap()
}

#[actix::test]
async fn a_person_decides_about_an_interrupted_call() {
    tokio::time::pause();
    let refused = "a restart interrupted the call, which may or may not have had its effect; to \
                   repeat it was refused by a person";
    let rows = [(true, done(), 2), (false, denied(refused), 1)];
    for (approved, outcome, made) in rows {
        let effects = Effects::default();
        let tool = ToolDefinition { on_crash: OnCrash::Ask, ..slow(&effects) };
        let script = [calls(&[("c1", "slow", json!({}))]), text("done")];
        let (world, _) = world(script, vec![tool]).await;
        let begun = world.runtime.begin_generation(request()).await.unwrap();
        let id = begun.id.to_string();
        pass(Duration::from_secs(1)).await;
        let world = world.restart().await;
        assert_eq!(recorded(&world, &id).await.0, GenerationStatus::Suspended);
        answer(&world, json!({ "approved": approved })).await;
        pass(Duration::from_secs(20)).await;
        let (status, _, outcomes) = recorded(&world, &id).await;
        assert_eq!((status, outcomes), (GenerationStatus::Completed, vec![outcome]));
        assert_eq!(effects.all().len(), made);
    }
}

#[actix::test]
async fn a_run_that_is_interrupted_again_and_again_fails() {
    tokio::time::pause();
    let effects = Effects::default();
    let script = [calls(&[("c1", "slow", json!({}))]), text("done")];
    let (mut world, _) = world(script, vec![slow(&effects)]).await;
    let id = world.runtime.begin_generation(request()).await.unwrap().id.to_string();
    for _ in 0..3 {
        pass(Duration::from_secs(1)).await;
        assert_eq!(recorded(&world, &id).await.0, GenerationStatus::Working);
        world = world.restart().await;
    }
    pass(Duration::from_secs(1)).await;
    assert_eq!(recorded(&world, &id).await.0, GenerationStatus::Error);
    let all = &Visibility::Everything;
    let entry = world.runtime.generation("desk", &id, all).await.unwrap().unwrap();
    assert_eq!(entry.record.error.as_deref(), Some("interrupted 3 times"));
    assert_eq!(effects.all().len(), 3);
}

#[actix::test]
async fn a_volatile_run_ends_with_its_process() {
    tokio::time::pause();
    let effects = Effects::default();
    let model = ScriptedModel::local([calls(&[("c1", "slow", json!({}))])]);
    let mut registry = registry(&model, vec![slow(&effects)]);
    let desk = AgentDefinition { is_volatile: true, ..(*registry.agents["desk"]).clone() };
    registry.agents.insert("desk".to_owned(), Arc::new(desk));
    let world = World::launch(registry, RuntimeLimits::default()).await;
    let id = world.runtime.begin_generation(request()).await.unwrap().id.to_string();
    pass(Duration::from_secs(1)).await;
    let world = world.restart().await;
    pass(Duration::from_secs(20)).await;
    assert_eq!(recorded(&world, &id).await.0, GenerationStatus::Error);
    assert_eq!(effects.all().len(), 1);
}

#[actix::test]
async fn a_call_is_approved_by_its_id() {
    tokio::time::pause();
    let effects = Effects::default();
    let script = [calls(&[("c1", "refund", json!({ "amount": 500 }))]), text("done")];
    let (world, _) = world(script, vec![guarded(&effects, over_100())]).await;
    let waiting = generate(&world).await;
    let approve = |call: &str| ApproveCall {
        agent_id: "desk".to_owned(),
        generation_id: waiting.id.clone(),
        tool_call_id: call.to_owned(),
        visibility: Visibility::Everything,
        answer: decision(json!({ "approved": true })),
    };
    let unknown = world.runtime.approve_call(approve("c9")).await;
    assert_eq!(unknown.err(), Some(AskError::NotFound));
    world.runtime.approve_call(approve("c1")).await.unwrap();
    assert_eq!(recorded(&world, &waiting.id).await.0, GenerationStatus::Completed);
    let late = world.runtime.approve_call(approve("c1")).await;
    let by = Some(Arc::new(Principal::verified("lea")));
    let is_told = matches!(&late, Err(AskError::Closed { by: known, .. }) if *known == by);
    assert!(is_told, "by whom it was answered: {late:?}");
    let unknown = world.runtime.approve_call(approve("c9")).await;
    assert_eq!(unknown.err(), Some(AskError::NotFound));
}

#[actix::test]
async fn a_key_repeats_one_answer_about_a_call() {
    tokio::time::pause();
    let script = [calls(&[("c1", "refund", json!({ "amount": 500 }))]), text("done")];
    let (world, _) = world(script, vec![guarded(&Effects::default(), over_100())]).await;
    let waiting = generate(&world).await;
    let open = ask(&world, &waiting.asks[0].ask_id).await;
    let send = async |scope: &str, body: &str| {
        let key = IdempotencyKey { scope: Arc::from(scope), body_hash: Arc::from(body) };
        let answer = decision(json!({ "approved": true }));
        let answer = AnswerAsk { idempotency: Some(key), ..answer };
        world.runtime.answer_ask(open.clone(), answer).await.map(|detail| detail.ask)
    };
    let first = send("k1", "a").await.unwrap();
    assert_eq!(send("k1", "a").await.unwrap(), first, "the same answer again");
    assert_eq!(send("k1", "b").await.err(), Some(AskError::KeyReused), "another body");
    let other = send("k2", "a").await;
    assert!(matches!(other, Err(AskError::Closed { .. })), "the answer of another: {other:?}");
}
