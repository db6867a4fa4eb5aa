//! Generations through the runtime: streamed, attached to, cancelled, interrupted.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use actix::{Actor, Addr, Context, Handler};
use greenroom_actors::RuntimeLimits;
use greenroom_actors::agent::generation::{
    GenerateError, GenerationEvent, GenerationProgress, GenerationRequest, GenerationSubscriber,
};
use greenroom_actors::agent::{AgentDefinition, PendingAsk};
use greenroom_actors::domain::definition::StepKind;
use greenroom_actors::domain::message::{Message, Role, ToolOutcome};
use greenroom_actors::ports::model::scripted::{ScriptedAnswer, ScriptedModel, ScriptedPiece};
use greenroom_actors::ports::model::{FinishReason, ModelEvent, Usage};
use greenroom_actors::ports::store::{GenerationStatus, Status};
use greenroom_actors::registry::Registry;
use greenroom_actors::requests::Unavailable;
use greenroom_actors::runtime::CancelGenerationError;
use greenroom_actors::testkit::{World, pass, registry_of, start, target};
use greenroom_actors::visibility::Visibility;
use serde_json::json;

use crate::workflows::{add_agent, spawn, step, workflow};

/// Collects the events of a generation.
#[derive(Default, Clone)]
pub(crate) struct Collector(Arc<Mutex<Vec<GenerationEvent>>>);

impl Actor for Collector {
    type Context = Context<Self>;
}

impl Handler<GenerationProgress> for Collector {
    type Result = ();

    fn handle(&mut self, progress: GenerationProgress, _: &mut Context<Self>) {
        self.take(&progress);
    }
}

impl Collector {
    pub(crate) fn subscribe(&self) -> (GenerationSubscriber, Addr<Self>) {
        let address = self.clone().start();
        let events = address.clone().recipient();
        (GenerationSubscriber { events, disconnect: Arc::new(|| {}) }, address)
    }

    /// Notes events.
    pub(crate) fn take(&self, GenerationProgress(events): &GenerationProgress) {
        self.0.lock().unwrap().extend(events.iter().cloned());
    }

    pub(crate) fn text(&self) -> String {
        let events = self.0.lock().unwrap();
        let deltas = events.iter().filter_map(|event| match event {
            GenerationEvent::TextDelta { delta, .. } => Some(delta.as_str()),
            _ => None,
        });
        deltas.collect()
    }

    /// Returns what the run asks.
    pub(crate) fn asks(&self) -> Vec<PendingAsk> {
        self.each(|event| match event {
            GenerationEvent::Ask(ask) => Some(PendingAsk::clone(ask)),
            _ => None,
        })
    }

    /// Returns the outcomes of calls.
    pub(crate) fn results(&self) -> Vec<ToolOutcome> {
        self.each(|event| match event {
            GenerationEvent::ToolResult(result) => Some(result.outcome.clone()),
            _ => None,
        })
    }

    pub(crate) fn message_id(&self) -> Option<String> {
        let ids = self.each(|event| match event {
            GenerationEvent::Start { message_id, .. } => Some(message_id.to_string()),
            _ => None,
        });
        ids.into_iter().next()
    }

    fn each<T>(&self, wanted: impl Fn(&GenerationEvent) -> Option<T>) -> Vec<T> {
        self.0.lock().unwrap().iter().filter_map(wanted).collect()
    }

    pub(crate) fn last(&self) -> Option<GenerationEvent> {
        self.0.lock().unwrap().last().cloned()
    }
}

pub(crate) fn piece(delta: &str) -> ScriptedPiece {
    ScriptedPiece::Say(ModelEvent::TextDelta(delta.to_owned()))
}

/// Answers `a`, and ten seconds later `b`.
pub(crate) fn slowly() -> ScriptedAnswer {
    let finish_reason = FinishReason::Stop;
    let finished = ModelEvent::Finished { usage: Usage::default(), finish_reason, served: None };
    let pause = ScriptedPiece::Pause(Duration::from_secs(10));
    ScriptedAnswer::Pieces(vec![piece("a"), pause, piece("b"), finished.into()])
}

pub(crate) fn registry(model: ScriptedModel) -> Registry {
    let agent = AgentDefinition { memory: true, is_resumable: true, ..AgentDefinition::default() };
    let kind = StepKind::Agent {
        agent: "writer".to_owned(),
        prompt: Some("write".to_owned()),
        schema: None,
        options: None,
    };
    let mut registry = registry_of([workflow("w", vec![step("ask", kind)])]);
    add_agent(&mut registry, "writer", model, agent);
    registry
}

async fn world(script: impl IntoIterator<Item = ScriptedAnswer>) -> World {
    let registry = registry(ScriptedModel::remote(script));
    World::launch(registry, RuntimeLimits::default()).await
}

pub(crate) fn request(is_chat: bool) -> GenerationRequest {
    GenerationRequest {
        agent_id: "writer".to_owned(),
        messages: vec![Message::text(Role::User, "hello")],
        conversation_id: Some("talk".to_owned()),
        is_chat,
        ..GenerationRequest::default()
    }
}

/// Returns status and error of the newest generation in the agent's history.
async fn newest(world: &World) -> (GenerationStatus, Option<String>) {
    let page = world.runtime.history("writer", &Visibility::Everything, 0, 1).await.unwrap();
    let record = page.entries[0].record.clone();
    (record.status, record.error)
}

#[actix::test]
async fn a_chat_continues_without_its_client_and_can_be_attached_to() {
    tokio::time::pause();
    let world = world([slowly()]).await;
    let (first, second) = (Collector::default(), Collector::default());
    let (subscriber, _first) = first.subscribe();
    let chat = world.runtime.stream_generation(request(true), subscriber).await.unwrap();
    let id = Arc::clone(&chat.id);
    drop(chat);

    let (subscriber, _second) = second.subscribe();
    let hidden = world.runtime.attach_to_chat("writer", Some("anna"), "talk", subscriber.clone());
    assert_eq!(hidden.await, None, "the chat of another user");
    let found = world.runtime.attach_to_chat("writer", None, "talk", subscriber.clone()).await;
    assert_eq!(found, Some(id));
    pass(Duration::from_secs(11)).await;
    assert_eq!(second.text(), "ab");
    assert!(second.last().unwrap().is_last());
    assert_eq!(newest(&world).await, (GenerationStatus::Completed, None));
    assert_eq!(world.runtime.attach_to_chat("writer", None, "talk", subscriber).await, None);
}

#[actix::test]
async fn a_stream_is_cancelled_when_its_handle_is_dropped() {
    tokio::time::pause();
    let world = world([slowly()]).await;
    let collector = Collector::default();
    let (subscriber, _collector) = collector.subscribe();
    let stream = world.runtime.stream_generation(request(false), subscriber).await.unwrap();
    drop(stream);
    pass(Duration::from_secs(1)).await;
    assert_eq!(collector.last(), Some(GenerationEvent::Abort));
    assert_eq!(newest(&world).await, (GenerationStatus::Cancelled, None));
    assert!(!world.runtime.activity().await.is_agent_working("writer"));
}

#[actix::test]
async fn a_generation_is_cancelled_by_its_id() {
    tokio::time::pause();
    let world = world([slowly()]).await;
    let (subscriber, _collector) = Collector::default().subscribe();
    let stream = world.runtime.stream_generation(request(true), subscriber).await.unwrap();
    let cancel = |agent: &'static str, id: Arc<str>| {
        let runtime = world.runtime.clone();
        async move { runtime.cancel_generation(agent, &id, &Visibility::Everything).await }
    };
    let not_found = |id: &str| Err(CancelGenerationError::NotFound(id.to_owned()));

    assert_eq!(cancel("writer", Arc::from("nothing")).await, not_found("nothing"));
    assert_eq!(cancel("editor", Arc::clone(&stream.id)).await, not_found(&stream.id));
    assert_eq!(cancel("writer", Arc::clone(&stream.id)).await, Ok(()));
    assert_eq!(newest(&world).await, (GenerationStatus::Cancelled, None));
    let status = GenerationStatus::Cancelled;
    let ended = Err(CancelGenerationError::Ended { id: stream.id.to_string(), status });
    assert_eq!(cancel("writer", Arc::clone(&stream.id)).await, ended);
}

#[actix::test]
async fn those_who_cancel_generations_do_not_wait_for_the_end_of_an_outage() {
    tokio::time::pause();
    let world = world([slowly(), slowly()]).await;
    let of = |user: &str| GenerationRequest { user_id: Some(user.to_owned()), ..request(true) };
    let (anna, _anna) = Collector::default().subscribe();
    let (ben, _ben) = Collector::default().subscribe();
    let _of_anna = world.runtime.stream_generation(of("anna"), anna).await.unwrap();
    let of_ben = world.runtime.stream_generation(of("ben"), ben).await.unwrap();
    world.store.begin_outage();
    let everything = Visibility::Everything;
    let cancelled = world.runtime.cancel_generation("writer", &of_ben.id, &everything);
    let (cancelled, forgotten) = tokio::join!(cancelled, world.runtime.forget_user("anna"));
    let Err(CancelGenerationError::Unavailable(Unavailable::Store { .. })) = cancelled else {
        panic!("{cancelled:?}");
    };
    let Err(Unavailable::Store { .. }) = forgotten else { panic!("{forgotten:?}") };

    world.store.end_outage();
    assert_eq!(world.runtime.forget_user("anna").await, Ok(1));
    let page = world.runtime.history("writer", &everything, 0, 10).await.unwrap();
    let left: Vec<_> = page.entries.iter().map(|it| (&*it.record.id, it.record.status)).collect();
    assert_eq!(left, [(&*of_ben.id, GenerationStatus::Cancelled)], "cancelled all the same");
}

#[actix::test]
async fn callers_of_generations_learn_of_an_outage_when_they_wait_for_a_record() {
    tokio::time::pause();
    let limits =
        RuntimeLimits { store_patience: Duration::from_secs(3), ..RuntimeLimits::default() };
    let registry = registry(ScriptedModel::remote([slowly(), slowly()]));
    let world = World::launch(registry, limits).await;
    let begun = tokio::time::Instant::now();
    let outage = async {
        pass(Duration::from_secs(1)).await;
        world.store.begin_outage();
    };
    let (answer, ()) = tokio::join!(world.runtime.generate(request(false)), outage);
    let failed = answer.unwrap_err();
    let GenerateError::Unavailable(Unavailable::Store { .. }) = &failed.error else {
        panic!("{failed:?}");
    };
    // the model is not disturbed, though the outage has outlasted the patience before its end
    let waited = begun.elapsed();
    assert!(waited > Duration::from_secs(13) && waited < Duration::from_secs(14), "{waited:?}");
    let refused = world.runtime.generate(request(false)).await.unwrap_err();
    assert_eq!(refused.id, None, "nothing of it is recorded");

    world.store.end_outage();
    pass(Duration::from_secs(1)).await;
    let page = world.runtime.history("writer", &Visibility::Everything, 0, 10).await.unwrap();
    let [entry] = page.entries.as_slice() else { panic!("{:?}", page.entries) };
    assert_eq!(Some(&*entry.record.id), failed.id.as_deref());
    assert_eq!(entry.record.status, GenerationStatus::Completed);
}

#[actix::test]
async fn forgetting_a_user_cancels_its_generations() {
    tokio::time::pause();
    let world = world([slowly(), slowly()]).await;
    let of = |user: &str| GenerationRequest { user_id: Some(user.to_owned()), ..request(true) };
    let (anna, _anna) = Collector::default().subscribe();
    let (ben, _ben) = Collector::default().subscribe();
    let _of_anna = world.runtime.stream_generation(of("anna"), anna).await.unwrap();
    let of_ben = world.runtime.stream_generation(of("ben"), ben).await.unwrap();

    assert_eq!(world.runtime.forget_user("anna").await, Ok(1), "the conversation so far");
    let page = world.runtime.history("writer", &Visibility::Everything, 0, 10).await.unwrap();
    let left: Vec<_> = page.entries.iter().map(|entry| entry.record.id.as_str()).collect();
    assert_eq!(left, [&*of_ben.id], "the other user's continues");
    assert_eq!(page.entries[0].record.status, GenerationStatus::Working);
}

#[actix::test]
async fn a_drain_interrupts_generations_that_exceed_its_grace_period() {
    tokio::time::pause();
    let rows = [
        (5, GenerationStatus::Error, Some("interrupted by a restart".to_owned())),
        (60, GenerationStatus::Completed, None),
    ];
    for (grace, status, error) in rows {
        let world = world([slowly(), slowly()]).await;
        let collector = Collector::default();
        let (subscriber, _collector) = collector.subscribe();
        let stream = world.runtime.stream_generation(request(true), subscriber).await.unwrap();
        let runtime = world.runtime.clone();
        let generating = actix::spawn(async move { runtime.generate(request(false)).await });
        pass(Duration::from_secs(1)).await;

        world.runtime.drain(Duration::from_secs(grace)).await;
        pass(Duration::from_millis(1)).await;
        assert_eq!(newest(&world).await, (status, error));
        let outcome = generating.await.unwrap();
        let error = outcome.as_ref().map_err(|failed| &failed.error);
        let is_draining =
            matches!(error, Err(GenerateError::Unavailable(Unavailable::Draining { .. })));
        assert_eq!(is_draining, status == GenerationStatus::Error, "{outcome:?}");
        let is_error = matches!(collector.last(), Some(GenerationEvent::Error { .. }));
        assert_eq!(is_error, is_draining);
        drop(stream);
    }
}

#[actix::test]
async fn an_agent_step_runs_again_after_a_drain_or_a_kill() {
    tokio::time::pause();
    for is_drained in [true, false] {
        let world = world([slowly(), slowly()]).await;
        spawn(&world, start("w", "e", json!({})));
        pass(Duration::from_secs(1)).await;
        if is_drained {
            world.runtime.drain(Duration::from_secs(1)).await;
        }
        assert_eq!(newest(&world).await, (GenerationStatus::Working, None));
        let world = world.restart().await;
        pass(Duration::from_secs(12)).await;
        let state = world.runtime.describe(&target("w", "e")).await.unwrap();
        assert_eq!(state.status, Status::Completed, "drained: {is_drained}");
        assert_eq!(state.steps[0].attempts, 2);
        assert_eq!(newest(&world).await, (GenerationStatus::Completed, None));
        let page = world.runtime.history("writer", &Visibility::Everything, 0, 10).await.unwrap();
        let id = &page.entries[0].record.id;
        assert_eq!(state.steps[0].generation_id.as_ref(), Some(id), "of both attempts");
    }
}

#[actix::test]
async fn a_killed_generation_is_recorded_as_interrupted_after_the_restart() {
    tokio::time::pause();
    let world = world([slowly()]).await;
    let (subscriber, _collector) = Collector::default().subscribe();
    let stream = world.runtime.stream_generation(request(false), subscriber).await.unwrap();
    let world = world.restart().await;
    drop(stream);
    pass(Duration::from_secs(1)).await;
    let interrupted = Some("interrupted by a restart".to_owned());
    assert_eq!(newest(&world).await, (GenerationStatus::Error, interrupted));
}
