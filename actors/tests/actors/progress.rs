//! Progress of agents, and its subscribers.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use actix::{Actor, Addr, Context, Handler};
use greenroom_actors::agent::generation::GenerationEvent;
use greenroom_actors::domain::event::events_of;
use greenroom_actors::ports::store::Status;
use greenroom_actors::requests::{EventsRecorded, ProgressEvent, StepProgressed, Subscriber};
use greenroom_actors::testkit::{pass, start, target};
use serde_json::{Value, json};

use crate::agents::{Model, agent, status, text, world};
use crate::workflows::{all, sleep};

pub(crate) type Events = Rc<RefCell<Vec<(String, String)>>>;

/// Collects the path and the kind of every event, in order.
pub(crate) struct Collector(Events);

impl Actor for Collector {
    type Context = Context<Self>;
}

impl Handler<EventsRecorded> for Collector {
    type Result = ();

    fn handle(&mut self, message: EventsRecorded, _: &mut Self::Context) {
        for recorded in message.0.facts.iter() {
            let fact = serde_json::to_value(&recorded.fact).unwrap();
            let path = fact.as_object().and_then(|fact| fact.values().next()?.get("path"));
            let path = path.and_then(Value::as_str).unwrap_or_default().to_owned();
            let kinds = events_of(&recorded.fact).iter().map(|kind| format!("{kind:?}"));
            self.0.borrow_mut().extend(kinds.map(|kind| (path.clone(), kind)));
        }
    }
}

impl Handler<StepProgressed> for Collector {
    type Result = ();

    fn handle(&mut self, StepProgressed(batch): StepProgressed, _: &mut Self::Context) {
        assert_eq!(batch.execution_id.as_str(), "e");
        for event in batch.events() {
            let shown = match event {
                ProgressEvent::Agent(GenerationEvent::TextDelta { delta, .. }) => {
                    format!("+{delta}")
                }
                ProgressEvent::Function(event) => format!("!{event}"),
                ProgressEvent::Agent(other) => format!("~{other:?}"),
            };
            self.0.borrow_mut().push((batch.path.to_string(), shown));
        }
    }
}

pub(crate) fn collector() -> (Addr<Collector>, Subscriber, Events) {
    let events = Events::default();
    let address = Collector(Rc::clone(&events)).start();
    let subscriber = Subscriber {
        events: address.clone().recipient(),
        progress: Some(address.clone().recipient()),
        disconnect: Arc::new(|| {}),
    };
    (address, subscriber, events)
}

/// Returns the events of a path.
fn of(events: &Events, path: &str) -> Vec<String> {
    let all = events.borrow();
    all.iter().filter(|(at, _)| at == path).map(|(_, what)| what.clone()).collect()
}

#[actix::test]
async fn subscribers_get_the_progress_of_agents_between_start_and_end_of_their_steps() {
    tokio::time::pause();
    let model = Model::new([text("one two three"), text("a b c")]);
    let both = all("both", vec![("x", vec![agent("a")]), ("y", vec![agent("b")])]);
    let world = world(&model, vec![both, sleep("nap", 1000)]).await;
    let (_address, subscriber, events) = collector();
    world.runtime.stream(start("w", "e", json!({})), subscriber).await.unwrap();
    pass(Duration::from_millis(500)).await;

    for (path, words) in [("both/x/a", ["one ", "two ", "three"]), ("both/y/b", ["a ", "b ", "c"])]
    {
        let events = of(&events, path);
        assert_eq!(events.first().unwrap(), "StepStart", "{events:#?}");
        assert_eq!(events.last().unwrap(), "StepComplete", "{events:#?}");
        let deltas: Vec<_> = events.iter().filter_map(|what| what.strip_prefix('+')).collect();
        assert_eq!(deltas, words);
        assert!(events[1].starts_with("~Start"), "{events:#?}");
        assert!(events[events.len() - 2].starts_with("~Finish"), "{events:#?}");
    }

    let (_late, subscriber, late) = collector();
    world.runtime.subscribe(&target("w", "e"), subscriber).await.unwrap();
    pass(Duration::from_secs(2)).await;
    assert!(late.borrow().iter().all(|(_, what)| !what.starts_with(['+', '~'])), "{late:?}");
    assert_eq!(status(&world).await, Status::Completed);
}

#[actix::test]
async fn no_progress_of_a_step_is_published_after_its_end() {
    tokio::time::pause();
    let model = Model::new([text(&"word ".repeat(100))]);
    let world = world(&model, vec![agent("a")]).await;
    let (_address, subscriber, events) = collector();
    world.runtime.stream(start("w", "e", json!({})), subscriber).await.unwrap();
    pass(Duration::from_millis(300)).await;
    world.runtime.cancel(&target("w", "e"), None, None).await.unwrap();
    pass(Duration::from_secs(2)).await;
    let events = of(&events, "a");
    assert!(events.iter().any(|what| what.starts_with('+')), "{events:#?}");
    assert_eq!(events.last().unwrap(), "StepCancelled");
}

#[actix::test]
async fn without_a_subscriber_the_model_is_asked_for_whole_answers() {
    tokio::time::pause();
    for (is_read, streamed) in [(false, 0), (true, 1)] {
        let model = Model::new([text("hi")]);
        let world = world(&model, vec![agent("a")]).await;
        let (_address, subscriber, _) = collector();
        let subscriber =
            Subscriber { progress: subscriber.progress.filter(|_| is_read), ..subscriber };
        world.runtime.stream(start("w", "e", json!({})), subscriber).await.unwrap();
        pass(Duration::from_secs(1)).await;
        assert_eq!(status(&world).await, Status::Completed);
        assert_eq!(model.streamed.load(Ordering::SeqCst), streamed, "is_read: {is_read}");
    }
}
