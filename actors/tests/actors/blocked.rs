//! A step that blocks its thread is counted, by a time that no clock sets: that of the runtime, which is
//! paused.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use greenroom_actors::domain::fact::Recorded;
use greenroom_actors::domain::time::Timestamp;
use greenroom_actors::ports::clock::Clock;
use greenroom_actors::ports::memory::MemoryStore;
use greenroom_actors::ports::meter::Meter;
use greenroom_actors::ports::store::{GenerationRecord, GenerationStep, Header, Status};
use greenroom_actors::testkit::{TestClock, registry_of, start};
use greenroom_actors::{Placement, Runtime, RuntimeLimits, RuntimePorts};
use serde_json::json;

use crate::workflows::{function, run, workflow};

/// A clock that stands still.
struct StoppedClock(TestClock);

impl Clock for StoppedClock {
    fn now(&self) -> Timestamp {
        Timestamp(1_000_000)
    }

    fn new_id(&self) -> Arc<str> {
        self.0.new_id()
    }
}

/// Collects the steps that blocked their thread, and for how long.
#[derive(Default)]
struct Blocked(Mutex<Vec<(String, Duration)>>);

impl Meter for Blocked {
    fn recorded(&self, _: &Header, _: &[Recorded]) {}

    fn waited(&self, _: &Header, _: Duration) {}

    fn blocked(&self, header: &Header, path: &str, held: Duration) {
        self.0.lock().unwrap().push((format!("{}/{path}", header.workflow_id), held));
    }

    fn timer_fired(&self, _: Duration) {}

    fn generation_ended(
        &self,
        _: &GenerationRecord,
        _: &mut dyn Iterator<Item = &GenerationStep>,
        _: Option<Duration>,
    ) {
    }

    fn met_defect(&self) {}
}

#[actix::test]
async fn a_step_that_blocks_its_thread_is_reported() {
    tokio::time::pause();
    let steps = ["short", "long", "awaits"].map(|name| run(name, name));
    let mut registry = registry_of([workflow("w", steps.to_vec())]);
    // duration of each poll of the body; a body that awaits frees the thread in between
    for (name, polls) in [("short", [99, 0]), ("long", [100, 0]), ("awaits", [99, 250])] {
        let body = function(move |_| async move {
            for takes_ms in polls {
                // within one poll
                tokio::time::advance(Duration::from_millis(takes_ms)).await;
            }
            Ok(json!(name).into())
        });
        registry.functions.insert(name.to_owned(), body);
    }
    let blocked = Arc::new(Blocked::default());
    let mut ports =
        RuntimePorts::new(Arc::new(MemoryStore::new()), Arc::new(StoppedClock(TestClock::new())));
    ports.meter = Arc::clone(&blocked) as _;
    let limits = RuntimeLimits { placement: Placement::Here, ..RuntimeLimits::default() };
    let runtime = Runtime::launch(registry, ports, limits).await.unwrap();
    let outcome = runtime.execute(start("w", "e", json!({}))).await.unwrap();
    assert_eq!(outcome.status(), Status::Completed, "{:?}", outcome.failure());
    let reported = blocked.0.lock().unwrap().clone();
    let ms = Duration::from_millis;
    assert_eq!(reported, [("w/long".to_owned(), ms(100)), ("w/awaits".to_owned(), ms(250))]);
}
