//! Streams of events in paused time, without a connection.

mod lost;

use std::cell::RefCell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::LocalBoxFuture;
use greenroom_actors::agent::generation::{GenerationEvent, GenerationProgress};
use greenroom_actors::domain::fact::{Fact, Recorded};
use greenroom_actors::domain::time::Timestamp;
use greenroom_actors::requests::{ProgressBatch, StepProgress};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::*;
use crate::web::settings::WebConfig;
use crate::web::shutdown::Shutdown;
use crate::web::subscriber_queue::{Delivery, QueueReceiver};

/// Journal that a test can add to.
#[derive(Default)]
struct Facts {
    facts: RefCell<Vec<Recorded>>,
    /// Requested bytes of each read.
    requested: RefCell<Vec<usize>>,
    /// Times of the attempts to subscribe.
    attempts: RefCell<Vec<Instant>>,
    /// Answer to the next attempts.
    refusal: RefCell<Option<DescribeError>>,
    /// Subscriber that the actor has registered again.
    subscriber: RefCell<Option<Subscriber>>,
}

impl EventSource for Rc<Facts> {
    fn portion(
        &self,
        _: ExecutionId,
        from: FactCursor,
        bytes: usize,
    ) -> LocalBoxFuture<'static, Result<Portion, Unavailable>> {
        self.requested.borrow_mut().push(bytes);
        let facts = self.facts.borrow();
        let wanted = facts.iter().filter(|fact| fact.seq > from.above);
        let facts: Vec<_> = wanted.take(PORTION).cloned().collect();
        let next = FactCursor::above(last_seq_of(&facts).unwrap_or(from.above));
        Box::pin(async move {
            tokio::task::yield_now().await;
            Ok(Portion { facts, next })
        })
    }

    fn subscribe(
        &self,
        _: ExecutionId,
        subscriber: Subscriber,
    ) -> LocalBoxFuture<'static, Result<Subscription, DescribeError>> {
        let journal = Self::clone(self);
        Box::pin(async move {
            tokio::task::yield_now().await;
            journal.attempts.borrow_mut().push(Instant::now());
            if let Some(refusal) = journal.refusal.borrow().clone() {
                return Err(refusal);
            }
            let facts = journal.facts.borrow();
            let (durable_seq, ended) = (last_seq_of(&facts).unwrap_or(0), is_end(&facts));
            *journal.subscriber.borrow_mut() = (!ended).then_some(subscriber);
            Ok(Subscription { durable_seq, ended })
        })
    }
}

/// Journal and one stream of it.
struct World {
    journal: Rc<Facts>,
    address: Addr<EventStreamActor>,
    body: QueueReceiver<Bytes>,
    was_disconnected: Arc<AtomicBool>,
    shutdown: Shutdown,
    settings: Arc<Settings>,
}

/// Facts per portion; few, so that short tests have several portions.
const PORTION: usize = 3;

impl World {
    fn new(begin: Begin, config: WebConfig) -> Self {
        let journal = Rc::new(Facts::default());
        let shutdown = Shutdown::new();
        let settings = Arc::new(Settings::of(config, shutdown.clone()));
        let queue = settings.subscriber_queue();
        let body = queue.receiver(|| ());
        let was_disconnected = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&was_disconnected);
        let disconnect: Disconnect = Arc::new(move || flag.store(true, Ordering::SeqCst));
        let shared = Rc::new(Rc::clone(&journal));
        let connection = Connection { queue, disconnect, send_buffer: SendBuffer::unlimited() };
        let address =
            EventStreamActor::new(shared, Arc::clone(&settings), connection, begin).launch();
        Self { journal, address, body, was_disconnected, shutdown, settings }
    }

    /// Records facts and sends them to the subscriber, as the execution's actor does.
    async fn publish(&self, facts: Vec<Recorded>) {
        self.journal.facts.borrow_mut().extend(facts.iter().cloned());
        self.send(facts).await;
    }

    async fn send(&self, facts: Vec<Recorded>) {
        // Fails if the actor has stopped, which some tests expect.
        let _ = self.address.send(batch(facts)).await;
    }

    fn read_from(&self, after: u64, durable_seq: u64, ended: bool) {
        let execution = ExecutionId::trusted("x");
        let subscription = Subscription { durable_seq, ended };
        self.address.try_send(ReadFrom { execution, after, subscription }).unwrap();
    }

    /// Fills the backlog, as other clients that read nothing.
    fn others(&self) -> Held {
        self.settings.backlog.hold(2 * self.settings.config.subscribers_bytes_max)
    }

    fn was_disconnected(&self) -> bool {
        self.was_disconnected.load(Ordering::SeqCst)
    }

    async fn seen(&mut self) -> (Vec<u64>, Vec<String>, bool) {
        seen(&mut self.body).await
    }
}

fn batch(facts: Vec<Recorded>) -> EventsRecorded {
    let (execution_id, rendered) = (ExecutionId::trusted("x"), OnceLock::new());
    EventsRecorded(Arc::new(EventBatch { execution_id, facts: facts.into(), rendered }))
}

/// Progress of a step's agent, one delta per word.
fn progress(words: &[&str]) -> StepProgressed {
    let progress = words.iter().map(|word| {
        let (id, delta) = (Arc::from("t"), (*word).to_owned());
        StepProgress::Agent(GenerationProgress(Arc::from([GenerationEvent::TextDelta {
            id,
            delta,
        }])))
    });
    StepProgressed(Arc::new(ProgressBatch {
        execution_id: ExecutionId::trusted("x"),
        path: "s".into(),
        at: Timestamp(0),
        progress: progress.collect(),
        rendered: OnceLock::new(),
    }))
}

/// Reads the numbers of events, and the words of progress, until the stream ends or pauses.
async fn arrived(body: &mut QueueReceiver<Bytes>) -> Vec<String> {
    let mut arrived = Vec::new();
    while let Ok(Some(Delivery::Item(bytes))) =
        tokio::time::timeout(Duration::from_millis(50), body.next()).await
    {
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        for frame in text.split_terminator("\n\n") {
            let (head, data) = frame.split_once("data: ").unwrap();
            let data: Value = serde_json::from_str(data).unwrap();
            arrived.push(match head.strip_prefix("id: ") {
                Some(number) => number.trim().to_owned(),
                None => data["event"]["delta"].as_str().unwrap().to_owned(),
            });
        }
    }
    arrived
}

/// Reads the numbers of events, and comments, until the stream ends or pauses.
async fn seen(body: &mut QueueReceiver<Bytes>) -> (Vec<u64>, Vec<String>, bool) {
    let (mut numbers, mut comments) = (Vec::new(), Vec::new());
    loop {
        match tokio::time::timeout(Duration::from_millis(50), body.next()).await {
            Ok(Some(Delivery::Item(bytes))) => {
                for line in String::from_utf8(bytes.to_vec()).unwrap().lines() {
                    if let Some(number) = line.strip_prefix("id: ") {
                        numbers.push(number.parse().unwrap());
                    } else if line.starts_with(':') {
                        comments.push(line.to_owned());
                    }
                }
            }
            Ok(Some(Delivery::Missed(count))) => comments.push(format!("missed {count}")),
            Ok(None) => return (numbers, comments, true),
            Err(_) => return (numbers, comments, false),
        }
    }
}

fn step(seq: u64) -> Recorded {
    large(seq, 1)
}

/// Step whose event has at least so many bytes.
fn large(seq: u64, bytes: usize) -> Recorded {
    let path = "s".repeat(bytes).as_str().into();
    let fact = Fact::StepStarted { path, attempt: 1, interrupted: false, opening: None };
    Recorded { seq, at: Timestamp(0), fact, by: None }
}

fn silent(seq: u64) -> Recorded {
    Recorded {
        seq,
        at: Timestamp(0),
        fact: Fact::HoldPlaced { reason: "r".into(), id: None },
        by: None,
    }
}

fn end(seq: u64) -> Recorded {
    let fact = Fact::WorkflowCompleted { since: Timestamp(0), result: Arc::new(json!(1)) };
    Recorded { seq, at: Timestamp(0), fact, by: None }
}

#[actix_web::test]
async fn a_live_subscriber_gets_every_event_once_and_ends_with_the_execution() {
    let mut world = World::new(Begin::Live, WebConfig::default());
    world.publish(vec![step(1), step(2)]).await;
    world.send(vec![step(2)]).await;
    world.publish(vec![silent(3), step(3)]).await;
    world.publish(vec![end(4)]).await;
    assert_eq!(world.seen().await, (vec![1, 2, 3, 4, 5], vec![], true));
}

#[actix_web::test]
async fn a_lost_batch_is_read_from_the_journal() {
    let mut world = World::new(Begin::Live, WebConfig::default());
    world.publish(vec![step(1)]).await;
    world.journal.facts.borrow_mut().extend([step(2), silent(3), step(3)]);
    world.publish(vec![step(4)]).await;
    world.publish(vec![step(5), end(6)]).await;
    assert_eq!(world.seen().await, (vec![1, 2, 3, 4, 5, 6, 7], vec![], true));
}

#[actix_web::test]
async fn an_attached_subscriber_has_neither_gap_nor_repeat() {
    for after in 0..=8 {
        let mut world = World::new(Begin::AtPosition, WebConfig::default());
        world.journal.facts.borrow_mut().extend([step(1), step(2), silent(3), step(3)]);
        // Recorded between the subscription and the first page.
        world.publish(vec![step(4)]).await;
        world.read_from(after, 3, false);
        world.publish(vec![step(5)]).await;
        world.publish(vec![step(6), end(7)]).await;
        let expected: Vec<u64> = (after + 1..=8).collect();
        assert_eq!(world.seen().await, (expected, vec![], true), "after {after}");
    }
}

#[actix_web::test]
async fn a_finished_execution_is_replayed_from_any_place() {
    for after in 0..=5 {
        let mut world = World::new(Begin::AtPosition, WebConfig::default());
        world.journal.facts.borrow_mut().extend([step(1), step(2), end(3)]);
        world.read_from(after, 4, true);
        let expected: Vec<u64> = (after + 1..=4).collect();
        assert_eq!(world.seen().await, (expected, vec![], true), "after {after}");
    }
}

#[actix_web::test]
async fn the_journal_is_read_as_fast_as_the_client_reads() {
    let mut world = World::new(Begin::AtPosition, WebConfig::default());
    let facts: Vec<_> = (1..=6).map(step).chain([end(7)]).collect();
    world.journal.facts.borrow_mut().extend(facts);
    world.read_from(0, 8, true);
    for portions in 1..=3 {
        while world.journal.requested.borrow().len() < portions {
            tokio::task::yield_now().await;
        }
        // Longer than reading and passing on a portion takes.
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        assert_eq!(world.journal.requested.borrow().len(), portions, "the next one waits");
        let Some(Delivery::Item(_)) = world.body.next().await else { panic!("no portion") };
    }
    assert_eq!(world.body.next().await, None);
    assert!(world.journal.requested.borrow().iter().all(|bytes| PORTION_BYTES.contains(bytes)));
}

#[actix_web::test]
async fn a_subscriber_that_reads_nothing_of_the_journal_is_disconnected() {
    let stall = Duration::from_millis(40);
    let config = WebConfig { subscriber_stall: stall, ..WebConfig::default() };
    let world = World::new(Begin::AtPosition, config);
    world.journal.facts.borrow_mut().extend((1..=9).map(step));
    world.read_from(0, 9, false);
    while world.address.connected() {
        tokio::time::sleep(stall).await;
    }
    assert!(world.was_disconnected.load(Ordering::SeqCst));
    assert_eq!(world.journal.requested.borrow().len(), 1);
}

#[actix_web::test]
async fn a_stalled_subscriber_is_disconnected_after_the_timeout() {
    tokio::time::pause();
    let stall = WebConfig::default().subscriber_stall;
    let mut world = World::new(Begin::AtPosition, WebConfig::default());
    world.journal.facts.borrow_mut().extend((1..=9).map(step));
    world.read_from(0, 9, false);
    tokio::time::sleep(stall.mul_f64(0.9)).await;
    assert!(matches!(world.body.next().await, Some(Delivery::Item(_))));
    tokio::time::sleep(stall.mul_f64(0.95)).await;
    assert!(!world.was_disconnected(), "it has taken something");
    tokio::time::sleep(stall.mul_f64(0.1)).await;
    assert!(world.was_disconnected());
}

#[actix_web::test]
async fn a_subscriber_that_reads_nothing_of_the_end_is_disconnected() {
    tokio::time::pause();
    let stall = WebConfig::default().subscriber_stall;
    for reads in [false, true] {
        let mut world = World::new(Begin::Live, WebConfig::default());
        world.publish(vec![step(1), end(2)]).await;
        if reads {
            while world.body.next().await.is_some() {}
        }
        tokio::time::sleep(stall.mul_f64(0.9)).await;
        assert!(!world.was_disconnected());
        tokio::time::sleep(stall.mul_f64(0.2)).await;
        assert_eq!(world.was_disconnected(), !reads);
    }
}

#[actix_web::test]
async fn a_full_backlog_of_other_clients_loses_no_event() {
    tokio::time::pause();
    let mut world = World::new(Begin::Live, WebConfig::default());
    let others = world.others();
    for seq in 1..=20 {
        world.publish(vec![large(seq, 4000)]).await;
    }
    assert_eq!(world.seen().await, ((1..=20).collect(), vec![], false));
    assert!(!world.journal.requested.borrow().is_empty(), "read from the journal");
    world.publish(vec![large(21, 4000)]).await;
    for seq in 22..=40 {
        world.publish(vec![large(seq, 4000)]).await;
    }
    world.publish(vec![end(41)]).await;
    assert_eq!(world.seen().await, ((21..=42).collect(), vec![], true));
    drop(others);
    assert_eq!(world.settings.backlog.bounds().1, 0);
}

#[actix_web::test]
async fn events_beyond_the_share_are_read_when_others_have_gone() {
    tokio::time::pause();
    let mut world = World::new(Begin::AtPosition, WebConfig::default());
    let others = world.others();
    let before = world.settings.backlog.bounds().1;
    world.journal.facts.borrow_mut().extend((1..=6).map(|seq| large(seq, 40_000)));
    world.journal.facts.borrow_mut().push(end(7));
    world.read_from(0, 8, true);
    assert_eq!(world.seen().await, (vec![], vec![], false));
    assert_eq!(world.settings.backlog.bounds().1, before, "nothing is kept while waiting");
    tokio::time::sleep(2 * world.settings.config.subscriber_stall).await;
    assert!(!world.was_disconnected(), "the others are stalled, not this one");
    drop(others);
    let (numbers, _, has_ended) = world.seen().await;
    assert_eq!((numbers, has_ended), ((1..=8).collect(), true));
}

#[actix_web::test]
async fn a_slow_subscriber_gets_the_missed_count_and_a_stalled_one_is_disconnected() {
    let config = WebConfig {
        subscriber_queue: 2,
        subscriber_stall: Duration::from_millis(40),
        ..WebConfig::default()
    };
    let mut world = World::new(Begin::Live, config);
    for seq in 1..=4 {
        world.publish(vec![step(seq)]).await;
    }
    assert_eq!(world.seen().await, (vec![1, 2], vec!["missed 2".to_owned()], false));
    assert!(!world.was_disconnected.load(Ordering::SeqCst));
    for seq in 5..=7 {
        world.publish(vec![step(seq)]).await;
    }
    tokio::time::sleep(Duration::from_millis(120)).await;
    assert!(world.was_disconnected.load(Ordering::SeqCst));
}

#[actix_web::test]
async fn a_silent_stream_has_keep_alives_and_ends_at_shutdown() {
    let config = WebConfig { heartbeat: Duration::from_millis(10), ..WebConfig::default() };
    let mut world = World::new(Begin::Live, config);
    let first = world.body.next().await;
    assert_eq!(first, Some(Delivery::Item(Bytes::from_static(b": keep-alive\n\n"))));
    world.shutdown.fire();
    let (_, comments, has_ended) = world.seen().await;
    assert_eq!(comments.last().unwrap(), ": the server is shutting down");
    assert!(has_ended);
}

#[actix_web::test]
async fn progress_is_in_order_and_only_live() {
    let mut world = World::new(Begin::AtPosition, WebConfig::default());
    world.journal.facts.borrow_mut().extend([step(1), step(2)]);
    world.address.send(progress(&["early"])).await.unwrap();
    world.read_from(0, 2, false);
    world.address.send(progress(&["reading"])).await.unwrap();
    assert_eq!(arrived(&mut world.body).await, ["1", "2"]);
    world.address.send(progress(&["a", "b"])).await.unwrap();
    world.publish(vec![step(3)]).await;
    world.address.send(progress(&["c"])).await.unwrap();
    world.publish(vec![end(4)]).await;
    assert_eq!(arrived(&mut world.body).await, ["a", "b", "3", "c", "4", "5"]);
}

#[actix_web::test]
async fn a_slow_subscriber_loses_progress_and_no_event() {
    let config = WebConfig { subscriber_queue: 4, ..WebConfig::default() };
    let mut world = World::new(Begin::Live, config);
    for word in ["a", "b", "c", "d", "e"] {
        world.address.send(progress(&[word])).await.unwrap();
    }
    world.publish(vec![step(1)]).await;
    world.address.send(progress(&["f"])).await.unwrap();
    world.publish(vec![step(2)]).await;
    assert_eq!(arrived(&mut world.body).await, ["a", "b", "1", "2"]);
    assert!(!world.was_disconnected.load(Ordering::SeqCst));
}

#[actix_web::test]
async fn a_subscriber_without_a_connection_stops() {
    let World { address, body, .. } = World::new(Begin::Live, WebConfig::default());
    drop(body);
    address.send(batch(vec![step(1)])).await.unwrap();
    tokio::task::yield_now().await;
    assert!(!address.connected());
}
