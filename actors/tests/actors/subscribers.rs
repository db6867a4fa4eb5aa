//! Subscribers of one execution, observers of all, and an actor that panics.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use actix::{Actor, Addr, AsyncContext, Context, Handler, WrapFuture};
use greenroom_actors::domain::definition::StepDefinition;
use greenroom_actors::domain::time::Timestamp;
use greenroom_actors::observe::span::{EntityType, ObserverFilter, SpanPhase, SpanStatus};
use greenroom_actors::ports::clock::Clock;
use greenroom_actors::ports::memory::MemoryStore;
use greenroom_actors::ports::store::Status;
use greenroom_actors::requests::{EventsRecorded, Subscriber};
use greenroom_actors::testkit::{TestClock, World, pass, registry_of, start, target};
use greenroom_actors::visibility::Visibility;
use greenroom_actors::{Placement, Runtime, RuntimeLimits, RuntimePorts};
use serde_json::json;

use crate::races::facts_of;
use crate::traces::observer;
use crate::workflows::{Calls, ask, child, map, resume, retried, run, with_functions, workflow};

type Numbers = Rc<RefCell<Vec<u64>>>;

/// Collects the numbers of its events.
struct Collector {
    numbers: Numbers,
}

impl Actor for Collector {
    type Context = Context<Self>;
}

impl Handler<EventsRecorded> for Collector {
    type Result = ();

    fn handle(&mut self, message: EventsRecorded, _: &mut Self::Context) {
        let numbers = message.0.facts.iter().flat_map(|fact| fact.seq..fact.next_seq());
        self.numbers.borrow_mut().extend(numbers);
    }
}

fn collector() -> (Addr<Collector>, Subscriber, Numbers) {
    let numbers = Numbers::default();
    let address = Collector { numbers: Rc::clone(&numbers) }.start();
    let events = address.clone().recipient();
    (address, Subscriber { events, progress: None, disconnect: Arc::new(|| {}) }, numbers)
}

/// A subscriber that never reads its mailbox.
struct Stalled;

impl Actor for Stalled {
    type Context = Context<Self>;

    #[expect(clippy::disallowed_methods, reason = "a closed mailbox is what this actor is for")]
    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.wait(std::future::pending::<()>().into_actor(self));
    }
}

impl Handler<EventsRecorded> for Stalled {
    type Result = ();

    fn handle(&mut self, _: EventsRecorded, _: &mut Self::Context) {
        panic!("it read a message");
    }
}

async fn world(steps: Vec<StepDefinition>) -> World {
    let others = vec![workflow("outer", vec![child("sub", "w")]), workflow("w", steps)];
    let registry = with_functions(registry_of(others), &Calls::default());
    World::launch(registry, RuntimeLimits::default()).await
}

#[actix::test]
async fn a_subscriber_gets_every_event_once_and_keeps_the_execution_in_memory() {
    tokio::time::pause();
    let world = world(vec![ask("manager"), map("after", json!("data"))]).await;
    let (address, subscriber, numbers) = collector();
    world.runtime.stream(start("w", "e", json!({})), subscriber).await.unwrap();
    pass(Duration::from_secs(30)).await;
    assert_eq!(world.live(), 1, "it has a subscriber");

    let (_late, subscriber, late) = collector();
    let begins = world.runtime.subscribe(&target("w", "e"), subscriber).await.unwrap();
    let replayed = facts_of(&world.runtime, "e").await;
    assert_eq!(begins.durable_seq, replayed.last().unwrap().next_seq() - 1);

    world.runtime.resume(&target("w", "e"), resume(json!({ "approved": 1 }))).await.unwrap();
    pass(Duration::from_millis(1)).await;
    let all = numbers.borrow().clone();
    assert_eq!(all, (1..=all.len() as u64).collect::<Vec<_>>());
    let after: Vec<u64> = all.iter().copied().filter(|seq| *seq > begins.durable_seq).collect();
    assert_eq!(*late.borrow(), after);
    assert_eq!(world.live(), 0);

    let ended = world.runtime.subscribe(&target("w", "e"), collector().1).await.unwrap();
    assert!(ended.ended);
    drop(address);
}

#[actix::test]
async fn an_execution_without_subscribers_leaves_memory() {
    tokio::time::pause();
    let world = world(vec![ask("manager")]).await;
    let (address, subscriber, _) = collector();
    world.runtime.stream(start("w", "e", json!({})), subscriber).await.unwrap();
    pass(Duration::from_secs(60)).await;
    assert_eq!(world.live(), 1);
    address.send(Leave).await.unwrap();
    pass(Duration::from_secs(60)).await;
    assert_eq!(world.live(), 0);
}

#[derive(actix::Message)]
#[rtype(result = "()")]
struct Leave;

impl Handler<Leave> for Collector {
    type Result = ();

    fn handle(&mut self, _: Leave, ctx: &mut Self::Context) {
        actix::ActorContext::stop(ctx);
    }
}

#[actix::test]
async fn a_stalled_subscriber_is_disconnected_and_delays_no_one() {
    tokio::time::pause();
    let mut failing = retried(run("boom", "boom"), 40, 1000);
    failing.retry.as_mut().unwrap().factor = 1.0;
    let world = world(vec![failing]).await;
    let was_disconnected = Arc::new(AtomicBool::new(false));
    let disconnected = Arc::clone(&was_disconnected);
    let stalled = Stalled.start();
    let subscriber = Subscriber {
        events: stalled.clone().recipient(),
        progress: None,
        disconnect: Arc::new(move || disconnected.store(true, Ordering::SeqCst)),
    };
    world.runtime.stream(start("w", "e", json!({})), subscriber).await.unwrap();
    pass(Duration::from_secs(15)).await;
    assert!(
        !was_disconnected.load(Ordering::SeqCst),
        "its mailbox has been full for less than 10 s"
    );
    pass(Duration::from_secs(15)).await;
    assert!(was_disconnected.load(Ordering::SeqCst));
    pass(Duration::from_secs(15)).await;
    let state = world.runtime.describe(&target("w", "e")).await.unwrap();
    assert_eq!(state.steps[0].attempts, 40);
    drop(stalled);
}

#[actix::test]
async fn observers_get_the_spans_of_their_roots_with_those_of_children() {
    tokio::time::pause();
    let flaky = retried(run("flaky", "flaky"), 3, 1);
    let world = world(vec![flaky, map("after", json!("data"))]).await;
    let mut observed = Vec::new();
    for id in ["outer", "w", "other"] {
        let filter = ObserverFilter {
            entity_type: Some(EntityType::Workflow),
            entity_id: Some(id.to_owned()),
            visibility: Visibility::Everything,
        };
        let (observer, spans) = observer(filter);
        world.runtime.observe(observer).await;
        observed.push(spans);
    }
    world.runtime.execute(start("outer", "o", json!({}))).await.unwrap();
    pass(Duration::from_millis(1)).await;

    let seen = observed[0].borrow().clone();
    for event in &seen {
        assert_eq!(event.span.end.is_some(), event.phase == SpanPhase::Ended);
        if let SpanStatus::Error(message) = &event.span.status {
            assert_eq!(&**message, "not yet");
        }
    }
    let count = |phase, name: &str| {
        seen.iter().filter(|event| event.phase == phase && event.span.name() == name).count()
    };
    for (name, times) in [
        ("invoke_workflow outer", 1),
        ("step sub", 1),
        ("invoke_workflow w", 1),
        ("step flaky", 3),
        ("step after", 1),
    ] {
        assert_eq!(count(SpanPhase::Started, name), times, "starts of {name}");
        assert_eq!(count(SpanPhase::Ended, name), times, "ends of {name}");
    }
    let span = |name: &str| &seen.iter().find(|event| event.span.name() == name).unwrap().span;
    let (id_of, parent_of) = (|name: &str| span(name).id, |name: &str| span(name).parent);
    assert_eq!(parent_of("invoke_workflow outer"), None);
    assert_eq!(parent_of("step sub"), Some(id_of("invoke_workflow outer")));
    assert_eq!(parent_of("invoke_workflow w"), Some(id_of("step sub")));
    assert_eq!(parent_of("step flaky"), Some(id_of("invoke_workflow w")));
    let of_w = observed[1].borrow();
    assert!(of_w.iter().all(|event| event.span.name() != "invoke_workflow outer"), "w alone");
    assert!(observed[2].borrow().is_empty());
}

/// Panics in a given number of its next calls, in the middle of a handler.
pub(crate) struct BrokenClock {
    sound: TestClock,
    panics: AtomicUsize,
}

impl BrokenClock {
    pub(crate) fn over(sound: TestClock) -> Self {
        Self { sound, panics: AtomicUsize::new(0) }
    }

    pub(crate) fn panic_in_the_next(&self, calls: usize) {
        self.panics.store(calls, Ordering::SeqCst);
    }
}

impl Clock for BrokenClock {
    fn now(&self) -> Timestamp {
        let panics = self.panics.load(Ordering::SeqCst);
        if panics > 0 {
            self.panics.store(panics - 1, Ordering::SeqCst);
            panic!("the clock is broken");
        }
        self.sound.now()
    }

    fn new_id(&self) -> Arc<str> {
        self.sound.new_id()
    }
}

#[actix::test]
async fn a_panicking_actor_is_rebuilt_and_finally_its_execution_fails() {
    tokio::time::pause();
    for (panics, status) in [(1, Status::Suspended), (4, Status::Error)] {
        let registry = registry_of([workflow("w", vec![ask("manager")])]);
        let clock = Arc::new(BrokenClock::over(TestClock::new()));
        let limits = RuntimeLimits { placement: Placement::Here, ..RuntimeLimits::default() };
        let store = Arc::new(MemoryStore::new());
        let runtime =
            Runtime::launch(registry, RuntimePorts::new(store, Arc::clone(&clock) as _), limits)
                .await
                .unwrap();
        runtime.execute(start("w", "e", json!({}))).await.unwrap();
        clock.panic_in_the_next(panics);

        // The panic loses the answer to this caller; nothing was recorded.
        let lost = runtime.resume(&target("w", "e"), resume(json!({ "approved": 1 }))).await;
        assert!(lost.is_err(), "{lost:?}");
        pass(Duration::from_millis(1)).await;
        let state = runtime.describe(&target("w", "e")).await.unwrap();
        assert_eq!(state.status, status, "after {panics} panics");
        match state.error {
            Some(error) => {
                assert_eq!(&*error.message, "the execution's actor failed more than 3 times");
            }
            None => {
                let data = json!({ "approved": 1 });
                let outcome = runtime.resume(&target("w", "e"), resume(data)).await.unwrap();
                assert_eq!(outcome.status(), Status::Completed);
            }
        }
    }
}
