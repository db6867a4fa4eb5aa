//! Calls that wait for people, and their answers.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::{FutureExt as _, join_all};
use greenroom_actors::RuntimeLimits;
use greenroom_actors::agent::generation::GenerationRequest;
use greenroom_actors::agent::tool::{ToolBody, ToolContext, ToolDefinition, ToolError};
use greenroom_actors::agent::{AgentDefinition, Approval, Generation, OnTimeout, ToolAsk};
use greenroom_actors::domain::definition::StepKind;
use greenroom_actors::domain::message::{Message, Part, Role, ToolOutcome};
use greenroom_actors::domain::principal::Principal;
use greenroom_actors::ports::model::scripted::{ScriptedAnswer, ScriptedModel};
use greenroom_actors::ports::model::{FinishReason, ToolCall, ToolSpec};
use greenroom_actors::ports::store::{
    Ask, AskFilter, AskKind, AskState, ConversationKey, GenerationStatus, PageSize,
};
use greenroom_actors::registry::Registry;
use greenroom_actors::requests::{AnswerAsk, AskAccess, AskError};
use greenroom_actors::testkit::{World, pass, registry_of};
use greenroom_actors::visibility::Visibility;
use serde_json::{Value, json};

use crate::workflows::{add_agent, step, workflow};

/// The calls that a tool has got: arguments and idempotency keys.
#[derive(Clone, Default)]
pub(crate) struct Effects(pub(crate) Arc<Mutex<Vec<(Value, String)>>>);

impl Effects {
    pub(crate) fn all(&self) -> Vec<Value> {
        self.0.lock().unwrap().iter().map(|(arguments, _)| arguments.clone()).collect()
    }

    pub(crate) fn keys(&self) -> Vec<String> {
        self.0.lock().unwrap().iter().map(|(_, key)| key.clone()).collect()
    }
}

pub(crate) fn spec(name: &str) -> ToolSpec {
    ToolSpec {
        name: name.to_owned(),
        description: String::new(),
        parameters: json!({
            "type": "object", "properties": { "amount": { "type": "integer" } }
        }),
    }
}

pub(crate) fn function(
    name: &str,
    body: impl Fn(Value, ToolContext) -> Result<Value, ToolError> + Send + Sync + 'static,
) -> ToolDefinition {
    let body = move |arguments, context| {
        let result = body(arguments, context);
        async { result }.boxed()
    };
    ToolDefinition::new(spec(name), ToolBody::Function(Arc::new(body))).unwrap()
}

/// A tool that notes its calls and returns `done`.
pub(crate) fn refund(effects: &Effects) -> ToolDefinition {
    let effects = effects.clone();
    function("refund", move |arguments, context| {
        effects.0.lock().unwrap().push((arguments, context.idempotency_key));
        Ok(json!("done"))
    })
}

pub(crate) fn over_100() -> Approval {
    let approval = Approval::when("args.amount > 100").unwrap();
    approval.reason("Refund {{ args.amount }}?").unwrap()
}

pub(crate) fn guarded(effects: &Effects, approval: Approval) -> ToolDefinition {
    ToolDefinition { approval: Some(Arc::new(approval)), ..refund(effects) }
}

pub(crate) fn calls(calls: &[(&str, &str, Value)]) -> ScriptedAnswer {
    let calls = calls.iter().map(|(id, name, input)| ToolCall {
        tool_call_id: (*id).to_owned(),
        tool_name: (*name).to_owned(),
        input: input.clone(),
    });
    ScriptedAnswer::ToolCalls(calls.collect())
}

pub(crate) fn text(text: &str) -> ScriptedAnswer {
    ScriptedAnswer::Text(text.to_owned())
}

/// An agent `desk` with these tools, and a workflow whose step asks it.
pub(crate) fn registry(model: &ScriptedModel, tools: Vec<ToolDefinition>) -> Registry {
    let kind = StepKind::Agent {
        agent: "desk".to_owned(),
        prompt: Some("refund".to_owned()),
        schema: None,
        options: None,
    };
    let mut registry = registry_of([workflow("w", vec![step("ask", kind)])]);
    let mut names: Vec<_> = tools.iter().map(|tool| tool.spec.name.clone()).collect();
    names.push("ask_user".to_owned());
    for tool in tools {
        registry.tools.insert(tool.spec.name.clone(), Arc::new(tool));
    }
    let agent = AgentDefinition {
        memory: true,
        tools: greenroom_actors::agent::Choice::Fixed(names),
        ..AgentDefinition::default()
    };
    add_agent(&mut registry, "desk", model.clone(), agent);
    registry
}

pub(crate) async fn world(
    script: impl IntoIterator<Item = ScriptedAnswer>,
    tools: Vec<ToolDefinition>,
) -> (World, ScriptedModel) {
    let model = ScriptedModel::local(script);
    let world = World::launch(registry(&model, tools), RuntimeLimits::default()).await;
    (world, model)
}

pub(crate) fn request() -> GenerationRequest {
    GenerationRequest {
        agent_id: "desk".to_owned(),
        messages: vec![Message::text(Role::User, "please")],
        conversation_id: Some("talk".to_owned()),
        user_id: Some("ann".to_owned()),
        ..GenerationRequest::default()
    }
}

pub(crate) async fn generate(world: &World) -> Generation {
    world.runtime.generate(request()).await.unwrap()
}

pub(crate) fn decision(data: Value) -> AnswerAsk {
    AnswerAsk {
        data,
        by: Some(Principal::verified("lea")),
        access: AskAccess::default(),
        idempotency: None,
    }
}

pub(crate) async fn ask(world: &World, id: &str) -> Ask {
    world.runtime.find_ask(id, &Visibility::Everything).await.unwrap()
}

pub(crate) async fn open_asks(world: &World) -> Vec<Ask> {
    let filter = AskFilter { is_open: true, ..AskFilter::default() };
    world.runtime.inbox(&filter, None, 100).await.unwrap().asks
}

/// Answers the only open ask.
pub(crate) async fn answer(world: &World, data: Value) {
    let open = open_asks(world).await;
    assert_eq!(open.len(), 1, "{open:?}");
    world.runtime.answer_ask(open[0].clone(), decision(data)).await.unwrap();
}

/// Returns status, text of the last turn and outcomes of calls, as recorded, once nothing runs.
pub(crate) async fn recorded(
    world: &World,
    id: &str,
) -> (GenerationStatus, String, Vec<ToolOutcome>) {
    pass(Duration::from_millis(100)).await;
    let all = &Visibility::Everything;
    let entry = world.runtime.generation("desk", id, all).await.unwrap().unwrap();
    let outcomes = entry.steps.iter().flat_map(|step| &step.tool_results);
    let outcomes = outcomes.map(|result| result.outcome.clone()).collect();
    let text = entry.steps.last().map(|step| step.text.clone()).unwrap_or_default();
    (entry.record.status, text, outcomes)
}

pub(crate) fn done() -> ToolOutcome {
    ToolOutcome::Output(json!("done"))
}

pub(crate) fn denied(why: &str) -> ToolOutcome {
    ToolOutcome::Denied(why.to_owned())
}

#[actix::test]
async fn calls_wait_for_their_approval_and_others_run() {
    tokio::time::pause();
    let effects = Effects::default();
    let script = [
        calls(&[
            ("c1", "refund", json!({ "amount": 500 })),
            ("c2", "refund", json!({ "amount": 5 })),
        ]),
        text("refunded"),
    ];
    let (world, model) = world(script, vec![guarded(&effects, over_100())]).await;
    let waiting = generate(&world).await;
    assert!(waiting.is_suspended());
    assert_eq!(waiting.finish_reason, FinishReason::ToolCalls);
    assert_eq!(effects.all(), [json!({ "amount": 5 })], "the other call needs nobody");
    let [asked] = waiting.asks.as_slice() else { panic!("{waiting:?}") };
    assert_eq!((&*asked.tool_call_id, asked.reason.as_str()), ("c1", "Refund 500?"));
    assert_eq!(recorded(&world, &waiting.id).await.0, GenerationStatus::Suspended);

    let open = ask(&world, &asked.ask_id).await;
    assert_eq!((open.kind, open.state), (AskKind::Approval, AskState::Open));
    assert_eq!(open.user_id.as_deref(), Some("ann"));
    let detail = world.runtime.describe_ask(open.clone()).await.unwrap();
    assert_eq!(detail.payload.as_deref(), Some(&json!({ "amount": 500 })));

    let decided = decision(json!({ "approved": true }));
    let detail = world.runtime.answer_ask(open.clone(), decided).await.unwrap();
    assert_eq!(detail.ask.state, AskState::Answered);
    assert_eq!(detail.answer.unwrap().by.unwrap().id.as_ref(), "lea");
    let (status, said, outcomes) = recorded(&world, &waiting.id).await;
    assert_eq!((status, said.as_str()), (GenerationStatus::Completed, "refunded"));
    assert_eq!(outcomes, [done(), done()]);
    assert_eq!(effects.all(), [json!({ "amount": 5 }), json!({ "amount": 500 })]);
    assert_eq!(model.requests().len(), 2);

    let late = world.runtime.answer_ask(open, decision(json!({ "approved": false }))).await;
    assert!(matches!(late, Err(AskError::Closed { state: AskState::Answered, .. })), "{late:?}");
    let stored = conversation(&world).await;
    assert_eq!(stored.len(), 2, "one question and one message of the assistant");
    let approvals: Vec<_> = stored[1]
        .iter()
        .filter_map(|part| match part {
            Part::ToolApproval(approval) => {
                Some((approval.tool_call_id.as_str(), approval.approved))
            }
            _ => None,
        })
        .collect();
    assert_eq!(approvals, [("c1", Some(true))]);
}

pub(crate) fn key() -> ConversationKey {
    ConversationKey {
        agent_id: Arc::from("desk"),
        user_id: Some(Arc::from("ann")),
        conversation_id: Arc::from("talk"),
    }
}

/// Returns the parts of the stored messages.
pub(crate) async fn conversation(world: &World) -> Vec<Vec<Part>> {
    let messages =
        world.runtime.conversations().messages(&key(), None, PageSize::of(100)).await.unwrap();
    messages.into_iter().map(|message| message.parts).collect()
}

#[actix::test]
async fn a_refusal_is_the_result_of_the_call() {
    tokio::time::pause();
    let effects = Effects::default();
    let rows = [
        (json!({ "approved": false }), "refused by a person"),
        (json!({ "approved": false, "reason": "too much" }), "refused by a person: too much"),
    ];
    for (data, why) in rows {
        let script = [calls(&[("c1", "refund", json!({ "amount": 500 }))]), text("sorry")];
        let (world, _) = world(script, vec![guarded(&effects, over_100())]).await;
        let waiting = generate(&world).await;
        answer(&world, data).await;
        let (status, said, outcomes) = recorded(&world, &waiting.id).await;
        assert_eq!((status, said.as_str()), (GenerationStatus::Completed, "sorry"));
        assert_eq!(outcomes, [denied(why)]);
        assert_eq!(effects.all(), [json!(null); 0]);
    }
}

#[actix::test]
async fn a_wrong_answer_changes_nothing() {
    tokio::time::pause();
    let effects = Effects::default();
    let script = [calls(&[("c1", "refund", json!({ "amount": 500 }))]), text("done")];
    let (world, _) = world(script, vec![guarded(&effects, over_100())]).await;
    let waiting = generate(&world).await;
    let open = ask(&world, &waiting.asks[0].ask_id).await;
    let rows = [
        json!(null),
        json!({}),
        json!({ "approved": "yes" }),
        json!({ "approved": true, "sure": true }),
        json!({ "approved": true, "input": { "amount": 5 } }),
    ];
    for data in rows {
        let wrong = world.runtime.answer_ask(open.clone(), decision(data.clone())).await;
        assert!(matches!(wrong, Err(AskError::InvalidData(_))), "{data}: {wrong:?}");
        assert_eq!(open_asks(&world).await, std::slice::from_ref(&open));
    }
}

#[actix::test]
async fn arguments_are_edited_where_that_is_allowed() {
    tokio::time::pause();
    let effects = Effects::default();
    let script = [calls(&[("c1", "refund", json!({ "amount": 500 }))]), text("done")];
    let (world, model) = world(script, vec![guarded(&effects, over_100().edit())]).await;
    let waiting = generate(&world).await;
    let open = ask(&world, &waiting.asks[0].ask_id).await;
    let wrong = json!({ "approved": true, "input": { "amount": "much" } });
    let wrong = world.runtime.answer_ask(open, decision(wrong)).await.unwrap_err();
    assert!(matches!(&wrong, AskError::InvalidData(why) if why.contains("amount")), "{wrong}");
    answer(&world, json!({ "approved": true, "input": { "amount": 50 } })).await;
    assert_eq!(recorded(&world, &waiting.id).await.2, [done()]);
    assert_eq!(effects.all(), [json!({ "amount": 50 })]);
    let asked = model.requests().pop().unwrap();
    let shown: Vec<_> = asked.messages.iter().flat_map(|message| &message.parts).collect();
    let is_edited =
        |part: &&&Part| matches!(part, Part::ToolCall(call) if call.input["amount"] == 50);
    assert!(shown.iter().any(|part| is_edited(&part)), "the model reads what was called");
}

#[actix::test]
async fn all_asks_of_a_turn_are_answered_before_it_goes_on() {
    tokio::time::pause();
    let effects = Effects::default();
    let script = [
        calls(&[
            ("c1", "refund", json!({ "amount": 500 })),
            ("c2", "ask_user", json!({ "question": "Which colour?" })),
            ("c3", "refund", json!({ "amount": 600 })),
        ]),
        text("done"),
    ];
    let (mut world, _) = world(script, vec![guarded(&effects, over_100())]).await;
    let waiting = generate(&world).await;
    let kinds: Vec<_> = waiting.asks.iter().map(|ask| ask.kind).collect();
    assert_eq!(kinds, [AskKind::Approval, AskKind::Input, AskKind::Approval]);
    let answers =
        [json!({ "approved": false }), json!("blue"), json!({ "approved": true, "reason": "ok" })];
    for (asked, data) in waiting.asks.iter().zip(answers) {
        assert_eq!(recorded(&world, &waiting.id).await.0, GenerationStatus::Suspended);
        // what was answered survives
        world = world.restart().await;
        let open = ask(&world, &asked.ask_id).await;
        world.runtime.answer_ask(open, decision(data)).await.unwrap();
    }
    let (status, said, outcomes) = recorded(&world, &waiting.id).await;
    assert_eq!((status, said.as_str()), (GenerationStatus::Completed, "done"));
    let blue = ToolOutcome::Output(json!("blue"));
    assert_eq!(outcomes, [denied("refused by a person"), blue, done()]);
    assert_eq!(effects.all(), [json!({ "amount": 600 })]);
}

#[actix::test]
async fn one_of_many_answers_wins() {
    tokio::time::pause();
    let effects = Effects::default();
    for round in 0..20 {
        let script = [calls(&[("c1", "refund", json!({ "amount": 500 }))]), text("done")];
        let (world, _) = world(script, vec![guarded(&effects, over_100())]).await;
        let waiting = generate(&world).await;
        let open = ask(&world, &waiting.asks[0].ask_id).await;
        let answers = join_all((0..50).map(|n| {
            let data = json!({ "approved": true, "reason": n.to_string() });
            world.runtime.answer_ask(open.clone(), decision(data))
        }));
        let won = answers.await.into_iter().filter(Result::is_ok).count();
        assert_eq!(won, 1);
        recorded(&world, &waiting.id).await;
        assert_eq!(effects.all().len(), round + 1);
    }
}

#[actix::test]
async fn an_answer_is_checked_against_the_schema_of_the_question() {
    tokio::time::pause();
    let schema = json!({ "type": "object", "required": ["colour"] });
    let asks = function("paint", move |_, context| {
        let first = context.ask(ToolAsk::new("Which colour?").schema(schema.clone()))?;
        let second = context.ask(ToolAsk::new("How much?"))?;
        Ok(json!([first["colour"], second]))
    });
    let script = [calls(&[("c1", "paint", json!({}))]), text("done")];
    let (world, _) = world(script, vec![asks]).await;
    let waiting = generate(&world).await;
    let open = ask(&world, &waiting.asks[0].ask_id).await;
    assert_eq!((open.kind, &*open.reason), (AskKind::Input, "Which colour?"));
    let wrong = world.runtime.answer_ask(open, decision(json!({}))).await;
    assert_eq!(wrong.unwrap_err(), AskError::InvalidData("colour: missing".to_owned()));
    answer(&world, json!({ "colour": "blue" })).await;
    assert_eq!(recorded(&world, &waiting.id).await.0, GenerationStatus::Suspended);
    let next = open_asks(&world).await;
    assert_eq!((next.len(), &*next[0].reason), (1, "How much?"));
    answer(&world, json!(3)).await;
    let (status, _, outcomes) = recorded(&world, &waiting.id).await;
    assert_eq!(status, GenerationStatus::Completed);
    assert_eq!(outcomes, [ToolOutcome::Output(json!(["blue", 3]))]);
}

#[actix::test]
async fn a_deadline_answers_as_the_tool_says() {
    tokio::time::pause();
    let rows = [
        (OnTimeout::Refuse, denied("refused: it was not answered in time"), 0),
        (OnTimeout::Approve, done(), 1),
    ];
    for (on_timeout, outcome, made) in rows {
        let effects = Effects::default();
        let approval = over_100().deadline(Duration::from_secs(60)).on_timeout(on_timeout);
        let script = [calls(&[("c1", "refund", json!({ "amount": 500 }))]), text("done")];
        let (world, _) = world(script, vec![guarded(&effects, approval)]).await;
        let waiting = generate(&world).await;
        pass(Duration::from_secs(50)).await;
        assert_eq!(recorded(&world, &waiting.id).await.0, GenerationStatus::Suspended);
        pass(Duration::from_secs(20)).await;
        let (status, _, outcomes) = recorded(&world, &waiting.id).await;
        assert_eq!((status, outcomes), (GenerationStatus::Completed, vec![outcome]));
        assert_eq!(ask(&world, &waiting.asks[0].ask_id).await.state, AskState::Expired);
        assert_eq!(effects.all().len(), made);
    }
}

#[actix::test]
async fn an_answer_after_the_deadline_is_too_late() {
    tokio::time::pause();
    let effects = Effects::default();
    let approval = over_100().deadline(Duration::from_secs(61));
    let script = [calls(&[("c1", "refund", json!({ "amount": 500 }))]), text("done")];
    let (world, _) = world(script, vec![guarded(&effects, approval)]).await;
    let waiting = generate(&world).await;
    pass(Duration::from_secs(60)).await;
    // the look at the deadline fails
    world.store.set_readable(false);
    pass(Duration::from_secs(2)).await;
    world.store.set_readable(true);
    let asked = ask(&world, &waiting.asks[0].ask_id).await;
    assert_eq!(asked.state, AskState::Open);
    let late = world.runtime.answer_ask(asked, decision(json!({ "approved": true }))).await;
    assert!(matches!(late, Err(AskError::Closed { state: AskState::Expired, .. })), "{late:?}");
    pass(Duration::from_secs(10)).await;
    let (status, _, outcomes) = recorded(&world, &waiting.id).await;
    let refused = denied("refused: it was not answered in time");
    assert_eq!((status, outcomes), (GenerationStatus::Completed, vec![refused]));
    assert_eq!(effects.all().len(), 0);
}
