//! Generations that end while nothing works on them: their spans, and how long they worked.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use greenroom_actors::agent::generation::GenerationRequest;
use greenroom_actors::domain::fact::Recorded;
use greenroom_actors::observe::span::{AttributeValue, ObserverFilter, SpanStatus};
use greenroom_actors::ports::memory::MemoryStore;
use greenroom_actors::ports::meter::Meter;
use greenroom_actors::ports::model::scripted::ScriptedModel;
use greenroom_actors::ports::store::{AskFilter, GenerationRecord, GenerationStep, Header};
use greenroom_actors::testkit::{TestClock, World, pass};
use greenroom_actors::visibility::Visibility;
use greenroom_actors::{Placement, Runtime, RuntimeLimits, RuntimePorts};
use serde_json::json;

use crate::approvals::{
    Effects, calls, decision, guarded, open_asks, over_100, registry, request, text,
};
use crate::approved_runs::{slow, with_boss};
use crate::traces::{agree, observer};

const HOUR: Duration = Duration::from_secs(3_600);

/// Agent, number of turns and seconds worked of generations that have ended.
#[derive(Default)]
struct Ends(Mutex<Vec<(String, usize, Option<u64>)>>);

impl Meter for Ends {
    fn recorded(&self, _: &Header, _: &[Recorded]) {}

    fn waited(&self, _: &Header, _: Duration) {}

    fn blocked(&self, _: &Header, _: &str, _: Duration) {}

    fn timer_fired(&self, _: Duration) {}

    fn generation_ended(
        &self,
        record: &GenerationRecord,
        turns: &mut dyn Iterator<Item = &GenerationStep>,
        worked: Option<Duration>,
    ) {
        let seconds = worked.map(|it| it.as_secs());
        self.0.lock().unwrap().push((record.agent_id.clone(), turns.count(), seconds));
    }

    fn met_defect(&self) {}
}

#[actix::test]
async fn a_generation_that_is_cancelled_while_it_waits_ends_its_spans_and_those_of_its_child() {
    tokio::time::pause();
    let script = [
        calls(&[("d1", "delegate_task", json!({ "agent": "desk", "task": "refund" }))]),
        calls(&[("c1", "refund", json!({ "amount": 500 }))]),
    ];
    let model = ScriptedModel::local(script);
    let tool = guarded(&Effects::default(), over_100());
    let (observer, observed) = observer(ObserverFilter::default());
    let registry = with_boss(registry(&model, vec![tool]));
    let world = World::launch_observed(registry, RuntimeLimits::default(), vec![observer]).await;
    let asked = GenerationRequest { agent_id: "boss".to_owned(), ..request() };
    let waiting = world.runtime.generate(asked).await.unwrap();
    pass(HOUR).await;
    let all = &Visibility::Everything;
    world.runtime.cancel_generation("boss", &waiting.id, all).await.unwrap();
    let view = agree(&world, &observed, "cancelled while it waits").await;
    let ended: Vec<_> = view.spans.iter().filter(|span| span.end.is_some()).collect();
    assert_eq!(ended.len(), view.spans.len(), "all have ended");
    let agents: Vec<_> = ended.iter().map(|span| span.name()).collect();
    for agent in ["invoke_agent boss", "invoke_agent desk"] {
        assert!(agents.iter().any(|name| name == agent), "{agents:?}");
    }
}

/// Returns the ends of a generation that works for ten seconds and waits for an hour.
async fn ends_of(decided: bool) -> Vec<(String, usize, Option<u64>)> {
    let script = [
        calls(&[("s1", "slow", json!({})), ("c1", "refund", json!({ "amount": 500 }))]),
        text("done"),
    ];
    let model = ScriptedModel::local(script);
    let tools = vec![guarded(&Effects::default(), over_100()), slow(&Effects::default())];
    let ends = Arc::new(Ends::default());
    let clock = Arc::new(TestClock::new());
    let mut ports = RuntimePorts::new(Arc::new(MemoryStore::new()), clock);
    ports.meter = Arc::clone(&ends) as _;
    let limits = RuntimeLimits { placement: Placement::Here, ..RuntimeLimits::default() };
    let runtime = Runtime::launch(registry(&model, tools), ports, limits).await.unwrap();
    let waiting = runtime.generate(request()).await.unwrap();
    pass(HOUR).await;
    if decided {
        let filter = AskFilter { is_open: true, ..AskFilter::default() };
        let open = runtime.inbox(&filter, None, 1).await.unwrap().asks.remove(0);
        runtime.answer_ask(open, decision(json!({ "approved": true }))).await.unwrap();
    } else {
        let all = &Visibility::Everything;
        runtime.cancel_generation("desk", &waiting.id, all).await.unwrap();
    }
    pass(Duration::from_secs(1)).await;
    ends.0.lock().unwrap().clone()
}

#[actix::test]
async fn the_time_that_a_generation_waits_for_people_is_not_measured() {
    tokio::time::pause();
    let worked = Some(10);
    assert_eq!(ends_of(true).await, [("desk".to_owned(), 2, worked)], "answered");
    assert_eq!(ends_of(false).await, [("desk".to_owned(), 1, worked)], "put away");
}

#[actix::test]
async fn a_refused_call_is_no_error_of_its_span() {
    tokio::time::pause();
    let script = [calls(&[("c1", "refund", json!({ "amount": 500 }))]), text("done")];
    let model = ScriptedModel::local(script);
    let (observer, observed) = observer(ObserverFilter::default());
    let registry = registry(&model, vec![guarded(&Effects::default(), over_100())]);
    let world = World::launch_observed(registry, RuntimeLimits::default(), vec![observer]).await;
    world.runtime.generate(request()).await.unwrap();
    let open = open_asks(&world).await.remove(0);
    world.runtime.answer_ask(open, decision(json!({ "approved": false }))).await.unwrap();
    pass(Duration::from_secs(1)).await;
    let view = agree(&world, &observed, "refused").await;
    let tool = view.spans.iter().find(|span| span.name() == "execute_tool refund").unwrap();
    assert_eq!(tool.status, SpanStatus::Ok);
    let denied = ("greenroom.tool.call.denied", AttributeValue::Bool(true));
    assert!(tool.attributes(false).contains(&denied), "{:?}", tool.attributes(false));
}
