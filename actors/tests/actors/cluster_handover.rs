//! Handovers of slots between processes, and what callers see of them.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use actix::fut::ActorFutureExt as _;
use actix::{Actor, AsyncContext as _, Context, Handler};
use greenroom_actors::domain::cluster::NodeId;
use greenroom_actors::domain::slot::SlotSet;
use greenroom_actors::observe::forgotten::Forgotten;
use greenroom_actors::ports::members::{Lease, Members, View};
use greenroom_actors::ports::store::{Executions as _, Read, Status};
use greenroom_actors::requests::{EventsRecorded, StartError, Subscriber, Unavailable};
use greenroom_actors::testkit::{pass, start};
use serde_json::json;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::cluster::{keyed, owned_by_other};
use crate::processes::{Cluster, LEASE, SHARED_OUT, new, target};

/// Members of a store that is stuck when one of them is to be fenced, and slow when slots are given
/// away: by so many milliseconds.
struct Slow(Arc<dyn Members>, Arc<AtomicU64>);

impl Members for Slow {
    fn own(&self) -> NodeId {
        self.0.own()
    }

    fn lease(&self) -> Lease {
        self.0.lease()
    }

    fn views(&self) -> watch::Receiver<Option<Arc<View>>> {
        self.0.views()
    }

    fn refresh(&self) {
        self.0.refresh();
    }

    fn fence(&self, _: NodeId, _: u64) -> Read<'_, bool> {
        Box::pin(std::future::pending())
    }

    fn claim<'a>(&'a self, slots: &'a SlotSet) -> Read<'a, SlotSet> {
        self.0.claim(slots)
    }

    fn give<'a>(&'a self, slots: &'a SlotSet, to: NodeId) -> Read<'a, SlotSet> {
        let delay = Duration::from_millis(self.1.load(Ordering::Relaxed));
        Box::pin(async move {
            pass(delay).await;
            self.0.give(slots, to).await
        })
    }

    fn set_leaving(&self) -> Read<'_, ()> {
        self.0.set_leaving()
    }
}

#[actix::test]
async fn a_process_serves_its_own_while_a_takeover_takes_long() {
    let cluster = Cluster::new();
    let first = cluster.join_as("a", |members| Arc::new(Slow(members, Arc::default()))).await;
    let second = cluster.join("b").await;
    pass(SHARED_OUT).await;
    let id = first.start("w").await;
    second.kill().await;
    pass(LEASE * 5).await;
    assert!(first.runtime.is_ready());
    assert_eq!(first.resume(&id).await, Ok(Status::Completed));
}

#[actix::test]
async fn slots_are_served_until_it_is_their_turn_to_be_given_away() {
    let cluster = Cluster::new();
    let delay_ms = Arc::<AtomicU64>::default();
    let delay = Arc::clone(&delay_ms);
    let first = cluster.join_as("a", |members| Arc::new(Slow(members, delay))).await;
    let [_second, _third] = [cluster.join("b").await, cluster.join("c").await];
    pass(SHARED_OUT).await;
    let served = || first.runtime.cluster_stats().unwrap().slots_served;
    let before = served();
    delay_ms.store(u64::from(u32::MAX), Ordering::Relaxed);
    first.store.members().unwrap().set_leaving().await.unwrap();
    pass(LEASE).await;
    let left = served();
    assert!(0 < left && left < before, "those for the third one are left: {left} of {before}");
}

#[actix::test]
async fn a_process_that_drains_ends_when_the_others_know_its_slots() {
    let cluster = Cluster::linked();
    let [first, second] = cluster.of(["a", "b"]).await;
    let ids: Vec<_> = futures_util::future::join_all((0..20).map(|_| first.start("w"))).await;
    let begun = Instant::now();
    let drained = async {
        first.runtime.drain(Duration::from_secs(30)).await;
        let took = begun.elapsed();
        cluster.network.as_ref().unwrap().remove(first.node);
        took
    };
    let resumed = async {
        let mut answers = Vec::new();
        for id in &ids {
            pass(LEASE / 20).await;
            answers.push(second.resume(id).await);
        }
        answers
    };
    let (took, answers) = tokio::join!(drained, resumed);
    assert!(answers.iter().all(|answer| *answer == Ok(Status::Completed)), "{answers:?}");
    assert!(took < LEASE, "it waits for beats, not for its lease: {took:?}");
}

#[actix::test]
async fn callers_of_a_process_that_drains_get_the_outcome_of_the_next_owner() {
    let cluster = Cluster::linked();
    let [first, second] = cluster.of(["a", "b"]).await;
    let ids = [first.start("asks").await, first.start("asks").await];
    let drained = async {
        pass(Duration::from_secs(1)).await;
        first.runtime.drain(Duration::from_secs(30)).await;
    };
    // the resume is recorded by the first process, and answered when both steps have ended
    let (here, elsewhere, ()) =
        tokio::join!(first.resume_of("asks", &ids[0]), second.resume_of("asks", &ids[1]), drained,);
    assert_eq!(here, Ok(Status::Completed));
    assert_eq!(elsewhere, Ok(Status::Completed), "it is not carried out again");
    assert_eq!(cluster.calls.count(), 4, "no step ran twice");
}

#[actix::test]
async fn a_caller_is_not_told_that_nothing_was_recorded_when_something_may_be() {
    let cluster = Cluster::linked();
    let first = cluster.join("a").await;
    let second = cluster.join_as("b", |members| Arc::new(Slow(members, Arc::default()))).await;
    pass(SHARED_OUT).await;
    let id = owned_by_other(&second, "keyed");
    // the key lets it be sent again, but there is no next owner
    let (refused, ()) = tokio::join!(
        second.runtime.execute(keyed(start("toils", id.as_str(), json!({})), "k")),
        async {
            pass(Duration::from_secs(2)).await;
            first.kill().await;
        }
    );
    assert!(cluster.disk.describe(&id).await.unwrap().is_some(), "it was recorded");
    let moved = Unavailable::Moved { execution: Some(id) };
    assert_eq!(refused.err(), Some(StartError::Unavailable(moved)));
}

#[actix::test]
async fn a_slot_in_which_work_begins_before_its_turn_is_kept_until_it_has_ended() {
    let cluster = Cluster::linked();
    let delay = Arc::new(AtomicU64::new(2_000));
    let first = cluster.join_as("a", |members| Arc::new(Slow(members, delay))).await;
    let [_second, _third] = [cluster.join("b").await, cluster.join("c").await];
    pass(SHARED_OUT).await;
    first.store.members().unwrap().set_leaving().await.unwrap();
    // the slots for the third process are given away after those for the second one
    let starts = (0..200).map(async |number| {
        pass(Duration::from_millis(50) * number).await;
        first.runtime.execute(new("works")).await.map(|outcome| outcome.status())
    });
    let answers = futures_util::future::join_all(starts).await;
    let refused: Vec<_> = answers.iter().filter(|it| **it != Ok(Status::Completed)).collect();
    assert!(refused.is_empty(), "{refused:?}");
    assert_eq!(cluster.calls.count(), 400, "no step ran twice");
    pass(LEASE).await;
    assert_eq!(first.runtime.cluster_stats().unwrap().slots_served, 0);
}

#[actix::test]
async fn a_process_that_drains_keeps_slots_with_steps_for_its_whole_grace_period() {
    let cluster = Cluster::linked();
    let [first, _second] = cluster.of(["a", "b"]).await;
    let (answer, ()) = tokio::join!(first.runtime.execute(new("drags")), async {
        pass(Duration::from_secs(1)).await;
        first.runtime.drain(Duration::from_secs(30)).await;
    });
    assert_eq!(answer.map(|outcome| outcome.status()), Ok(Status::Completed));
    assert_eq!(cluster.calls.count(), 1, "its step was not interrupted");
}

/// Notes that no address of it is left.
struct Reader(Rc<Cell<bool>>);

impl Actor for Reader {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.spawn(Forgotten::default().map(|(), reader: &mut Self, _| reader.0.set(true)));
    }
}

impl Handler<EventsRecorded> for Reader {
    type Result = ();

    fn handle(&mut self, _: EventsRecorded, _: &mut Self::Context) {}
}

/// A stream that is forgotten subscribes again, at the next owner.
#[actix::test]
async fn readers_of_an_execution_that_is_handed_over_are_not_kept() {
    let cluster = Cluster::linked();
    let [first, second] = cluster.of(["a", "b"]).await;
    let id = first.start("w").await;
    let is_forgotten = Rc::<Cell<bool>>::default();
    let events = Reader(Rc::clone(&is_forgotten)).start().recipient();
    let subscriber = Subscriber { events, progress: None, disconnect: Arc::new(|| {}) };
    first.runtime.subscribe(&target("w", &id), subscriber).await.unwrap();
    pass(Duration::from_secs(60)).await;
    assert!(!is_forgotten.get());
    first.store.members().unwrap().set_leaving().await.unwrap();
    pass(SHARED_OUT).await;
    assert_eq!(first.runtime.cluster_stats().unwrap().slots_served, 0);
    assert!(is_forgotten.get());
    assert_eq!(first.runtime.live(), 0);
    assert_eq!(second.resume(&id).await, Ok(Status::Completed));
}
