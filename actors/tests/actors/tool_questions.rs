//! Questions of tools that can be declined, that end, and that have a memo of their tool.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::FutureExt as _;
use greenroom_actors::RuntimeLimits;
use greenroom_actors::agent::generation::GenerationRequest;
use greenroom_actors::agent::tool::{
    ToolBody, ToolContext, ToolDefinition, ToolFunction, WithdrawalFunction,
};
use greenroom_actors::agent::{Approval, OnCrash, ToolAsk};
use greenroom_actors::domain::definition::{Body, Mapping, StepDefinition, StepKind, SuspendRule};
use greenroom_actors::domain::message::ToolOutcome;
use greenroom_actors::ports::store::{AskKind, AskState, GenerationStatus, Status};
use greenroom_actors::requests::AskError;
use greenroom_actors::testkit::{World, pass, registry_of, start, target};
use greenroom_actors::visibility::Visibility;
use serde_json::{Value, json};

use crate::approvals::{
    answer, ask, calls, decision, function, generate, open_asks, recorded, request, spec, text,
    world,
};
use crate::workflows::{step, workflow};

const MEMO: &str = "k3pt";

/// A tool that asks twice, and returns its answers with the memos that it found.
fn booking(deadline: Option<Duration>) -> ToolDefinition {
    function("book", move |_, context| {
        let ask = |question: &str, memo: Value| {
            let schema = json!({ "type": "object", "required": ["n"],
                                 "properties": { "n": { "type": "integer" } } });
            let ask = ToolAsk::new(question).schema(schema).declinable().memo(memo);
            ToolAsk { deadline, ..ask }
        };
        let memo = context.memo.as_deref().cloned();
        let first = context.ask(ask("How many?", json!([MEMO, 1])))?;
        let second = context.ask(ask("Sure?", json!([MEMO, 2])))?;
        Ok(json!([first, second, memo]))
    })
}

#[actix::test]
async fn a_tool_finds_the_memo_of_its_newest_question_and_declined_answers() {
    tokio::time::pause();
    let script = [calls(&[("c1", "book", json!({}))]), text("done")];
    let (world, _) = world(script, vec![booking(None)]).await;
    let waiting = generate(&world).await;
    let open = ask(&world, &waiting.asks[0].ask_id).await;
    for data in [
        json!({ "n": "x" }),
        json!({ "action": "accept" }),
        json!({ "action": "decline", "n": 1.5 }),
    ] {
        let wrong = world.runtime.answer_ask(open.clone(), decision(data)).await;
        assert!(matches!(wrong, Err(AskError::InvalidData(_))), "{wrong:?}");
    }
    let shown = world.runtime.describe_ask(open.clone()).await.unwrap();
    assert!(shown.can_decline && !format!("{shown:?}").contains(MEMO), "{shown:?}");
    let entry = world.runtime.generation("desk", &waiting.id, &Visibility::Everything).await;
    assert!(!format!("{:?}", entry.unwrap()).contains(MEMO));
    answer(&world, json!({ "n": 1 })).await;
    pass(Duration::from_millis(100)).await;
    assert_eq!(&*open_asks(&world).await[0].reason, "Sure?");
    answer(&world, json!({ "action": "decline" })).await;
    let (status, _, outcomes) = recorded(&world, &waiting.id).await;
    assert_eq!(status, GenerationStatus::Completed);
    let expected = json!([
        { "action": "accept", "content": { "n": 1 } }, { "action": "decline" }, [MEMO, 2]
    ]);
    assert_eq!(outcomes, [ToolOutcome::Output(expected)]);
}

#[actix::test]
async fn a_question_that_is_not_answered_in_time_ends_its_call() {
    tokio::time::pause();
    let script = [calls(&[("c1", "book", json!({}))]), text("done")];
    let (world, _) = world(script, vec![booking(Some(Duration::from_secs(60)))]).await;
    let waiting = generate(&world).await;
    pass(Duration::from_secs(50)).await;
    assert_eq!(recorded(&world, &waiting.id).await.0, GenerationStatus::Suspended);
    pass(Duration::from_secs(20)).await;
    let (status, _, outcomes) = recorded(&world, &waiting.id).await;
    let late = ToolOutcome::Denied("refused: it was not answered in time".to_owned());
    assert_eq!((status, outcomes), (GenerationStatus::Completed, vec![late]));
    assert_eq!(ask(&world, &waiting.asks[0].ask_id).await.state, AskState::Expired);
}

/// A tool that notes something and then hangs, once; says why it was dropped.
fn noting(interruptions: Arc<Mutex<Vec<bool>>>) -> ToolDefinition {
    let body: ToolFunction = Arc::new(move |_, context: ToolContext| {
        let dropped = Dropped { context, interruptions: Arc::clone(&interruptions) };
        async move {
            match dropped.context.memo.as_deref() {
                Some(memo) => Ok(memo.clone()),
                None => {
                    let long = json!("x".repeat(128 * 1024));
                    assert!(!dropped.context.note(long).await);
                    assert!(dropped.context.note(json!("here")).await);
                    std::future::pending().await
                }
            }
        }
        .boxed()
    });
    ToolDefinition::new(spec("book"), ToolBody::Function(body)).unwrap()
}

/// The context of a call, which says at its end whether that is an interruption.
struct Dropped {
    context: ToolContext,
    interruptions: Arc<Mutex<Vec<bool>>>,
}

impl Drop for Dropped {
    fn drop(&mut self) {
        self.interruptions.lock().unwrap().push(self.context.is_interrupted());
    }
}

#[actix::test]
async fn a_call_that_has_noted_where_it_continues_is_made_again_with_that() {
    tokio::time::pause();
    let tool = ToolDefinition { on_crash: OnCrash::Tell, ..noting(Arc::default()) };
    let script = [calls(&[("c1", "book", json!({}))]), text("done")];
    let (world, _) = world(script, vec![tool]).await;
    let running =
        world.runtime.generate(GenerationRequest { chosen_id: Some("g".into()), ..request() });
    assert!(tokio::time::timeout(Duration::from_secs(1), running).await.is_err());
    let world = world.restart().await;
    let (status, _, outcomes) = recorded(&world, "g").await;
    assert_eq!(status, GenerationStatus::Completed);
    assert_eq!(outcomes, [ToolOutcome::Output(json!("here"))]);
    assert!(!ToolContext::for_test().note(json!(1)).await, "nothing takes it");
}

#[actix::test]
async fn a_question_after_an_approval_is_another_ask() {
    tokio::time::pause();
    let script = [calls(&[("c1", "book", json!({}))]), text("done")];
    let booking = ToolDefinition {
        approval: Some(Arc::new(Approval::always())),
        ..booking(Some(Duration::from_secs(60)))
    };
    let (world, _) = world(script, vec![booking]).await;
    let waiting = generate(&world).await;
    let approval = waiting.asks[0].ask_id.clone();
    answer(&world, json!({ "approved": true })).await;
    let mut seen = vec![approval];
    for n in [1, 2] {
        pass(Duration::from_millis(100)).await;
        let open = open_asks(&world).await;
        assert_eq!(open.len(), 1, "{open:?}");
        assert_eq!(open[0].kind, AskKind::Input);
        assert!(!seen.contains(&open[0].id), "{seen:?}");
        seen.push(Arc::clone(&open[0].id));
        answer(&world, json!({ "n": n })).await;
    }
    assert_eq!(recorded(&world, &waiting.id).await.0, GenerationStatus::Completed);
    let first = ask(&world, &seen[0]).await;
    assert_eq!((first.kind, first.state), (AskKind::Approval, AskState::Answered));
}

/// Returns a world with a step that calls the tool.
async fn stepping(tool: ToolDefinition) -> World {
    with_step(tool, step("book", StepKind::Then { body: book(None) })).await
}

fn book(args: Option<Value>) -> Body {
    Body::Tool { tool: "book".to_owned(), args: args.map(Mapping) }
}

async fn with_step(tool: ToolDefinition, step: StepDefinition) -> World {
    let mut registry = registry_of([workflow("w", vec![step])]);
    registry.tools.insert("book".to_owned(), Arc::new(tool));
    World::launch(registry, RuntimeLimits::default()).await
}

#[actix::test]
async fn a_step_suspends_for_each_question_and_continues_after_restarts() {
    tokio::time::pause();
    let mut world = stepping(booking(None)).await;
    let begun = world.runtime.execute(start("w", "e", json!({}))).await.unwrap();
    drop(begun);
    for (reason, data) in
        [("How many?", json!({ "n": 1 })), ("Sure?", json!({ "action": "decline" }))]
    {
        pass(Duration::from_millis(100)).await;
        let asks = open_asks(&world).await;
        assert_eq!((&*asks[0].reason, asks[0].kind), (reason, AskKind::Function));
        let shown = world.runtime.describe_ask(asks[0].clone()).await.unwrap();
        assert!(shown.can_decline && shown.schema.is_some(), "{shown:?}");
        assert!(!format!("{shown:?}").contains(MEMO), "{shown:?}");
        let state = world.runtime.describe(&target("w", "e")).await.unwrap();
        assert!(!format!("{state:?}").contains(MEMO), "{state:?}");
        world = world.restart().await;
        let wrong = world.runtime.answer_ask(asks[0].clone(), decision(json!({}))).await;
        assert_eq!(wrong.unwrap_err(), AskError::InvalidData("n: missing".to_owned()));
        answer(&world, data).await;
    }
    pass(Duration::from_millis(100)).await;
    let state = world.runtime.describe(&target("w", "e")).await.unwrap();
    let expected = json!([
        { "action": "accept", "content": { "n": 1 } }, { "action": "decline" }, [MEMO, 2]
    ]);
    assert_eq!(state.status, Status::Completed);
    assert_eq!(state.result.as_deref(), Some(&expected));
}

#[actix::test]
async fn a_step_fails_once_the_deadline_of_a_question_has_passed() {
    tokio::time::pause();
    let world = stepping(booking(Some(Duration::from_secs(60)))).await;
    let begun = world.runtime.execute(start("w", "e", json!({}))).await.unwrap();
    drop(begun);
    pass(Duration::from_secs(50)).await;
    assert_eq!(open_asks(&world).await.len(), 1);
    pass(Duration::from_secs(20)).await;
    let state = world.runtime.describe(&target("w", "e")).await.unwrap();
    assert_eq!(state.status, Status::Error);
    assert_eq!(open_asks(&world).await.len(), 0);
}

#[actix::test]
async fn a_step_whose_tool_has_noted_where_it_continues_calls_it_with_that() {
    tokio::time::pause();
    for is_stopped in [false, true] {
        let interruptions = Arc::default();
        let world = stepping(noting(Arc::clone(&interruptions))).await;
        drop(world.runtime.begin(start("w", "e", json!({}))).await.unwrap());
        pass(Duration::from_millis(100)).await;
        if is_stopped {
            world.runtime.drain(Duration::ZERO).await;
            assert_eq!(*interruptions.lock().unwrap(), [true]);
        }
        let world = world.restart().await;
        pass(Duration::from_millis(100)).await;
        let state = world.runtime.describe(&target("w", "e")).await.unwrap();
        assert_eq!(
            (state.status, state.result.as_deref()),
            (Status::Completed, Some(&json!("here")))
        );
    }
}

#[actix::test]
async fn a_call_that_is_given_up_is_not_interrupted() {
    tokio::time::pause();
    let interruptions = Arc::default();
    let world = stepping(noting(Arc::clone(&interruptions))).await;
    drop(world.runtime.begin(start("w", "e", json!({}))).await.unwrap());
    pass(Duration::from_millis(100)).await;
    world.runtime.cancel(&target("w", "e"), None, None).await.unwrap();
    pass(Duration::from_millis(100)).await;
    assert_eq!(*interruptions.lock().unwrap(), [false]);
}

#[actix::test]
async fn a_tool_is_called_again_with_the_arguments_of_its_first_call() {
    tokio::time::pause();
    let made = Arc::new(Mutex::new(Vec::new()));
    let calls = Arc::clone(&made);
    let tool = function("book", move |arguments, context| {
        calls.lock().unwrap().push(arguments);
        let schema = json!({ "type": "object", "properties": { "n": { "type": "integer" } } });
        context.ask(ToolAsk::new("How many?").schema(schema).declinable())
    });
    let asking = StepDefinition {
        suspend: Some(SuspendRule::default()),
        ..step(
            "book",
            StepKind::Then { body: book(Some(json!({ "by": "resume.ok ~ resumed_by.id" }))) },
        )
    };
    let world = with_step(tool, asking).await;
    drop(world.runtime.execute(start("w", "e", json!({}))).await.unwrap());
    for data in [json!({ "ok": true }), json!({ "n": 2 })] {
        pass(Duration::from_millis(100)).await;
        answer(&world, data).await;
    }
    pass(Duration::from_millis(100)).await;
    let state = world.runtime.describe(&target("w", "e")).await.unwrap();
    assert_eq!(
        (state.status, state.result.as_deref()),
        (Status::Completed, Some(&json!({ "action": "accept", "content": { "n": 2 } })),)
    );
    let first = json!({ "by": "Truelea" });
    assert_eq!(*made.lock().unwrap(), [first.clone(), first]);
}

#[actix::test]
async fn a_question_of_a_step_shows_the_arguments_and_its_answer_as_it_was_given() {
    tokio::time::pause();
    let args = json!({ "day": "'monday'" });
    let step = step("book", StepKind::Then { body: book(Some(args)) });
    let world = with_step(booking(None), step).await;
    drop(world.runtime.execute(start("w", "e", json!({}))).await.unwrap());
    let open = open_asks(&world).await.remove(0);
    let shown = world.runtime.describe_ask(open.clone()).await.unwrap();
    assert_eq!(shown.payload.as_deref(), Some(&json!({ "day": "monday" })));
    answer(&world, json!({ "n": 1 })).await;
    let shown = world.runtime.describe_ask(ask(&world, &open.id).await).await.unwrap();
    assert_eq!(*shown.answer.unwrap().data, json!({ "n": 1 }));
}

/// The tool, which keeps the memos of its withdrawn questions.
fn withdrawable(memos: &Arc<Mutex<Vec<Value>>>) -> ToolDefinition {
    let memos = Arc::clone(memos);
    let on_withdrawal: WithdrawalFunction = Arc::new(move |memo| {
        memos.lock().unwrap().push((*memo).clone());
        std::future::ready(()).boxed()
    });
    ToolDefinition { on_withdrawal: Some(on_withdrawal), ..booking(None) }
}

#[actix::test]
async fn a_tool_is_notified_of_its_questions_that_are_withdrawn() {
    tokio::time::pause();
    let memos = Arc::<Mutex<Vec<Value>>>::default();
    let withdrawn = || std::mem::take(&mut *memos.lock().unwrap());
    let moment = Duration::from_millis(100);

    // of a step, also one that is in memory again
    let mut world = stepping(withdrawable(&memos)).await;
    drop(world.runtime.execute(start("w", "e", json!({}))).await.unwrap());
    answer(&world, json!({ "n": 1 })).await;
    pass(moment).await;
    world = world.restart().await;
    assert_eq!(withdrawn(), [Value::Null; 0]);
    world.runtime.cancel(&target("w", "e"), None, None).await.unwrap();
    pass(moment).await;
    assert_eq!(withdrawn(), [json!([MEMO, 2])]);

    // of a generation, and of that of a step
    let script = || [calls(&[("c1", "book", json!({}))]), text("done")];
    let (world, _) = crate::approvals::world(script(), vec![withdrawable(&memos)]).await;
    let waiting = generate(&world).await;
    let everything = Visibility::Everything;
    world.runtime.cancel_generation("desk", &waiting.id, &everything).await.unwrap();
    pass(moment).await;
    assert_eq!(withdrawn(), [json!([MEMO, 1])]);
    let (world, _) = crate::approvals::world(script(), vec![withdrawable(&memos)]).await;
    drop(world.runtime.execute(start("w", "e", json!({}))).await.unwrap());
    world.runtime.cancel(&target("w", "e"), None, None).await.unwrap();
    pass(moment).await;
    assert_eq!(withdrawn(), [json!([MEMO, 1])]);

    // an answer is no withdrawal
    let (world, _) = crate::approvals::world(script(), vec![withdrawable(&memos)]).await;
    generate(&world).await;
    answer(&world, json!({ "n": 1 })).await;
    answer(&world, json!({ "n": 2 })).await;
    pass(moment).await;
    assert_eq!(withdrawn(), [Value::Null; 0]);
}
