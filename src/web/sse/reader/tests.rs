//! Readers of events in paused time, without a connection.

use std::cell::RefCell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::LocalBoxFuture;
use greenroom_actors::agent::generation::{GenerationEvent, GenerationProgress};
use greenroom_actors::domain::fact::{Fact, Recorded};
use greenroom_actors::domain::time::Timestamp;
use greenroom_actors::requests::{ProgressBatch, Said};
use serde_json::{Value, json};

use super::*;
use crate::web::outbox::{Out, OutboxReader};
use crate::web::settings::WebConfig;
use crate::web::shutdown::Shutdown;

/// A record that a test can add to.
#[derive(Default)]
struct Facts {
    facts: RefCell<Vec<Recorded>>,
    /// Bytes that were asked for, portion by portion.
    asked: RefCell<Vec<usize>>,
    /// Who has subscribed through the record.
    subscriber: RefCell<Option<Subscriber>>,
}

impl Record for Rc<Facts> {
    fn portion(
        &self,
        _: ExecutionId,
        from: Place,
        bytes: usize,
    ) -> LocalBoxFuture<'static, Result<Portion, Unavailable>> {
        self.asked.borrow_mut().push(bytes);
        let facts = self.facts.borrow();
        let wanted = facts.iter().filter(|fact| fact.seq > from.above);
        let facts: Vec<_> = wanted.take(PORTION).cloned().collect();
        let next = Place::above(last_seq_of(&facts).unwrap_or(from.above));
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
        let record = Self::clone(self);
        Box::pin(async move {
            tokio::task::yield_now().await;
            let facts = record.facts.borrow();
            let (durable_seq, ended) = (last_seq_of(&facts).unwrap_or(0), is_end(&facts));
            *record.subscriber.borrow_mut() = (!ended).then_some(subscriber);
            Ok(Subscription { durable_seq, ended })
        })
    }
}

/// A record and one reader of it.
struct World {
    record: Rc<Facts>,
    address: Addr<EventReader>,
    body: OutboxReader<Bytes>,
    was_cut: Arc<AtomicBool>,
    shutdown: Shutdown,
    settings: Arc<Settings>,
}

/// Three facts in a portion, so that a short story has several.
const PORTION: usize = 3;

impl World {
    fn new(begin: Begin, config: WebConfig) -> Self {
        let record = Rc::new(Facts::default());
        let shutdown = Shutdown::new();
        let settings = Arc::new(Settings::of(config, shutdown.clone()));
        let outbox = settings.outbox();
        let body = outbox.reader(|| ());
        let was_cut = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&was_cut);
        let disconnect: Disconnect = Arc::new(move || flag.store(true, Ordering::SeqCst));
        let shared = Rc::new(Rc::clone(&record));
        let line = Line { outbox, disconnect, room: Room::plenty() };
        let address = EventReader::new(shared, Arc::clone(&settings), line, begin).launch();
        Self { record, address, body, was_cut, shutdown, settings }
    }

    /// Records facts and tells the reader, as the execution's actor does.
    async fn publish(&self, facts: Vec<Recorded>) {
        self.record.facts.borrow_mut().extend(facts.iter().cloned());
        self.tell(facts).await;
    }

    async fn tell(&self, facts: Vec<Recorded>) {
        // A reader that has ended does not mind.
        let _ = self.address.send(batch(facts)).await;
    }

    fn read_from(&self, after: u64, durable_seq: u64, ended: bool) {
        let execution = ExecutionId::trusted("x");
        let subscription = Subscription { durable_seq, ended };
        self.address.try_send(ReadFrom { execution, after, subscription }).unwrap();
    }

    /// Other clients that take nothing hold more than all streams may.
    fn others(&self) -> Held {
        self.settings.backlog.hold(2 * self.settings.config.subscribers_bytes_max)
    }

    fn was_cut(&self) -> bool {
        self.was_cut.load(Ordering::SeqCst)
    }

    async fn seen(&mut self) -> (Vec<u64>, Vec<String>, bool) {
        seen(&mut self.body).await
    }
}

fn batch(facts: Vec<Recorded>) -> EventsRecorded {
    let (execution_id, rendered) = (ExecutionId::trusted("x"), OnceLock::new());
    EventsRecorded(Arc::new(EventBatch { execution_id, facts: facts.into(), rendered }))
}

/// What the agent of a step says.
fn progress(words: &[&str]) -> StepProgressed {
    let said = words.iter().map(|word| {
        let (id, delta) = (Arc::from("t"), (*word).to_owned());
        Said::Agent(GenerationProgress(Arc::from([GenerationEvent::TextDelta { id, delta }])))
    });
    StepProgressed(Arc::new(ProgressBatch {
        execution_id: ExecutionId::trusted("x"),
        path: "s".into(),
        at: Timestamp(0),
        said: said.collect(),
        rendered: OnceLock::new(),
    }))
}

/// Numbers of the events that arrive; progress by its words.
async fn told(body: &mut OutboxReader<Bytes>) -> Vec<String> {
    let mut told = Vec::new();
    while let Ok(Some(Out::Item(bytes))) =
        tokio::time::timeout(Duration::from_millis(50), body.next()).await
    {
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        for frame in text.split_terminator("\n\n") {
            let (head, data) = frame.split_once("data: ").unwrap();
            let data: Value = serde_json::from_str(data).unwrap();
            told.push(match head.strip_prefix("id: ") {
                Some(number) => number.trim().to_owned(),
                None => data["event"]["delta"].as_str().unwrap().to_owned(),
            });
        }
    }
    told
}

/// Numbers of the events that arrive until the stream ends or pauses; comments as they are.
async fn seen(body: &mut OutboxReader<Bytes>) -> (Vec<u64>, Vec<String>, bool) {
    let (mut numbers, mut comments) = (Vec::new(), Vec::new());
    loop {
        match tokio::time::timeout(Duration::from_millis(50), body.next()).await {
            Ok(Some(Out::Item(bytes))) => {
                for line in String::from_utf8(bytes.to_vec()).unwrap().lines() {
                    if let Some(number) = line.strip_prefix("id: ") {
                        numbers.push(number.parse().unwrap());
                    } else if line.starts_with(':') {
                        comments.push(line.to_owned());
                    }
                }
            }
            Ok(Some(Out::Missed(count))) => comments.push(format!("missed {count}")),
            Ok(None) => return (numbers, comments, true),
            Err(_) => return (numbers, comments, false),
        }
    }
}

fn step(seq: u64) -> Recorded {
    let fact =
        Fact::StepStarted { path: "s".into(), attempt: 1, interrupted: false, opening: None };
    Recorded { seq, at: Timestamp(0), fact, by: None }
}

/// A step whose event takes so many bytes at least.
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
async fn a_live_reader_hears_everything_once_and_ends_with_the_execution() {
    let mut world = World::new(Begin::Live, WebConfig::default());
    world.publish(vec![step(1), step(2)]).await;
    world.tell(vec![step(2)]).await;
    world.publish(vec![silent(3), step(3)]).await;
    world.publish(vec![end(4)]).await;
    assert_eq!(world.seen().await, (vec![1, 2, 3, 4, 5], vec![], true));
}

#[actix_web::test]
async fn a_lost_batch_is_read_from_the_record() {
    let mut world = World::new(Begin::Live, WebConfig::default());
    world.publish(vec![step(1)]).await;
    world.record.facts.borrow_mut().extend([step(2), silent(3), step(3)]);
    world.publish(vec![step(4)]).await;
    world.publish(vec![step(5), end(6)]).await;
    assert_eq!(world.seen().await, (vec![1, 2, 3, 4, 5, 6, 7], vec![], true));
}

#[actix_web::test]
async fn an_attached_reader_has_neither_gap_nor_repeat() {
    for after in 0..=8 {
        let mut world = World::new(Begin::WhenTold, WebConfig::default());
        world.record.facts.borrow_mut().extend([step(1), step(2), silent(3), step(3)]);
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
        let mut world = World::new(Begin::WhenTold, WebConfig::default());
        world.record.facts.borrow_mut().extend([step(1), step(2), end(3)]);
        world.read_from(after, 4, true);
        let expected: Vec<u64> = (after + 1..=4).collect();
        assert_eq!(world.seen().await, (expected, vec![], true), "after {after}");
    }
}

#[actix_web::test]
async fn the_record_is_read_as_fast_as_it_is_taken() {
    let mut world = World::new(Begin::WhenTold, WebConfig::default());
    let facts: Vec<_> = (1..=6).map(step).chain([end(7)]).collect();
    world.record.facts.borrow_mut().extend(facts);
    world.read_from(0, 8, true);
    for portions in 1..=3 {
        while world.record.asked.borrow().len() < portions {
            tokio::task::yield_now().await;
        }
        // As long as one needs to be read and passed on, and more.
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        assert_eq!(world.record.asked.borrow().len(), portions, "the next one waits");
        let Some(Out::Item(_)) = world.body.next().await else { panic!("no portion") };
    }
    assert_eq!(world.body.next().await, None);
    assert!(world.record.asked.borrow().iter().all(|bytes| PORTION_BYTES.contains(bytes)));
}

#[actix_web::test]
async fn a_reader_of_the_record_that_takes_nothing_is_cut() {
    let stall = Duration::from_millis(40);
    let config = WebConfig { subscriber_stall: stall, ..WebConfig::default() };
    let world = World::new(Begin::WhenTold, config);
    world.record.facts.borrow_mut().extend((1..=9).map(step));
    world.read_from(0, 9, false);
    while world.address.connected() {
        tokio::time::sleep(stall).await;
    }
    assert!(world.was_cut.load(Ordering::SeqCst));
    assert_eq!(world.record.asked.borrow().len(), 1);
}

#[actix_web::test]
async fn a_stalled_reader_is_cut_when_its_time_is_over() {
    tokio::time::pause();
    let stall = WebConfig::default().subscriber_stall;
    let mut world = World::new(Begin::WhenTold, WebConfig::default());
    world.record.facts.borrow_mut().extend((1..=9).map(step));
    world.read_from(0, 9, false);
    tokio::time::sleep(stall.mul_f64(0.9)).await;
    assert!(matches!(world.body.next().await, Some(Out::Item(_))));
    tokio::time::sleep(stall.mul_f64(0.95)).await;
    assert!(!world.was_cut(), "it has taken something");
    tokio::time::sleep(stall.mul_f64(0.1)).await;
    assert!(world.was_cut());
}

#[actix_web::test]
async fn who_is_behind_while_others_hold_everything_misses_nothing() {
    tokio::time::pause();
    let mut world = World::new(Begin::Live, WebConfig::default());
    let others = world.others();
    for seq in 1..=20 {
        world.publish(vec![large(seq, 4000)]).await;
    }
    assert_eq!(world.seen().await, ((1..=20).collect(), vec![], false));
    assert!(!world.record.asked.borrow().is_empty(), "the record has what found no room");
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
async fn what_is_too_large_for_the_moment_is_read_when_others_have_gone() {
    tokio::time::pause();
    let mut world = World::new(Begin::WhenTold, WebConfig::default());
    let others = world.others();
    let before = world.settings.backlog.bounds().1;
    world.record.facts.borrow_mut().extend((1..=6).map(|seq| large(seq, 40_000)));
    world.record.facts.borrow_mut().push(end(7));
    world.read_from(0, 8, true);
    assert_eq!(world.seen().await, (vec![], vec![], false));
    assert_eq!(world.settings.backlog.bounds().1, before, "nothing is kept meanwhile");
    tokio::time::sleep(2 * world.settings.config.subscriber_stall).await;
    assert!(!world.was_cut(), "it is not the one that takes nothing");
    drop(others);
    let (numbers, _, has_ended) = world.seen().await;
    assert_eq!((numbers, has_ended), ((1..=8).collect(), true));
}

#[actix_web::test]
async fn a_slow_reader_hears_what_it_missed_and_a_stalled_one_is_cut() {
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
    assert!(!world.was_cut.load(Ordering::SeqCst));
    for seq in 5..=7 {
        world.publish(vec![step(seq)]).await;
    }
    tokio::time::sleep(Duration::from_millis(120)).await;
    assert!(world.was_cut.load(Ordering::SeqCst));
}

#[actix_web::test]
async fn a_silent_stream_shows_that_it_lives_and_ends_at_shutdown() {
    let config = WebConfig { heartbeat: Duration::from_millis(10), ..WebConfig::default() };
    let mut world = World::new(Begin::Live, config);
    let first = world.body.next().await;
    assert_eq!(first, Some(Out::Item(Bytes::from_static(b": keep-alive\n\n"))));
    world.shutdown.fire();
    let (_, comments, has_ended) = world.seen().await;
    assert_eq!(comments.last().unwrap(), ": the server is shutting down");
    assert!(has_ended);
}

#[actix_web::test]
async fn progress_comes_in_its_place_and_only_live() {
    let mut world = World::new(Begin::WhenTold, WebConfig::default());
    world.record.facts.borrow_mut().extend([step(1), step(2)]);
    world.address.send(progress(&["early"])).await.unwrap();
    world.read_from(0, 2, false);
    world.address.send(progress(&["reading"])).await.unwrap();
    assert_eq!(told(&mut world.body).await, ["1", "2"]);
    world.address.send(progress(&["a", "b"])).await.unwrap();
    world.publish(vec![step(3)]).await;
    world.address.send(progress(&["c"])).await.unwrap();
    world.publish(vec![end(4)]).await;
    assert_eq!(told(&mut world.body).await, ["a", "b", "3", "c", "4", "5"]);
}

#[actix_web::test]
async fn a_slow_reader_loses_progress_and_no_event() {
    let config = WebConfig { subscriber_queue: 4, ..WebConfig::default() };
    let mut world = World::new(Begin::Live, config);
    for word in ["a", "b", "c", "d", "e"] {
        world.address.send(progress(&[word])).await.unwrap();
    }
    world.publish(vec![step(1)]).await;
    world.address.send(progress(&["f"])).await.unwrap();
    world.publish(vec![step(2)]).await;
    assert_eq!(told(&mut world.body).await, ["a", "b", "1", "2"]);
    assert!(!world.was_cut.load(Ordering::SeqCst));
}

fn impatient() -> WebConfig {
    WebConfig { heartbeat: Duration::from_millis(10), ..WebConfig::default() }
}

#[actix_web::test]
async fn a_forgotten_reader_still_gives_the_end() {
    let world = World::new(Begin::Live, impatient());
    world.publish(vec![step(1), step(2)]).await;
    let World { record, address, mut body, .. } = world;
    // Their batches found the mailbox full.
    record.facts.borrow_mut().extend([step(3), silent(4), step(4), step(5), end(6)]);
    drop(address);
    let (numbers, _, has_ended) = seen(&mut body).await;
    assert_eq!((numbers, has_ended), (vec![1, 2, 3, 4, 5, 6, 7], true));
}

#[actix_web::test]
async fn a_forgotten_reader_subscribes_again_while_the_execution_lives() {
    let world = World::new(Begin::Live, impatient());
    world.publish(vec![step(1)]).await;
    let World { record, address, mut body, .. } = world;
    record.facts.borrow_mut().push(step(2));
    drop(address);
    while record.subscriber.borrow().is_none() {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let subscriber = record.subscriber.borrow_mut().take().unwrap();
    record.facts.borrow_mut().push(end(3));
    subscriber.events.try_send(batch(vec![end(3)])).unwrap();
    drop(subscriber);
    let (numbers, _, has_ended) = seen(&mut body).await;
    assert_eq!((numbers, has_ended), (vec![1, 2, 3, 4], true));
}

#[actix_web::test]
async fn a_reader_without_a_connection_stops() {
    let World { address, body, .. } = World::new(Begin::Live, WebConfig::default());
    drop(body);
    address.send(batch(vec![step(1)])).await.unwrap();
    tokio::task::yield_now().await;
    assert!(!address.connected());
}
