//! Progress of steps that run at another process than the one that is asked for it.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use actix::{Actor, Addr, Context, Handler};
use greenroom_actors::agent::AgentDefinition;
use greenroom_actors::agent::generation::GenerationEvent;
use greenroom_actors::domain::event::events_of;
use greenroom_actors::ports::store::Status;
use greenroom_actors::requests::{EventsRecorded, ProgressEvent, StepProgressed, Subscriber};
use greenroom_actors::testkit::{pass, registry_of, start};
use serde_json::json;

use crate::agents::{Model, agent, text};
use crate::cluster::owned_by_other;
use crate::processes::{Cluster, target};
use crate::workflows::{add_agent, workflow};

/// Collects the kinds of events, and the texts of progress, in order.
struct Reader(Rc<RefCell<Vec<String>>>);

impl Actor for Reader {
    type Context = Context<Self>;
}

impl Handler<EventsRecorded> for Reader {
    type Result = ();

    fn handle(&mut self, message: EventsRecorded, _: &mut Self::Context) {
        let kinds = message.0.facts.iter().flat_map(|recorded| events_of(&recorded.fact));
        self.0.borrow_mut().extend(kinds.map(|kind| format!("{kind:?}")));
    }
}

impl Handler<StepProgressed> for Reader {
    type Result = ();

    fn handle(&mut self, StepProgressed(batch): StepProgressed, _: &mut Self::Context) {
        assert_eq!(&*batch.path, "a");
        let deltas = batch.events().filter_map(|event| match event {
            ProgressEvent::Agent(GenerationEvent::TextDelta { delta, .. }) => Some(delta.clone()),
            _ => None,
        });
        self.0.borrow_mut().extend(deltas);
    }
}

fn reader(wants_progress: bool) -> (Addr<Reader>, Subscriber, Rc<RefCell<Vec<String>>>) {
    let seen = Rc::<RefCell<Vec<String>>>::default();
    let address = Reader(Rc::clone(&seen)).start();
    let progress = wants_progress.then(|| address.clone().recipient());
    let events = address.clone().recipient();
    (address, Subscriber { events, progress, disconnect: Arc::new(|| {}) }, seen)
}

fn cluster(model: &Model) -> Cluster {
    let mut registry = registry_of([workflow("w", vec![agent("a")])]);
    add_agent(&mut registry, "helper", model.clone(), AgentDefinition::default());
    Cluster::linked_with(registry)
}

#[actix::test]
async fn progress_of_a_step_at_another_process_comes_between_its_events() {
    let cluster = cluster(&Model::new([text("one two three"), text("one two three")]));
    let [first, second] = cluster.of(["a", "b"]).await;
    for is_late in [false, true] {
        let id = owned_by_other(&second, &format!("late-{is_late}"));
        let (_reader, subscriber, seen) = reader(true);
        let request = start("w", id.as_str(), json!({}));
        if is_late {
            let runtime = first.runtime.clone();
            actix::spawn(async move { runtime.execute(request).await });
            pass(Duration::from_millis(5)).await;
            second.runtime.subscribe(&target("w", &id), subscriber).await.unwrap();
        } else {
            second.runtime.stream(request, subscriber).await.unwrap();
        }
        pass(Duration::from_secs(2)).await;
        assert_eq!(cluster.status(&id).await, Status::Completed);
        let seen = seen.borrow().clone();
        let from = seen.iter().position(|it| it == "StepStart").map_or(0, |at| at + 1);
        let to = seen.iter().position(|it| it == "StepComplete").unwrap();
        let expected: &[&str] = if is_late { &[] } else { &["one ", "two ", "three"] };
        assert_eq!(seen[from..to], *expected, "late: {is_late}: {seen:?}");
    }
}

#[actix::test]
async fn without_a_reader_of_progress_at_any_process_there_is_none() {
    let model = Model::new([text("hi"), text("hi")]);
    let cluster = cluster(&model);
    let [_first, second] = cluster.of(["a", "b"]).await;
    for (wants_progress, streamed) in [(false, 0), (true, 1)] {
        let id = owned_by_other(&second, &format!("wanted-{wants_progress}"));
        let (_reader, subscriber, seen) = reader(wants_progress);
        second.runtime.stream(start("w", id.as_str(), json!({})), subscriber).await.unwrap();
        pass(Duration::from_secs(1)).await;
        assert!(seen.borrow().iter().any(|it| it == "StepComplete"));
        assert_eq!(model.streamed.load(Ordering::SeqCst), streamed, "wanted: {wants_progress}");
    }
}
