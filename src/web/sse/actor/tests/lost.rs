//! Streams whose execution has dropped them. No test lasts until a heartbeat unless it says so.

use super::*;
use crate::web::sse::actor::subscribing::FIRST_PAUSE;

/// A stream whose subscriptions can be dropped.
struct Lost {
    journal: Rc<Facts>,
    body: QueueReceiver<Bytes>,
    heartbeat: Duration,
    begun: Instant,
}

impl Lost {
    /// Drops the first address of a stream.
    fn of(world: World) -> Self {
        let World { journal, address, body, settings, .. } = world;
        drop(address);
        Self { journal, body, heartbeat: settings.config.heartbeat, begun: Instant::now() }
    }

    /// Returns the subscriber that the stream has registered since.
    async fn subscriber(&self) -> Subscriber {
        loop {
            if let Some(subscriber) = self.journal.subscriber.borrow_mut().take() {
                return subscriber;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    fn record(&self, facts: Vec<Recorded>) {
        self.journal.facts.borrow_mut().extend(facts);
    }

    /// Returns the times of the attempts to subscribe since the beginning.
    fn attempts(&self) -> Vec<Duration> {
        self.journal.attempts.borrow().iter().map(|at| *at - self.begun).collect()
    }
}

fn busy() -> Option<DescribeError> {
    Some(Unavailable::Busy { execution: None }.into())
}

#[actix_web::test]
async fn a_forgotten_subscriber_reads_the_end_at_once() {
    tokio::time::pause();
    let world = World::new(Begin::Live, WebConfig::default());
    world.publish(vec![step(1), step(2)]).await;
    let mut lost = Lost::of(world);
    // Their batches did not fit into the mailbox.
    lost.record(vec![step(3), silent(4), step(4), step(5), end(6)]);
    assert_eq!(seen(&mut lost.body).await, (vec![1, 2, 3, 4, 5, 6, 7], vec![], true));
    assert!(lost.begun.elapsed() < lost.heartbeat);
}

#[actix_web::test]
async fn a_stream_continues_at_once_after_every_loss() {
    tokio::time::pause();
    let world = World::new(Begin::Live, WebConfig::default());
    world.publish(vec![step(1)]).await;
    let mut lost = Lost::of(world);
    lost.record(vec![step(2)]);
    let subscriber = lost.subscriber().await;
    assert!(lost.begun.elapsed() < FIRST_PAUSE, "{:?}", lost.begun.elapsed());
    assert_eq!(seen(&mut lost.body).await, (vec![1, 2], vec![], false));
    // Sent before the loss: passed on once, whether it is read from the mailbox or the journal.
    lost.record(vec![step(3)]);
    subscriber.events.try_send(batch(vec![step(3)])).unwrap();
    drop(subscriber);
    lost.record(vec![step(4)]);
    assert_eq!(seen(&mut lost.body).await.0, [3], "further ones are paced");
    let subscriber = lost.subscriber().await;
    lost.record(vec![end(5)]);
    subscriber.events.try_send(batch(vec![end(5)])).unwrap();
    drop(subscriber);
    assert_eq!(seen(&mut lost.body).await, (vec![4, 5, 6], vec![], true));
    assert!(lost.begun.elapsed() < lost.heartbeat);
}

#[actix_web::test]
async fn a_stream_that_reads_the_journal_subscribes_again_when_it_is_live() {
    tokio::time::pause();
    let world = World::new(Begin::AtPosition, WebConfig::default());
    world.journal.facts.borrow_mut().extend((1..=8).map(step));
    world.read_from(0, 8, false);
    let mut lost = Lost::of(world);
    lost.record(vec![step(9)]);
    assert_eq!(seen(&mut lost.body).await, ((1..=9).collect(), vec![], false));
    let subscriber = lost.subscriber().await;
    lost.record(vec![end(10)]);
    subscriber.events.try_send(batch(vec![end(10)])).unwrap();
    assert_eq!(seen(&mut lost.body).await, (vec![10, 11], vec![], true));
    assert_eq!(lost.attempts().len(), 1);
}

#[actix_web::test]
async fn attempts_to_subscribe_become_as_rare_as_heartbeats() {
    tokio::time::pause();
    let world = World::new(Begin::Live, WebConfig::default());
    world.publish(vec![step(1)]).await;
    *world.journal.refusal.borrow_mut() = busy();
    let mut lost = Lost::of(world);
    tokio::time::sleep(20 * lost.heartbeat).await;
    let attempts = lost.attempts();
    let pauses: Vec<Duration> = attempts.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(attempts[0] < FIRST_PAUSE, "the first is made at once: {attempts:?}");
    for (pause, next) in pauses.iter().zip(&pauses[1..]) {
        let expected = (2 * *pause).min(lost.heartbeat);
        assert!(next.abs_diff(expected) < Duration::from_millis(20), "{pauses:?}");
    }
    assert!(pauses.last().unwrap().abs_diff(lost.heartbeat) < Duration::from_millis(5));

    *lost.journal.refusal.borrow_mut() = None;
    let subscriber = lost.subscriber().await;
    lost.record(vec![end(2)]);
    subscriber.events.try_send(batch(vec![end(2)])).unwrap();
    let (numbers, _, has_ended) = seen(&mut lost.body).await;
    assert_eq!((numbers, has_ended), (vec![1, 2, 3], true), "the stream stayed open");
}

#[actix_web::test]
async fn an_execution_that_is_lost_again_and_again_is_not_stormed() {
    tokio::time::pause();
    let world = World::new(Begin::Live, WebConfig::default());
    world.publish(vec![step(1)]).await;
    let mut lost = Lost::of(world);
    while lost.begun.elapsed() < 10 * lost.heartbeat {
        drop(lost.subscriber().await);
        let _ = seen(&mut lost.body).await;
    }
    let count = lost.attempts().len();
    assert!(count < 10 * 10, "{count} attempts in ten heartbeats");
    let before = count;
    let subscriber = lost.subscriber().await;
    tokio::time::sleep(2 * lost.heartbeat).await;
    drop(subscriber);
    let dropped = Instant::now();
    drop(lost.subscriber().await);
    assert!(dropped.elapsed() < FIRST_PAUSE, "a subscription that lasted is replaced at once");
    assert_eq!(lost.attempts().len(), before + 2);
}

#[actix_web::test]
async fn a_stream_of_an_execution_that_is_gone_ends() {
    tokio::time::pause();
    for refusal in [DescribeError::NotFound, Unavailable::Corrupt(Arc::from("execution x")).into()]
    {
        let world = World::new(Begin::Live, WebConfig::default());
        world.publish(vec![step(1)]).await;
        *world.journal.refusal.borrow_mut() = Some(refusal);
        let mut lost = Lost::of(world);
        let (numbers, comments, has_ended) = seen(&mut lost.body).await;
        assert_eq!((numbers, has_ended), (vec![1], true));
        assert_eq!(comments, [": the execution is not available"]);
    }
}
