//! Subscribers of an execution: fast, slow or stalled. They are disconnected, reconnect and
//! continue where they were.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use actix::{Actor, ActorContext, AsyncContext, Context, Handler, Message, WeakAddr, WrapFuture};
use greenroom_actors::Runtime;
use greenroom_actors::domain::event::events_of;
use greenroom_actors::domain::fact::Recorded;
use greenroom_actors::domain::ids::ExecutionId;
use greenroom_actors::ports::store::{FactCursor, Portion};
use greenroom_actors::requests::{EventsRecorded, Subscriber, Target};

use crate::simulator::dice::Dice;
use crate::simulator::stage::Stage;

/// Size of a portion: a few facts.
const PORTION_BYTES: usize = 700;
/// Interval at which a subscriber checks that it is still registered.
const BEAT: Duration = Duration::from_secs(15);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Manner {
    Eager,
    Slow(u64),
    Stalled,
}

impl Manner {
    pub(crate) fn any(dice: &mut Dice) -> Self {
        match dice.below(10) {
            0..6 => Self::Eager,
            6..9 => Self::Slow(dice.millis(30_000)),
            _ => Self::Stalled,
        }
    }
}

/// A client that follows an execution over several connections.
pub(crate) struct Follower {
    pub(crate) target: Target,
    pub(crate) visits: Vec<Visit>,
}

/// One connection.
pub(crate) struct Visit {
    manner: Manner,
    /// Weak, so that the actor sees when it is no longer registered.
    address: WeakAddr<SubscriberActor>,
    /// Last event known at the start.
    after: u64,
    received: Arc<Mutex<Received>>,
    is_cut: Arc<AtomicBool>,
    /// True if the follower left, or the process ended.
    is_broken: bool,
    /// True if the execution's actor ended and dropped its subscribers.
    is_forgotten: Arc<AtomicBool>,
}

#[derive(Default)]
struct Received {
    /// Reply to the subscription.
    begins: Option<Begins>,
    replayed: Vec<Recorded>,
    live: Vec<Recorded>,
}

#[derive(Clone, Copy)]
struct Begins {
    ended: bool,
    is_replayed: bool,
}

struct SubscriberActor {
    stage: Arc<Stage>,
    id: ExecutionId,
    manner: Manner,
    received: Arc<Mutex<Received>>,
    is_forgotten: Arc<AtomicBool>,
}

impl Actor for SubscriberActor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.set_mailbox_capacity(if self.manner == Manner::Eager { 256 } else { 2 });
        ctx.run_interval(BEAT, |actor, ctx| {
            if !ctx.connected() {
                actor.is_forgotten.store(true, Ordering::SeqCst);
                ctx.stop();
            }
        });
        if self.manner == Manner::Stalled {
            occupied(self, ctx, Duration::from_secs(1_000_000));
        }
    }
}

/// Handles no messages for a while.
#[expect(clippy::disallowed_methods, reason = "a closed mailbox is what slow readers have")]
fn occupied(actor: &SubscriberActor, ctx: &mut Context<SubscriberActor>, time: Duration) {
    let stage = Arc::clone(&actor.stage);
    let until = async move {
        let _ = tokio::time::timeout(time, stage.healing()).await;
    };
    ctx.wait(until.into_actor(actor));
}

impl Handler<EventsRecorded> for SubscriberActor {
    type Result = ();

    fn handle(&mut self, message: EventsRecorded, ctx: &mut Self::Context) {
        let durable = self.stage.projection(&self.id).map_or(0, |found| found.last_seq);
        let facts = message.0.facts.iter().filter(|fact| !events_of(&fact.fact).is_empty());
        for fact in facts {
            self.stage.require(fact.seq <= durable, || {
                format!("a subscriber of {} received {}, durable is {durable}", self.id, fact.seq)
            });
            self.received.lock().unwrap().live.push(fact.clone());
        }
        if let Manner::Slow(ms) = self.manner {
            occupied(self, ctx, Duration::from_millis(ms));
        }
    }
}

#[derive(Message)]
#[rtype(result = "()")]
struct Leave;

impl Handler<Leave> for SubscriberActor {
    type Result = ();

    fn handle(&mut self, _: Leave, ctx: &mut Self::Context) {
        ctx.stop();
    }
}

impl Follower {
    pub(crate) fn new(target: Target) -> Self {
        Self { target, visits: Vec::new() }
    }

    /// Connects or reconnects.
    pub(crate) fn connect(&mut self, stage: &Arc<Stage>, manner: Manner) -> (Subscriber, usize) {
        let received: Arc<Mutex<Received>> = Arc::default();
        let is_cut = Arc::new(AtomicBool::new(false));
        let id = self.target.execution_id.clone();
        let is_forgotten = Arc::new(AtomicBool::new(false));
        let (stage_of, received_of) = (Arc::clone(stage), Arc::clone(&received));
        let actor = SubscriberActor {
            stage: stage_of,
            id,
            manner,
            received: received_of,
            is_forgotten: Arc::clone(&is_forgotten),
        };
        let address = actor.start();
        let events = address.clone().recipient();
        let flag = Arc::clone(&is_cut);
        let disconnect = Arc::new(move || flag.store(true, Ordering::SeqCst));
        let after = self.known(stage).last_key_value().map_or(0, |(seq, _)| *seq);
        let address = address.downgrade();
        let is_broken = false;
        self.visits.push(Visit {
            manner,
            address,
            after,
            received,
            is_cut,
            is_broken,
            is_forgotten,
        });
        (Subscriber { events, progress: None, disconnect }, self.visits.len() - 1)
    }

    /// Ends the connection.
    pub(crate) fn disconnect(&mut self) {
        if let Some(visit) = self.visits.last_mut()
            && let Some(address) = visit.address.upgrade()
        {
            visit.is_broken = true;
            let _ = address.try_send(Leave);
        }
    }

    pub(crate) fn is_connected(&self) -> bool {
        self.visits.last().is_some_and(|visit| {
            visit.address.upgrade().is_some_and(|address| address.connected())
                && !visit.is_broken
                && !visit.is_cut.load(Ordering::SeqCst)
                && !visit.is_forgotten.load(Ordering::SeqCst)
        })
    }

    /// Returns all events seen, by number, and checks that they have no gaps.
    pub(crate) fn known(&self, stage: &Stage) -> BTreeMap<u64, Recorded> {
        let mut known = BTreeMap::new();
        for visit in &self.visits {
            let received = visit.received.lock().unwrap();
            let Some(begins) = received.begins else { continue };
            stage.require(!begins.ended || received.live.is_empty(), || {
                format!("{} had ended, and continues", self.target.execution_id)
            });
            let mut next = visit.after + 1;
            // replayed facts are complete only after the last portion
            let live = received.live.iter().filter(|_| begins.is_replayed);
            for fact in received.replayed.iter().chain(live) {
                // a slow subscriber misses events and then reads the record
                let is_next = fact.seq == next || visit.manner != Manner::Eager && fact.seq > next;
                stage.require(is_next, || {
                    let id = &self.target.execution_id;
                    format!("a subscriber of {id} received {} and not {next}", fact.seq)
                });
                next = fact.next_seq();
                known.insert(next - 1, fact.clone());
            }
        }
        known
    }

    /// Checks at the end that what a subscriber has seen is recorded, and that one that stayed has
    /// seen every event. It may have been dropped before the last one.
    pub(crate) fn has_seen_everything(&self, stage: &Stage, may_be_dropped: bool) {
        let id = &self.target.execution_id;
        let facts = stage.facts(id);
        for (seq, seen) in self.known(stage) {
            stage.require(facts.contains(&seen), || {
                format!("a subscriber of {id} saw {seq}, which is not what the record has")
            });
        }
        let Some(visit) = self.visits.last() else { return };
        let is_answered = visit.received.lock().unwrap().begins.is_some_and(|it| it.is_replayed);
        let is_forgotten = visit.is_forgotten.load(Ordering::SeqCst) && may_be_dropped;
        let was_slow = self.visits.iter().any(|visit| visit.manner != Manner::Eager);
        let is_excused = visit.is_broken
            || visit.is_cut.load(Ordering::SeqCst)
            || is_forgotten
            || was_slow
            || !is_answered;
        if is_excused {
            return;
        }
        let facts = facts.into_iter().filter(|fact| !events_of(&fact.fact).is_empty());
        let record: Vec<Recorded> = facts.collect();
        stage.count("subscriber that stayed");
        let known: Vec<Recorded> = self.known(stage).into_values().collect();
        stage.require(known == record, || {
            format!("a subscriber of {id} saw {} facts of {}", known.len(), record.len())
        });
    }
}

/// Subscribes and replays earlier events.
pub(crate) async fn follow(
    stage: Arc<Stage>,
    runtime: Runtime,
    target: Target,
    subscriber: Subscriber,
    visit: Notebook,
) {
    let Ok(begins) = runtime.subscribe(&target, subscriber).await else { return };
    visit.begin(begins.ended);
    let mut place = FactCursor::above(visit.after);
    while place.above < begins.durable_seq {
        let read = runtime.portion(&target.execution_id, place, PORTION_BYTES).await;
        let Ok(Portion { facts, next }) = read else { return };
        if next.above <= place.above {
            stage.violated(&format!("{} has no facts at {place:?}", target.execution_id));
            return;
        }
        place = next;
        let upto = begins.durable_seq;
        let page = facts.into_iter();
        let page = page.filter(|it| it.seq <= upto && !events_of(&it.fact).is_empty());
        visit.received.lock().unwrap().replayed.extend(page);
    }
    visit.read_all();
}

/// Records of a visit.
pub(crate) struct Notebook {
    after: u64,
    received: Arc<Mutex<Received>>,
}

impl Notebook {
    pub(crate) fn of(follower: &Follower, visit: usize) -> Self {
        let visit = &follower.visits[visit];
        Self { after: visit.after, received: Arc::clone(&visit.received) }
    }

    pub(crate) fn begin(&self, ended: bool) {
        let begins = Begins { ended, is_replayed: false };
        self.received.lock().unwrap().begins = Some(begins);
    }

    pub(crate) fn read_all(&self) {
        if let Some(begins) = &mut self.received.lock().unwrap().begins {
            begins.is_replayed = true;
        }
    }
}
