//! Runs with live subscribers.

use std::time::Duration;

use crate::ports::model::scripted::{ScriptedAnswer, ScriptedModel, ScriptedPiece};
use crate::ports::model::{FinishReason, ModelError, ModelErrorKind, ModelEvent, Usage};
use crate::ports::store::StepOrigin;

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

/// Streams `a` and `b`, a second apart.
fn slowly() -> ScriptedAnswer {
    ScriptedAnswer::Pieces(vec![say("a"), pause(), say("b"), pause(), finished()])
}

fn failure() -> ModelError {
    ModelError::new(ModelErrorKind::Unavailable, "gone")
}

/// Makes the agent's chats resumable.
fn resumable(agent: &mut AgentDefinition) {
    agent.is_resumable = true;
    agent.memory = true;
}

fn chat() -> GenerationRequest {
    GenerationRequest { is_chat: true, conversation_id: Some("talk".to_owned()), ..request(None) }
}

/// Returns the kinds of events in one line.
fn kinds(events: &[GenerationEvent]) -> String {
    let kind = |event: &GenerationEvent| {
        let shown = format!("{event:?}");
        shown.split([' ', '(', '{']).next().unwrap_or_default().to_owned()
    };
    events.iter().map(kind).collect::<Vec<_>>().join(" ")
}

#[actix::test]
async fn a_subscriber_receives_all_events_in_order() {
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
        let (mut handle, recorder, _actor) = world.spawn_recorded(request(schema));
        assert_eq!(handle.begun().await, Ok(()), "{name}");
        let _ = handle.outcome().await;
        settle().await;
        assert_eq!(kinds(&recorder.received()), expected, "{name}");
    }
}

#[actix::test]
async fn text_is_streamed_as_it_arrives() {
    tokio::time::pause();
    let world = World::local([slowly()]);
    let (mut handle, recorder, _actor) = world.spawn_recorded(request(None));
    handle.begun().await.unwrap();
    settle().await;
    assert_eq!(recorder.text(), "a");
    tokio::time::sleep(Duration::from_millis(1100)).await;
    assert_eq!(recorder.text(), "ab");
    assert_eq!(handle.outcome().await.unwrap().text, "ab");
}

#[actix::test]
async fn a_failure_before_the_first_output_goes_to_the_caller() {
    tokio::time::pause();
    let world = World::local([ScriptedAnswer::Error(failure())]);
    let (mut handle, recorder, _actor) = world.spawn_recorded(request(None));
    assert_eq!(handle.begun().await, Err(failure().into()));
    assert_eq!(handle.begun().await, Err(failure().into()), "on every call");
    assert_eq!(handle.outcome().await, Err(failure().into()));
    assert_eq!(world.history.last().status, GenerationStatus::Error);
    settle().await;
    assert_eq!(recorder.received(), [], "the caller has the error already");
}

#[actix::test]
async fn a_failure_at_the_start_goes_to_the_subscriber_if_no_caller_waits() {
    tokio::time::pause();
    let world = World::local([ScriptedAnswer::Error(failure())]);
    let (mut handle, recorder, _actor) = world.spawn_recorded(request(None));
    handle.leave_errors_to_subscribers();
    settle().await;
    assert_eq!(kinds(&recorder.received()), "Start Error");
}

#[actix::test]
async fn a_late_subscriber_receives_a_failure_before_the_first_output() {
    tokio::time::pause();
    let script = [ScriptedAnswer::Pieces(vec![pause(), ScriptedPiece::Fail(failure())])];
    let world = World::with(ScriptedModel::local(script), History::default(), resumable);
    let (first, late) = (Recorder::default(), Recorder::default());
    let (subscriber, _first) = first.subscribe();
    let mut handle = world.spawn_for(chat(), Some(subscriber));
    settle().await;
    let (subscriber, _late) = late.subscribe();
    let running = world.deps.live.chat(&key()).unwrap();
    let id = running.send(super::super::actor::SubscribeToGeneration(subscriber)).await.unwrap();
    assert_eq!(id.as_deref(), Some("g1"));
    assert_eq!(handle.begun().await, Err(failure().into()));
    settle().await;
    assert_eq!((first.received(), kinds(&late.received())), (vec![], "Start Error".to_owned()));
}

/// Makes the run begin once recorded.
fn at_once(request: GenerationRequest) -> GenerationRequest {
    GenerationRequest { begins: Begins::OnceRecorded, ..request }
}

#[actix::test]
async fn a_run_begun_once_recorded_sends_its_end_to_the_subscriber() {
    tokio::time::pause();
    let rows = [
        ("a failure", ScriptedAnswer::Error(failure()), "Start Error"),
        ("an answer", text("hi"), "Start StepStart TextStart TextDelta TextEnd StepFinish Finish"),
    ];
    for (name, answer, expected) in rows {
        let history = History::gated();
        let world = World::new(ScriptedModel::local([answer]), history);
        let (mut handle, recorder, _actor) = world.spawn_recorded(at_once(request(None)));
        settle().await;
        assert_eq!(recorder.received(), [], "{name}: nothing is recorded yet");
        world.history.commit();
        assert_eq!(handle.begun().await, Ok(()), "{name}");
        settle().await;
        assert!(kinds(&recorder.received()).starts_with("Start"), "{name}");
        world.history.commit();
        let _ = handle.outcome().await;
        settle().await;
        assert_eq!(kinds(&recorder.received()), expected, "{name}");
    }
}

#[actix::test]
async fn a_cancel_before_the_first_output_is_sent_to_the_subscriber() {
    tokio::time::pause();
    // before it is recorded, and while the model is thinking
    for is_recorded in [false, true] {
        let history = History::gated();
        let world = World::new(ScriptedModel::local([ScriptedAnswer::Hang]), history);
        let (mut handle, recorder, _actor) = world.spawn_recorded(at_once(request(None)));
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
        assert_eq!(kinds(&recorder.received()), "Start Abort", "recorded: {is_recorded}");
        assert_eq!(world.history.last().status, GenerationStatus::Cancelled);
    }
}

#[actix::test]
async fn an_invalid_schema_is_returned_to_the_caller() {
    tokio::time::pause();
    let world = World::local([text("hi")]);
    let recorder = Recorder::default();
    let (subscriber, _actor) = recorder.subscribe();
    let wrong = request(Some(json!({ "type": "car" })));
    let mut handle = world.spawn_for(at_once(wrong), Some(subscriber));
    let begun = handle.begun().await;
    assert!(matches!(begun, Err(GenerateError::InvalidSchema(_))), "{begun:?}");
    settle().await;
    assert_eq!(recorder.received(), []);
}

#[actix::test]
async fn results_are_sent_once_recorded() {
    tokio::time::pause();
    let script = [calls([call("c1", "add", 0)]), text("hi")];
    let world = World::with(ScriptedModel::local(script), History::gated(), with_tools);
    let (handle, recorder, _actor) = world.spawn_recorded(request(None));
    // last kind of event received before each commit
    for last in ["", "ToolCall", "ToolCall", "TextEnd"] {
        settle().await;
        let received = kinds(&recorder.received());
        let closed = received.trim_end_matches(" StepFinish");
        let expected = if last == "TextEnd" { "TextDelta" } else { last };
        assert!(closed.ends_with(expected), "{last}: {received}");
        world.history.commit();
    }
    handle.outcome().await.unwrap();
    settle().await;
    assert!(kinds(&recorder.received()).ends_with("TextEnd StepFinish Finish"));
}

#[actix::test]
async fn a_cancel_is_sent_to_the_subscriber() {
    tokio::time::pause();
    let world = World::local([slowly()]);
    let (mut handle, recorder, _actor) = world.spawn_recorded(request(None));
    handle.begun().await.unwrap();
    handle.cancel();
    assert_eq!(handle.outcome().await, Err(GenerateError::Cancelled));
    settle().await;
    assert!(kinds(&recorder.received()).ends_with("TextDelta TextEnd Abort"));
    assert_eq!(world.model.abandoned(), 1);
    assert_eq!(world.history.steps(), ["0:a"], "partial text is in the history");
}

#[actix::test]
async fn a_run_without_subscribers_continues_only_if_resumable_or_of_a_step() {
    tokio::time::pause();
    let step = StepOrigin {
        execution_id: crate::domain::ids::ExecutionId::trusted("e1"),
        path: Arc::from("ask"),
    };
    let of_step = GenerationRequest { origin: Some(step), ..request(None) };
    let asking = |is_resumable| GenerationRequest { is_resumable: Some(is_resumable), ..chat() };
    type Change = fn(&mut AgentDefinition);
    let by_agent: [(&str, Change, GenerationRequest, bool); 2] = [
        ("a chat that asks for it", |_| {}, asking(true), true),
        ("a chat that does not want it", resumable, asking(false), false),
    ];
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
    let rows =
        rows.map(|(name, request, continues)| (name, resumable as Change, request, continues));
    for (name, change, request, continues) in rows.into_iter().chain(by_agent) {
        let world = World::with(ScriptedModel::local([slowly()]), History::default(), change);
        let recorder = Recorder::default();
        let (subscriber, actor) = recorder.subscribe();
        let mut handle = world.spawn_for(request, Some(subscriber));
        handle.begun().await.unwrap();
        actor.send(Leave).await.unwrap();
        let outcome = handle.outcome().await;
        assert_eq!(outcome.is_ok(), continues, "{name}: {outcome:?}");
        assert_eq!(recorder.cuts(), 1, "{name}");
        let status = world.history.last().status;
        assert_eq!(status == GenerationStatus::Completed, continues, "{name}: {status:?}");
    }
}

#[actix::test]
async fn a_chat_is_found_by_its_conversation_and_replayed() {
    tokio::time::pause();
    let world = World::with(ScriptedModel::local([slowly()]), History::default(), resumable);
    let first = Recorder::default();
    let (subscriber, _first) = first.subscribe();
    let mut handle = world.spawn_for(chat(), Some(subscriber));
    handle.detach();
    handle.begun().await.unwrap();
    drop(handle);

    let second = Recorder::default();
    let (subscriber, _second) = second.subscribe();
    let running = world.deps.live.chat(&key()).unwrap();
    let id = running.send(super::super::actor::SubscribeToGeneration(subscriber)).await.unwrap();
    assert_eq!(id.as_deref(), Some("g1"));
    settle().await;
    assert_eq!(second.text(), "a");
    assert_eq!(kinds(&second.received()), "Start StepStart TextStart TextDelta");

    world.active.idle().await;
    settle().await;
    assert_eq!(second.text(), "ab");
    assert_eq!(kinds(&first.received()), kinds(&second.received()));
    assert!(world.deps.live.chat(&key()).is_none(), "nothing is running");
    assert_eq!(world.history.last().status, GenerationStatus::Completed);
}

#[actix::test]
async fn only_chats_of_resumable_agents_are_registered() {
    tokio::time::pause();
    type Change = fn(&mut AgentDefinition);
    let rows: [(&str, Change, GenerationRequest); 3] = [
        ("another agent", |_| {}, chat()),
        ("no chat", resumable, GenerationRequest { is_chat: false, ..chat() }),
        ("not wanted", resumable, GenerationRequest { is_resumable: Some(false), ..chat() }),
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
async fn a_model_that_is_always_ready_does_not_starve_other_tasks() {
    tokio::time::pause();
    let script = [ScriptedAnswer::Pieces(vec![say(""); 100_000])];
    let model = ScriptedModel::local(script);
    let world = World::new(model, History::default());
    let mut deps = world.deps.clone();
    deps.bytes_max = usize::MAX;
    let world = World { deps, ..world };
    let (mut handle, _recorder, _actor) = world.spawn_recorded(request(None));
    handle.begun().await.unwrap();
    handle.cancel();
    assert_eq!(handle.outcome().await, Err(GenerateError::Cancelled));
}

/// A subscriber that has room when the test allows it.
struct SlowSubscriber {
    received: Arc<AtomicUsize>,
    room: Arc<tokio::sync::Semaphore>,
}

impl actix::Actor for SlowSubscriber {
    type Context = actix::Context<Self>;
}

impl actix::Handler<GenerationProgress> for SlowSubscriber {
    type Result = actix::ResponseFuture<()>;

    fn handle(
        &mut self,
        GenerationProgress(events): GenerationProgress,
        _: &mut Self::Context,
    ) -> Self::Result {
        self.received.fetch_add(events.len(), Ordering::SeqCst);
        let room = Arc::clone(&self.room);
        Box::pin(async move {
            if events.is_empty() {
                room.acquire().await.unwrap().forget();
            }
        })
    }
}

#[actix::test]
async fn a_run_waits_for_a_slow_subscriber() {
    tokio::time::pause();
    let pieces = std::iter::repeat_n(say("x"), 1500).chain([finished()]).collect();
    let world = World::local([ScriptedAnswer::Pieces(pieces)]);
    let (received, room) =
        (Arc::<AtomicUsize>::default(), Arc::new(tokio::sync::Semaphore::new(0)));
    let actor = SlowSubscriber { received: Arc::clone(&received), room: Arc::clone(&room) }.start();
    let subscriber = GenerationSubscriber {
        events: actor.recipient(),
        disconnect: Arc::new(|| panic!("it is slow, not gone")),
    };
    let handle = world.spawn_for(request(None), Some(subscriber));
    let mut outcome = Box::pin(handle.outcome());

    settle().await;
    assert!((&mut outcome).now_or_never().is_none(), "the run waits");
    assert!(received.load(Ordering::SeqCst) < 1000, "more was sent than it has room for");
    room.add_permits(100);
    assert_eq!(outcome.await.unwrap().text.len(), 1500);
    settle().await;
    assert!(received.load(Ordering::SeqCst) > 1500, "something is missing");
}
