//! Runs that are read live.

use std::time::Duration;

use crate::ports::model::scripted::{ScriptedAnswer, ScriptedModel, ScriptedPiece};
use crate::ports::model::{FinishReason, ModelError, ModelErrorKind, ModelEvent, Usage};
use crate::ports::store::{ConversationKey, StepOrigin};

use super::*;

fn say(delta: &str) -> ScriptedPiece {
    ScriptedPiece::Say(ModelEvent::TextDelta(delta.to_owned()))
}

fn finished() -> ScriptedPiece {
    let usage = Usage { total_tokens: 2, ..Usage::default() };
    ScriptedPiece::Say(ModelEvent::Finished {
        usage,
        finish_reason: FinishReason::Stop,
        served: None,
    })
}

fn pause() -> ScriptedPiece {
    ScriptedPiece::Pause(Duration::from_secs(1))
}

/// `a` and `b` with a second between.
fn slowly() -> ScriptedAnswer {
    ScriptedAnswer::Pieces(vec![say("a"), pause(), say("b"), pause(), finished()])
}

fn failure() -> ModelError {
    ModelError::new(ModelErrorKind::Unavailable, "gone")
}

/// The agent's chats go on without a reader.
fn resumable(agent: &mut AgentDefinition) {
    agent.is_resumable = true;
    agent.memory = true;
}

fn chat() -> GenerationRequest {
    GenerationRequest { is_chat: true, conversation_id: Some("talk".to_owned()), ..request(None) }
}

fn key() -> ConversationKey {
    ConversationKey {
        agent_id: Arc::from("writer"),
        user_id: Some(Arc::from("anna")),
        conversation_id: Arc::from("talk"),
    }
}

/// Every event by its kind, in one line.
fn kinds(events: &[GenerationEvent]) -> String {
    let kind = |event: &GenerationEvent| {
        let shown = format!("{event:?}");
        shown.split([' ', '(', '{']).next().unwrap_or_default().to_owned()
    };
    events.iter().map(kind).collect::<Vec<_>>().join(" ")
}

#[actix::test]
async fn a_reader_hears_everything_in_order() {
    tokio::time::pause();
    let schema = json!({ "type": "object" });
    let answered = "TextStart TextDelta TextEnd StepFinish";
    let rows = [
        ("a text", vec![text("hi")], None, format!("Start StepStart {answered} Finish")),
        (
            "a tool",
            vec![calls([call("c1", "add", 0)]), text("hi")],
            None,
            format!(
                "Start StepStart ToolInputStart ToolInputDelta ToolInputEnd ToolCall ToolResult \
                 StepFinish StepStart {answered} Finish"
            ),
        ),
        (
            "an object after a repair",
            vec![text("no"), text("{}")],
            Some(schema),
            format!("Start StepStart {answered} ObjectRejected StepStart {answered} Object Finish"),
        ),
        (
            "a failure in the middle",
            vec![ScriptedAnswer::Pieces(vec![say("a"), ScriptedPiece::Fail(failure())])],
            None,
            "Start StepStart TextStart TextDelta TextEnd Error".to_owned(),
        ),
        (
            "a panic in the middle",
            vec![ScriptedAnswer::Pieces(vec![say("a"), ScriptedPiece::Panic])],
            None,
            "Start StepStart TextStart TextDelta TextEnd Error".to_owned(),
        ),
        (
            "an answer that breaks off",
            vec![ScriptedAnswer::Pieces(vec![say("a")])],
            None,
            "Start StepStart TextStart TextDelta TextEnd Error".to_owned(),
        ),
    ];
    for (name, script, schema, expected) in rows {
        let world = World::with(ScriptedModel::local(script), History::default(), with_tools);
        let reader = Reader::default();
        let (subscriber, _actor) = reader.subscribe();
        let mut handle = world.spawn_for(request(schema), Some(subscriber));
        assert_eq!(handle.begun().await, Ok(()), "{name}");
        let _ = handle.outcome().await;
        settle().await;
        assert_eq!(kinds(&reader.heard()), expected, "{name}");
    }
}

#[actix::test]
async fn words_come_as_they_are_said() {
    tokio::time::pause();
    let world = World::local([slowly()]);
    let reader = Reader::default();
    let (subscriber, _actor) = reader.subscribe();
    let mut handle = world.spawn_for(request(None), Some(subscriber));
    handle.begun().await.unwrap();
    settle().await;
    assert_eq!(reader.said(), "a");
    tokio::time::sleep(Duration::from_millis(1100)).await;
    assert_eq!(reader.said(), "ab");
    assert_eq!(handle.outcome().await.unwrap().text, "ab");
}

#[actix::test]
async fn a_failure_before_the_first_word_is_the_callers() {
    tokio::time::pause();
    let world = World::local([ScriptedAnswer::Error(failure())]);
    let reader = Reader::default();
    let (subscriber, _actor) = reader.subscribe();
    let mut handle = world.spawn_for(request(None), Some(subscriber));
    assert_eq!(handle.begun().await, Err(failure().into()));
    assert_eq!(handle.begun().await, Err(failure().into()), "as often as it is asked");
    assert_eq!(handle.outcome().await, Err(failure().into()));
    assert_eq!(world.history.last().status, GenerationStatus::Error);
    settle().await;
    assert_eq!(reader.heard(), [], "it is told once");
}

#[actix::test]
async fn who_came_later_hears_of_a_failure_before_the_first_word() {
    tokio::time::pause();
    let script = [ScriptedAnswer::Pieces(vec![pause(), ScriptedPiece::Fail(failure())])];
    let world = World::with(ScriptedModel::local(script), History::default(), resumable);
    let (first, late) = (Reader::default(), Reader::default());
    let (subscriber, _first) = first.subscribe();
    let mut handle = world.spawn_for(chat(), Some(subscriber));
    settle().await;
    let (subscriber, _late) = late.subscribe();
    let running = world.deps.live.chat(&key()).unwrap();
    let id = running.send(super::super::actor::SubscribeToGeneration(subscriber)).await.unwrap();
    assert_eq!(id.as_deref(), Some("g1"));
    assert_eq!(handle.begun().await, Err(failure().into()));
    settle().await;
    assert_eq!((first.heard(), kinds(&late.heard())), (vec![], "Start Error".to_owned()));
}

/// A reader is told at once that the run has begun.
fn at_once(request: GenerationRequest) -> GenerationRequest {
    GenerationRequest { begins: Begins::OnceRecorded, ..request }
}

#[actix::test]
async fn one_that_has_begun_once_recorded_tells_its_reader_how_it_ends() {
    tokio::time::pause();
    let rows = [
        ("a failure", ScriptedAnswer::Error(failure()), "Start Error"),
        ("an answer", text("hi"), "Start StepStart TextStart TextDelta TextEnd StepFinish Finish"),
    ];
    for (name, answer, expected) in rows {
        let history = History::gated();
        let world = World::new(ScriptedModel::local([answer]), history);
        let reader = Reader::default();
        let (subscriber, _actor) = reader.subscribe();
        let mut handle = world.spawn_for(at_once(request(None)), Some(subscriber));
        settle().await;
        assert_eq!(reader.heard(), [], "{name}: nothing is recorded yet");
        world.history.commit();
        assert_eq!(handle.begun().await, Ok(()), "{name}");
        settle().await;
        assert!(kinds(&reader.heard()).starts_with("Start"), "{name}");
        world.history.commit();
        let _ = handle.outcome().await;
        settle().await;
        assert_eq!(kinds(&reader.heard()), expected, "{name}");
    }
}

#[actix::test]
async fn a_cancel_before_the_first_word_is_told_to_the_reader() {
    tokio::time::pause();
    // before the history has it, and while the model thinks
    for is_recorded in [false, true] {
        let history = History::gated();
        let world = World::new(ScriptedModel::local([ScriptedAnswer::Hang]), history);
        let reader = Reader::default();
        let (subscriber, _actor) = reader.subscribe();
        let mut handle = world.spawn_for(at_once(request(None)), Some(subscriber));
        settle().await;
        if is_recorded {
            world.history.commit();
            settle().await;
        }
        handle.cancel();
        settle().await;
        world.history.commit();
        assert_eq!(handle.begun().await, Ok(()), "recorded: {is_recorded}");
        assert_eq!(handle.outcome().await, Err(GenerateError::Cancelled));
        settle().await;
        assert_eq!(kinds(&reader.heard()), "Start Abort", "recorded: {is_recorded}");
        assert_eq!(world.history.last().status, GenerationStatus::Cancelled);
    }
}

#[actix::test]
async fn a_mistake_of_the_caller_is_told_to_the_caller() {
    tokio::time::pause();
    let world = World::local([text("hi")]);
    let reader = Reader::default();
    let (subscriber, _actor) = reader.subscribe();
    let wrong = request(Some(json!({ "type": "car" })));
    let mut handle = world.spawn_for(at_once(wrong), Some(subscriber));
    let begun = handle.begun().await;
    assert!(matches!(begun, Err(GenerateError::InvalidSchema(_))), "{begun:?}");
    settle().await;
    assert_eq!(reader.heard(), []);
}

#[actix::test]
async fn words_wait_for_the_record() {
    tokio::time::pause();
    let script = [calls([call("c1", "add", 0)]), text("hi")];
    let world = World::with(ScriptedModel::local(script), History::gated(), with_tools);
    let reader = Reader::default();
    let (subscriber, _actor) = reader.subscribe();
    let handle = world.spawn_for(request(None), Some(subscriber));
    // the last kind of event that is heard before each commit
    for last in ["", "ToolCall", "ToolCall", "TextEnd"] {
        settle().await;
        let heard = kinds(&reader.heard());
        let closed = heard.trim_end_matches(" StepFinish");
        let expected = if last == "TextEnd" { "TextDelta" } else { last };
        assert!(closed.ends_with(expected), "{last}: {heard}");
        world.history.commit();
    }
    handle.outcome().await.unwrap();
    settle().await;
    assert!(kinds(&reader.heard()).ends_with("TextEnd StepFinish Finish"));
}

#[actix::test]
async fn a_reader_hears_of_a_cancel() {
    tokio::time::pause();
    let world = World::local([slowly()]);
    let reader = Reader::default();
    let (subscriber, _actor) = reader.subscribe();
    let mut handle = world.spawn_for(request(None), Some(subscriber));
    handle.begun().await.unwrap();
    handle.cancel();
    assert_eq!(handle.outcome().await, Err(GenerateError::Cancelled));
    settle().await;
    assert!(kinds(&reader.heard()).ends_with("TextDelta TextEnd Abort"));
    assert_eq!(world.model.abandoned(), 1);
    assert_eq!(world.history.steps(), ["0:a"], "what was said is in the history");
}

#[actix::test]
async fn a_run_without_its_reader_goes_on_where_it_has_another_purpose() {
    tokio::time::pause();
    let step = StepOrigin {
        execution_id: crate::domain::ids::ExecutionId::trusted("e1"),
        path: Arc::from("ask"),
    };
    let of_step = GenerationRequest { origin: Some(step), ..request(None) };
    let rows = [
        ("a stream", request(None), false),
        ("a chat", chat(), true),
        (
            "a chat without a conversation",
            GenerationRequest { is_chat: true, ..request(None) },
            false,
        ),
        ("a step of a workflow", of_step, true),
    ];
    for (name, request, goes_on) in rows {
        let world = World::with(ScriptedModel::local([slowly()]), History::default(), resumable);
        let reader = Reader::default();
        let (subscriber, actor) = reader.subscribe();
        let mut handle = world.spawn_for(request, Some(subscriber));
        handle.begun().await.unwrap();
        actor.send(Leave).await.unwrap();
        let outcome = handle.outcome().await;
        assert_eq!(outcome.is_ok(), goes_on, "{name}: {outcome:?}");
        assert_eq!(reader.cuts(), 1, "{name}");
        let status = world.history.last().status;
        assert_eq!(status == GenerationStatus::Completed, goes_on, "{name}: {status:?}");
    }
}

#[actix::test]
async fn a_chat_is_found_by_its_conversation_and_told_again() {
    tokio::time::pause();
    let world = World::with(ScriptedModel::local([slowly()]), History::default(), resumable);
    let first = Reader::default();
    let (subscriber, _first) = first.subscribe();
    let mut handle = world.spawn_for(chat(), Some(subscriber));
    handle.detach();
    handle.begun().await.unwrap();
    drop(handle);

    let second = Reader::default();
    let (subscriber, _second) = second.subscribe();
    let running = world.deps.live.chat(&key()).unwrap();
    let id = running.send(super::super::actor::SubscribeToGeneration(subscriber)).await.unwrap();
    assert_eq!(id.as_deref(), Some("g1"));
    settle().await;
    assert_eq!(second.said(), "a");
    assert_eq!(kinds(&second.heard()), "Start StepStart TextStart TextDelta");

    world.active.idle().await;
    settle().await;
    assert_eq!(second.said(), "ab");
    assert_eq!(kinds(&first.heard()), kinds(&second.heard()));
    assert!(world.deps.live.chat(&key()).is_none(), "nothing runs any more");
    assert_eq!(world.history.last().status, GenerationStatus::Completed);
}

#[actix::test]
async fn only_chats_of_resumable_agents_are_found() {
    tokio::time::pause();
    type Change = fn(&mut AgentDefinition);
    let rows: [(&str, Change, GenerationRequest); 2] = [
        ("another agent", |_| {}, chat()),
        ("no chat", resumable, GenerationRequest { is_chat: false, ..chat() }),
    ];
    for (name, change, request) in rows {
        let world = World::with(ScriptedModel::local([slowly()]), History::default(), change);
        let handle = world.spawn(request);
        settle().await;
        assert!(world.deps.live.chat(&key()).is_none(), "{name}");
        assert!(world.deps.live.find("writer", "g1", &Visibility::Everything).is_some(), "{name}");
        assert!(
            world.deps.live.find("lost", "g1", &Visibility::Everything).is_none(),
            "{name}: of another agent"
        );
        drop(handle);
    }
}

#[actix::test]
async fn a_model_that_always_has_more_lets_others_work() {
    tokio::time::pause();
    let script = [ScriptedAnswer::Pieces(vec![say(""); 100_000])];
    let model = ScriptedModel::local(script);
    let world = World::new(model, History::default());
    let mut deps = world.deps.clone();
    deps.bytes_max = usize::MAX;
    let world = World { deps, ..world };
    let reader = Reader::default();
    let (subscriber, _actor) = reader.subscribe();
    let mut handle = world.spawn_for(request(None), Some(subscriber));
    handle.begun().await.unwrap();
    handle.cancel();
    assert_eq!(handle.outcome().await, Err(GenerateError::Cancelled));
}

/// A reader that has room when it is allowed to.
struct Hesitant {
    heard: Arc<AtomicUsize>,
    room: Arc<tokio::sync::Semaphore>,
}

impl actix::Actor for Hesitant {
    type Context = actix::Context<Self>;
}

impl actix::Handler<GenerationProgress> for Hesitant {
    type Result = actix::ResponseFuture<()>;

    fn handle(
        &mut self,
        GenerationProgress(events): GenerationProgress,
        _: &mut Self::Context,
    ) -> Self::Result {
        self.heard.fetch_add(events.len(), Ordering::SeqCst);
        let room = Arc::clone(&self.room);
        Box::pin(async move {
            if events.is_empty() {
                room.acquire().await.unwrap().forget();
            }
        })
    }
}

#[actix::test]
async fn a_run_waits_for_a_reader_that_is_behind() {
    tokio::time::pause();
    let pieces = std::iter::repeat_n(say("x"), 1500).chain([finished()]).collect();
    let world = World::local([ScriptedAnswer::Pieces(pieces)]);
    let (heard, room) = (Arc::<AtomicUsize>::default(), Arc::new(tokio::sync::Semaphore::new(0)));
    let actor = Hesitant { heard: Arc::clone(&heard), room: Arc::clone(&room) }.start();
    let subscriber = GenerationSubscriber {
        events: actor.recipient(),
        cut: Arc::new(|| panic!("it only takes its time")),
    };
    let handle = world.spawn_for(request(None), Some(subscriber));
    let mut outcome = Box::pin(handle.outcome());

    settle().await;
    assert!((&mut outcome).now_or_never().is_none(), "nobody waits");
    assert!(heard.load(Ordering::SeqCst) < 1000, "it was told more than it has room for");
    room.add_permits(100);
    assert_eq!(outcome.await.unwrap().text.len(), 1500);
    settle().await;
    assert!(heard.load(Ordering::SeqCst) > 1500, "something is missing");
}
