//! Streams of generations in paused time, without a connection.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use actix::Recipient;
use futures_util::StreamExt;
use greenroom_actors::ports::model::{FinishReason, Usage};

use super::*;
use crate::web::settings::WebConfig;
use crate::web::shutdown::Shutdown;
use crate::web::subscriber_queue::{Delivery, QueueReceiver};

/// Actor of a stream, with the test at both ends.
struct World {
    events: Recipient<GenerationProgress>,
    body: QueueReceiver<Bytes>,
    was_disconnected: Arc<AtomicBool>,
    is_held: Arc<AtomicBool>,
    shutdown: Shutdown,
    settings: Arc<Settings>,
    address: Addr<GenerationStreamActor>,
}

/// Clears its flag when it is dropped.
struct Held(Arc<AtomicBool>);

impl Drop for Held {
    fn drop(&mut self) {
        self.0.store(false, Ordering::SeqCst);
    }
}

impl World {
    fn new(stream: GenerationStream, config: WebConfig) -> Self {
        let world = Self::unanswered(stream, config);
        world.answer();
        world
    }

    /// Returns a stream whose answer has not begun.
    fn unanswered(stream: GenerationStream, config: WebConfig) -> Self {
        let shutdown = Shutdown::new();
        let settings = Arc::new(Settings::of(config, shutdown.clone()));
        let queue = settings.subscriber_queue();
        let was_disconnected = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&was_disconnected);
        let disconnect: Disconnect = Arc::new(move || flag.store(true, Ordering::SeqCst));
        let client = Watch::never();
        let actor = GenerationStreamActor::new(
            stream,
            Arc::clone(&settings),
            queue.clone(),
            disconnect,
            client,
        );
        let address = actor.launch();
        let is_held = Arc::new(AtomicBool::new(true));
        let left = address.downgrade();
        let body = queue.receiver(move || {
            if let Some(actor) = left.upgrade() {
                actor.try_send(ClientLeft).unwrap();
            }
        });
        let events = address.clone().recipient();
        Self { events, body, was_disconnected, is_held, shutdown, settings, address }
    }

    fn answer(&self) {
        self.address.try_send(Hold(Box::new(Held(Arc::clone(&self.is_held))))).unwrap();
    }

    fn raw(config: WebConfig) -> Self {
        Self::new(GenerationStream::raw(), config)
    }

    fn emit(&self, events: Vec<GenerationEvent>) {
        self.events.try_send(GenerationProgress(Arc::from(events))).unwrap();
    }

    /// Reads what has arrived by now.
    async fn read(&mut self) -> String {
        let mut text = String::new();
        let patience = Duration::from_millis(1);
        while let Ok(Some(out)) = tokio::time::timeout(patience, self.body.next()).await {
            match out {
                Delivery::Item(bytes) => text.push_str(std::str::from_utf8(&bytes).unwrap()),
                Delivery::Missed(count) => panic!("{count} events are missing"),
            }
        }
        text
    }

    /// Reads up to the end of the stream.
    async fn read_to_end(&mut self) -> String {
        let mut text = String::new();
        while let Some(Delivery::Item(bytes)) = self.body.next().await {
            text.push_str(std::str::from_utf8(&bytes).unwrap());
        }
        text
    }

    fn was_disconnected(&self) -> bool {
        self.was_disconnected.load(Ordering::SeqCst)
    }

    fn is_held(&self) -> bool {
        self.is_held.load(Ordering::SeqCst)
    }
}

fn delta(text: &str) -> GenerationEvent {
    GenerationEvent::TextDelta { id: Arc::from("t1"), delta: text.to_owned() }
}

fn finish() -> GenerationEvent {
    let (finish_reason, usage) = (FinishReason::Stop, Usage::default());
    GenerationEvent::Finish { finish_reason, usage, stand_in: None }
}

fn kinds(text: &str) -> Vec<String> {
    let data = text.lines().filter_map(|line| line.strip_prefix("data: "));
    data.map(|data| {
        let data: serde_json::Value = serde_json::from_str(data).unwrap();
        data["type"].as_str().unwrap().to_owned()
    })
    .collect()
}

#[actix_web::test]
async fn events_are_sent_at_once_and_the_last_one_ends_the_stream() {
    tokio::time::pause();
    let mut world = World::raw(WebConfig::default());
    world.emit(vec![delta("a")]);
    assert_eq!(kinds(&world.read().await), ["text-delta"]);
    world.emit(vec![delta("b"), finish()]);
    assert_eq!(kinds(&world.read_to_end().await), ["text-delta", "finish"]);
    assert!(!world.is_held() && !world.was_disconnected());
}

#[actix_web::test]
async fn only_event_streams_of_a_silent_generation_have_keep_alives() {
    tokio::time::pause();
    let config = || WebConfig { heartbeat: Duration::from_secs(15), ..WebConfig::default() };
    let mut world = World::raw(config());
    tokio::time::sleep(Duration::from_secs(16)).await;
    assert_eq!(world.read().await, ": keep-alive\n\n");
    let mut text = World::new(GenerationStream::object_text(), config());
    tokio::time::sleep(Duration::from_secs(16)).await;
    assert_eq!(text.read().await, "");
}

#[actix_web::test]
async fn a_disconnect_releases_the_generation() {
    tokio::time::pause();
    let world = World::raw(WebConfig::default());
    world.emit(vec![delta("a")]);
    let World { body, is_held, events, .. } = world;
    drop(body);
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert!(!is_held.load(Ordering::SeqCst) && !events.connected());
}

#[actix_web::test]
async fn a_subscriber_that_falls_too_far_behind_is_disconnected() {
    tokio::time::pause();
    let config = || WebConfig { subscriber_queue: 3, ..WebConfig::default() };
    let rows: [(Vec<Vec<GenerationEvent>>, bool); 3] = [
        ((0..3).map(|_| vec![delta("a")]).collect(), false),
        ((0..4).map(|_| vec![delta("a")]).collect(), true),
        // One batch always fits into an empty queue.
        (vec![(0..10).map(|_| delta("a")).collect()], false),
    ];
    for (batches, is_disconnected) in rows {
        let world = World::raw(config());
        let count = batches.len();
        batches.into_iter().for_each(|batch| world.emit(batch));
        tokio::time::sleep(Duration::from_millis(1)).await;
        assert_eq!(
            (world.was_disconnected(), world.is_held()),
            (is_disconnected, !is_disconnected),
            "{count} batches"
        );
    }
}

#[actix_web::test]
async fn queued_bytes_are_limited_too() {
    tokio::time::pause();
    let config = WebConfig { subscriber_queue_bytes: 100_000, ..WebConfig::default() };
    let world = World::raw(config);
    world.emit(vec![delta(&"x".repeat(40_000)), delta(&"y".repeat(40_000))]);
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert!(world.was_disconnected() && !world.is_held());
}

#[actix_web::test]
async fn a_backlog_of_other_clients_ends_no_generation() {
    tokio::time::pause();
    let mut world = World::raw(WebConfig::default());
    let _others = world.settings.backlog.hold(2 * world.settings.config.subscribers_bytes_max);
    let large = "x".repeat(3 * PIECE_BYTES);
    world.emit(vec![delta(&large)]);
    world.emit(vec![delta("a"), delta(&large)]);
    let room = world.events.send(GenerationProgress(Arc::from([])));
    let mut room = Box::pin(room);
    let patience = Duration::from_millis(1);
    assert!(tokio::time::timeout(patience, &mut room).await.is_err(), "the run waits");
    assert_eq!(kinds(&world.read().await).len(), 3);
    room.await.unwrap();
    world.emit(vec![delta(&large), delta("b"), finish()]);
    assert_eq!(kinds(&world.read_to_end().await).len(), 3);
    assert!(!world.was_disconnected());
}

#[actix_web::test]
async fn with_a_full_backlog_only_a_stalled_subscriber_is_disconnected() {
    tokio::time::pause();
    let stall = WebConfig::default().subscriber_stall;
    let mut world = World::raw(WebConfig::default());
    let _others = world.settings.backlog.hold(2 * world.settings.config.subscribers_bytes_max);
    world.emit((0..3).map(|_| delta(&"x".repeat(PIECE_BYTES))).collect());
    tokio::time::sleep(stall.mul_f64(0.9)).await;
    assert!(world.body.next().await.is_some());
    tokio::time::sleep(stall.mul_f64(0.95)).await;
    assert!(!world.was_disconnected(), "it has taken something");
    tokio::time::sleep(stall.mul_f64(0.1)).await;
    assert!(world.was_disconnected());
}

#[actix_web::test]
async fn after_the_end_a_subscriber_may_finish_reading() {
    tokio::time::pause();
    let stall = WebConfig::default().subscriber_stall;
    let mut world = World::raw(WebConfig::default());
    world.emit((0..4).map(|_| delta(&"x".repeat(PIECE_BYTES))).collect());
    world.emit(vec![finish()]);
    for _ in 0..4 {
        tokio::time::sleep(stall - Duration::from_millis(1)).await;
        assert!(world.body.next().await.is_some());
    }
    assert!(!world.was_disconnected());
    tokio::time::sleep(stall * 2).await;
    assert!(world.was_disconnected());
}

#[actix_web::test]
async fn a_generation_that_is_lost_ends_its_stream_with_an_error() {
    tokio::time::pause();
    let world = World::raw(WebConfig::default());
    let World { events, mut body, address, .. } = world;
    drop((events, address));
    let Some(Delivery::Item(bytes)) = body.next().await else { panic!("no event") };
    let text = String::from_utf8(bytes.to_vec()).unwrap();
    let event = "{\"type\":\"error\",\"error\":\"the generation was lost\",\"code\":\"internal\"}";
    assert_eq!(text, format!("id: 1\ndata: {event}\n\n"));
    assert!(body.next().await.is_none());
}

#[actix_web::test]
async fn a_shutdown_is_reported_in_the_stream() {
    tokio::time::pause();
    let mut world = World::raw(WebConfig::default());
    world.emit(vec![delta("a")]);
    world.read().await;
    world.shutdown.fire();
    let text = world.read_to_end().await;
    assert!(text.contains("the server is shutting down"), "{text}");
}

#[actix_web::test]
async fn failed_text_is_disconnected_not_ended() {
    tokio::time::pause();
    let mut world = World::new(GenerationStream::object_text(), WebConfig::default());
    world.emit(vec![delta("{\"a\":1")]);
    assert_eq!(world.read().await, "{\"a\":1");
    world.emit(vec![GenerationEvent::Error { message: "no".to_owned(), kind: FailureKind::Agent }]);
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert!(world.was_disconnected() && !world.is_held());
}

#[actix_web::test]
async fn a_failure_before_the_answer_leaves_the_connection_to_the_refusal() {
    for is_answered in [false, true] {
        tokio::time::pause();
        let world = World::unanswered(GenerationStream::object_text(), WebConfig::default());
        world.emit(vec![GenerationEvent::Error {
            message: "no".to_owned(),
            kind: FailureKind::Agent,
        }]);
        tokio::time::sleep(Duration::from_millis(1)).await;
        assert!(!world.was_disconnected(), "the answer has not begun");
        if is_answered {
            world.answer();
        } else {
            world.address.try_send(ClientLeft).unwrap();
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
        assert_eq!((world.was_disconnected(), world.events.connected()), (is_answered, false));
        tokio::time::resume();
    }
}
