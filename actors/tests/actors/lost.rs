//! Subscribers of an execution whose actor is lost: they read what they have missed, and subscribe
//! again at once.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use actix::fut::ActorFutureExt;
use actix::{Actor, ActorContext, AsyncContext, Context, Handler, WrapFuture};
use greenroom_actors::domain::ids::ExecutionId;
use greenroom_actors::domain::slot::{SlotSet, slot_of};
use greenroom_actors::function::{StepContext, StepFunction};
use greenroom_actors::observe::forgotten::Forgotten;
use greenroom_actors::ports::memory::MemoryStore;
use greenroom_actors::ports::store::{FactCursor, Status};
use greenroom_actors::requests::{EventsRecorded, StepProgressed, Subscriber};
use greenroom_actors::testkit::{TestClock, World, pass, registry_of, start, target};
use greenroom_actors::{Placement, Runtime, RuntimeLimits, RuntimePorts};
use serde_json::json;

use crate::races::facts_of;
use crate::subscribers::BrokenClock;
use crate::workflows::{all, ask, map, resume, run, sleep, workflow};

/// Long enough for everything that waits for nothing.
const AT_ONCE: Duration = Duration::from_millis(1);

/// A reader as an event stream is: it reads the record up to the place where it has subscribed,
/// and live events from there on.
struct Reader {
    runtime: Runtime,
    seen: Rc<RefCell<Seen>>,
}

#[derive(Default)]
struct Seen {
    numbers: Vec<u64>,
    subscriptions: usize,
    has_ended: bool,
}

impl Seen {
    fn after(&self) -> u64 {
        self.numbers.last().copied().unwrap_or(0)
    }
}

impl Reader {
    fn follow(runtime: &Runtime) -> Rc<RefCell<Seen>> {
        let seen = Rc::<RefCell<Seen>>::default();
        Self { runtime: runtime.clone(), seen: Rc::clone(&seen) }.start();
        seen
    }

    #[expect(clippy::disallowed_methods, reason = "live events wait until the record is read")]
    fn subscribe(&mut self, ctx: &mut Context<Self>) {
        let subscriber = Subscriber {
            events: ctx.address().recipient(),
            progress: Some(ctx.address().recipient()),
            disconnect: Arc::new(|| {}),
        };
        let (runtime, after) = (self.runtime.clone(), self.seen.borrow().after());
        let subscribing = async move {
            let begins = runtime.subscribe(&target("w", "e"), subscriber).await.unwrap();
            let id = ExecutionId::trusted("e");
            let missed = runtime.portion(&id, FactCursor::above(after), usize::MAX).await.unwrap();
            (begins, missed.facts)
        };
        ctx.wait(subscribing.into_actor(self).map(|(begins, missed), reader, ctx| {
            reader.seen.borrow_mut().subscriptions += 1;
            for fact in missed.iter().filter(|fact| fact.seq <= begins.durable_seq) {
                reader.take(fact.seq..fact.next_seq());
            }
            if begins.ended {
                reader.seen.borrow_mut().has_ended = true;
                ctx.stop();
            } else {
                let lost = Forgotten::default();
                ctx.spawn(lost.map(|(), reader: &mut Self, ctx| reader.subscribe(ctx)));
            }
        }));
    }

    fn take(&self, numbers: impl Iterator<Item = u64>) {
        let mut seen = self.seen.borrow_mut();
        let after = seen.after();
        seen.numbers.extend(numbers.filter(|number| *number > after));
    }
}

impl Actor for Reader {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        self.subscribe(ctx);
    }
}

impl Handler<EventsRecorded> for Reader {
    type Result = ();

    fn handle(&mut self, message: EventsRecorded, _: &mut Self::Context) {
        for fact in message.0.facts.iter() {
            self.take(fact.seq..fact.next_seq());
        }
    }
}

impl Handler<StepProgressed> for Reader {
    type Result = ();

    fn handle(&mut self, _: StepProgressed, _: &mut Self::Context) {}
}

/// Asserts that a reader has seen every event once, in order.
async fn assert_complete(runtime: &Runtime, seen: &RefCell<Seen>, subscriptions: usize) {
    let facts = facts_of(runtime, "e").await;
    let last = facts.last().unwrap().next_seq() - 1;
    let seen = seen.borrow();
    assert_eq!(seen.numbers, (1..=last).collect::<Vec<_>>());
    assert_eq!((seen.subscriptions, seen.has_ended), (subscriptions, true));
}

/// The function of the other branch has sent progress, and keeps its sender.
#[actix::test]
async fn readers_continue_after_a_panic_without_waiting() {
    tokio::time::pause();
    let held = Arc::new(Mutex::new(Vec::<StepContext>::new()));
    let keep = Arc::clone(&held);
    let holds: StepFunction = Arc::new(move |context| {
        keep.lock().unwrap().push(context);
        Box::pin(std::future::pending())
    });
    let later = vec![sleep("nap", 10), run("held", "holds")];
    let both = all("both", vec![("q", vec![ask("manager")]), ("r", later)]);
    let mut registry = registry_of([workflow("w", vec![both])]);
    registry.functions.insert("holds".to_owned(), holds);
    let clock = Arc::new(BrokenClock::over(TestClock::new()));
    let limits = RuntimeLimits { placement: Placement::Here, ..RuntimeLimits::default() };
    let ports = RuntimePorts::new(Arc::new(MemoryStore::new()), Arc::clone(&clock) as _);
    let runtime = Runtime::launch(registry, ports, limits).await.unwrap();
    let (starting, target) = (runtime.clone(), target("w", "e"));
    actix::spawn(async move { starting.execute(start("w", "e", json!({}))).await });
    pass(AT_ONCE).await;
    let seen = Reader::follow(&runtime);
    pass(Duration::from_millis(20)).await;
    assert!(held.lock().unwrap()[0].progress(json!("it works")));
    pass(AT_ONCE).await;

    clock.panic_in_the_next(1);
    let lost = runtime.resume(&target, resume(json!({ "approved": 1 }))).await;
    assert!(lost.is_err(), "{lost:?}");
    pass(AT_ONCE).await;
    assert_eq!(seen.borrow().subscriptions, 2, "it has subscribed again");
    assert_eq!(held.lock().unwrap().len(), 2, "the execution continues");
    runtime.cancel(&target, None, None).await.unwrap();
    pass(AT_ONCE).await;
    assert_complete(&runtime, &seen, 3).await;
}

#[actix::test]
async fn readers_continue_after_a_refused_append_without_waiting() {
    tokio::time::pause();
    let registry = registry_of([workflow("w", vec![sleep("nap", 1000), map("z", json!(1))])]);
    let world = World::launch(registry, RuntimeLimits::default()).await;
    let runtime = world.runtime.clone();
    actix::spawn(async move { runtime.execute(start("w", "e", json!({}))).await });
    pass(AT_ONCE).await;
    let seen = Reader::follow(&world.runtime);
    pass(Duration::from_millis(990)).await;
    world.store.set_writable(false);
    pass(Duration::from_millis(20)).await;
    assert_eq!(seen.borrow().subscriptions, 2, "it has subscribed again");
    world.store.set_writable(true);
    // the timer is in the store, which is asked for it from time to time
    pass(Duration::from_secs(60)).await;
    assert_complete(&world.runtime, &seen, 3).await;
}

#[actix::test]
async fn readers_continue_when_an_execution_is_owned_again() {
    tokio::time::pause();
    let registry = registry_of([workflow("w", vec![ask("manager"), map("z", json!(1))])]);
    let world = World::launch(registry, RuntimeLimits::default()).await;
    world.runtime.execute(start("w", "e", json!({}))).await.unwrap();
    let seen = Reader::follow(&world.runtime);
    pass(AT_ONCE).await;
    world.store.set_lost([slot_of(&ExecutionId::trusted("e"))].into_iter().collect());
    let data = || resume(json!({ "approved": 1 }));
    assert!(world.runtime.resume(&target("w", "e"), data()).await.is_err());
    pass(AT_ONCE).await;
    assert_eq!(seen.borrow().subscriptions, 2, "it has subscribed again");
    world.store.set_lost(SlotSet::new());
    let outcome = world.runtime.resume(&target("w", "e"), data()).await.unwrap();
    assert_eq!(outcome.status(), Status::Completed);
    pass(AT_ONCE).await;
    assert_complete(&world.runtime, &seen, 3).await;
}

#[actix::test]
async fn an_idle_execution_is_not_lost_while_it_has_readers() {
    tokio::time::pause();
    let registry = registry_of([workflow("w", vec![ask("manager")])]);
    let world = World::launch(registry, RuntimeLimits::default()).await;
    world.runtime.execute(start("w", "e", json!({}))).await.unwrap();
    let seen = Reader::follow(&world.runtime);
    pass(Duration::from_secs(3600)).await;
    assert_eq!((seen.borrow().subscriptions, world.live()), (1, 1));
}
