//! Registrations that follow one another.

use futures_util::StreamExt;
use greenroom_actors::ports::clock::SystemClock;
use greenroom_actors::ports::memory::MemoryStore;
use greenroom_actors::requests::{StartExecution, TraceOrigin};
use greenroom_actors::sight::Sight;
use greenroom_actors::span::EntityType;
use greenroom_actors::{RuntimeLimits, RuntimePorts};
use serde_json::{Value, json};

use super::*;
use crate::web::outbox::{Limits, Out, OutboxReader};
use crate::web::tests::registry;

async fn runtime() -> Arc<Runtime> {
    let (store, clock) = (Arc::new(MemoryStore::default()), Arc::new(SystemClock));
    Arc::new(
        Runtime::launch(registry(), RuntimePorts::new(store, clock), RuntimeLimits::default())
            .await
            .unwrap(),
    )
}

fn observe(workflow: &str) -> Observe {
    let entity_id = Some(workflow.to_owned());
    let entity_type = Some(EntityType::Workflow);
    let filter = ObserverFilter { entity_type, entity_id, sight: Sight::Everything };
    Observe { filter, word: Word::Subscribed }
}

async fn execute(runtime: &Runtime, workflow: &str) {
    let request = StartExecution {
        workflow_id: workflow.to_owned(),
        execution_id: None,
        input: json!({ "n": 1 }),
        user_id: None,
        conversation_id: None,
        context: serde_json::Map::new(),
        idempotency: None,
        trace: TraceOrigin::New,
    };
    runtime.execute(request).await.unwrap();
}

async fn next(frames: &mut OutboxReader<ByteString>) -> Value {
    let next = tokio::time::timeout(Duration::from_secs(2), frames.next()).await;
    let Some(Out::Item(frame)) = next.expect("silence") else { panic!("no frame") };
    serde_json::from_str(&frame).unwrap()
}

#[actix_web::test]
async fn a_new_filter_takes_hold_although_the_mailbox_is_full() {
    let runtime = runtime().await;
    let outbox = Outbox::new(Limits { events: 10_000, bytes: 1 << 20 });
    let mut frames = outbox.reader(|| ());
    let relay =
        Relay::launch(Arc::clone(&runtime), outbox, Arc::new(|| ()), Duration::from_secs(5));
    relay.send(observe("noop")).await.unwrap();
    assert_eq!(next(&mut frames).await["type"], "SUBSCRIPTION_SUCCESS");

    relay.send(observe("approval")).await.unwrap();
    while relay.try_send(SpansObserved { spans: Arc::new([]), missed: 0 }).is_ok() {}
    // The runtime answers now, while this thread does nothing.
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!(next(&mut frames).await["type"], "SUBSCRIPTION_SUCCESS");
    execute(&runtime, "noop").await;
    execute(&runtime, "approval").await;
    let event = next(&mut frames).await;
    assert_eq!(event["data"]["span"]["attributes"]["entity.id"], "approval", "{event}");
}
