//! Spans of a run, live and from its record.

use crate::domain::message::ToolCall;
use std::collections::{HashMap, HashSet};

use crate::observe::span::{
    Observer, ObserverFilter, SpanEvent, SpanPhase, SpanStatus, SpansObserved,
};
use crate::observe::trace::generation::spans_of_entry;
use crate::ports::meter::Meter;
use crate::ports::model::scripted::ScriptedPiece;
use crate::ports::model::{ModelError, ModelErrorKind, ModelEvent};
use crate::ports::store::{GenerationStep, Generations as _};
use crate::testkit::TestClock;

use super::*;

/// Records observed spans.
#[derive(Default, Clone)]
struct Watcher(Arc<Mutex<Vec<SpanEvent>>>);

impl actix::Actor for Watcher {
    type Context = actix::Context<Self>;
}

impl actix::Handler<SpansObserved> for Watcher {
    type Result = ();

    fn handle(&mut self, SpansObserved { spans, .. }: SpansObserved, _: &mut Self::Context) {
        self.0.lock().unwrap().extend(spans.iter().cloned());
    }
}

/// Records the ends of generations: ids and number of turns.
#[derive(Default)]
struct Ends(Mutex<Vec<(String, usize)>>);

impl Meter for Ends {
    fn recorded(&self, _: &crate::ports::store::Header, _: &[crate::domain::fact::Recorded]) {}

    fn blocked(&self, _: &crate::ports::store::Header, _: &str, _: Duration) {}

    fn waited(&self, _: &crate::ports::store::Header, _: Duration) {}

    fn timer_fired(&self, _: Duration) {}

    fn generation_ended(
        &self,
        record: &GenerationRecord,
        turns: &mut dyn Iterator<Item = &GenerationStep>,
        worked: Option<Duration>,
    ) {
        assert!(worked.is_some());
        assert!(record.end_time.is_some());
        self.0.lock().unwrap().push((record.id.clone(), turns.count()));
    }

    fn met_defect(&self) {}
}

/// Formats a span without its owner, which changes during the run.
fn shown(SpanEvent { span, .. }: &SpanEvent) -> String {
    let attributes = span.attributes(true);
    let of = |span: &crate::observe::span::Span| (span.id, span.parent, span.start, span.end);
    format!("{} {:?} {:?} {attributes:?}", span.name(), of(span), span.status)
}

fn of_phase(events: &[SpanEvent], phase: SpanPhase) -> Vec<String> {
    let of_phase = events.iter().filter(|event| event.phase == phase);
    let mut lines: Vec<String> = match phase {
        SpanPhase::Ended => of_phase.map(shown).collect(),
        SpanPhase::Started => of_phase
            .map(|SpanEvent { span, .. }| {
                format!("{:?} {:?} {:?}", span.id, span.parent, span.start)
            })
            .collect(),
    };
    lines.sort();
    lines
}

/// Checks that a parent starts before and ends after its children.
fn check_order(name: &str, events: &[SpanEvent]) {
    let place = |phase, id| {
        let is_it = |event: &SpanEvent| event.phase == phase && event.span.id == id;
        events.iter().position(is_it)
    };
    let ids: HashSet<_> = events.iter().map(|event| event.span.id).collect();
    for SpanEvent { span, .. } in events {
        let (start, end) = (place(SpanPhase::Started, span.id), place(SpanPhase::Ended, span.id));
        assert!(start.is_some() && start < end, "{name}: {}", span.name());
        let Some(parent) = span.parent.filter(|parent| ids.contains(parent)) else { continue };
        assert!(place(SpanPhase::Started, parent) < start, "{name}: {}", span.name());
        assert!(end < place(SpanPhase::Ended, parent), "{name}: {}", span.name());
    }
}

struct Story {
    name: &'static str,
    script: Vec<ScriptedAnswer>,
    has_subscriber: bool,
    cancelled_after: Option<u64>,
    /// Names of the spans that end, in order, with the error of failed ones.
    ended: Vec<&'static str>,
    generations: usize,
}

fn say(text: &str) -> ScriptedPiece {
    ModelEvent::TextDelta(text.to_owned()).into()
}

fn plain(name: &'static str, script: Vec<ScriptedAnswer>, ended: Vec<&'static str>) -> Story {
    Story { name, script, has_subscriber: false, cancelled_after: None, ended, generations: 1 }
}

/// Name of the span that reads memory.
const MEMORY: &str = "search_memory";

fn stories() -> Vec<Story> {
    without_subscribers().into_iter().chain(with_subscribers()).collect()
}

fn without_subscribers() -> Vec<Story> {
    let down = || ModelError::new(ModelErrorKind::Unavailable, "down");
    let delegate = ToolCall {
        tool_call_id: "c1".to_owned(),
        tool_name: "delegate_task".to_owned(),
        input: json!({ "task": "inner" }),
    };
    vec![
        plain(
            "a text",
            vec![text("hi")],
            vec![MEMORY, "chat scripted", "update_memory", "invoke_agent writer"],
        ),
        plain(
            "tools",
            vec![calls([call("c1", "add", 1), call("c2", "fail", 0)]), text("two")],
            vec![
                MEMORY,
                "chat scripted",
                "execute_tool add",
                "execute_tool fail: no luck",
                "chat scripted",
                "update_memory",
                "invoke_agent writer",
            ],
        ),
        plain(
            "a failure behind tools",
            vec![calls([call("c1", "add", 1)]), ScriptedAnswer::Error(down())],
            vec![
                MEMORY,
                "chat scripted",
                "execute_tool add",
                "chat scripted: down",
                "invoke_agent writer: down",
            ],
        ),
        Story {
            cancelled_after: Some(500),
            ..plain(
                "a cancel while a tool works",
                vec![calls([call("c1", "hang", 0)])],
                vec![
                    MEMORY,
                    "chat scripted",
                    "execute_tool hang: cancelled",
                    "invoke_agent writer: cancelled",
                ],
            )
        },
        Story {
            generations: 2,
            ..plain(
                "an agent that asks another",
                vec![ScriptedAnswer::ToolCalls(vec![delegate]), text("inner"), text("outer")],
                vec![
                    MEMORY,
                    "chat scripted",
                    MEMORY,
                    "chat scripted",
                    "update_memory",
                    "invoke_agent writer",
                    "execute_tool delegate_task",
                    "chat scripted",
                    "update_memory",
                    "invoke_agent writer",
                ],
            )
        },
    ]
}

fn with_subscribers() -> Vec<Story> {
    let pieces = || {
        let pause = ScriptedPiece::Pause(Duration::from_millis(300));
        vec![pause.clone(), say("a "), pause, say("b"), ScriptedPiece::Hang]
    };
    vec![
        Story {
            has_subscriber: true,
            cancelled_after: Some(1_000),
            ..plain(
                "a cancel in the middle of an answer",
                vec![ScriptedAnswer::Pieces(pieces())],
                vec![
                    MEMORY,
                    "chat scripted: the generation was cancelled",
                    "update_memory",
                    "invoke_agent writer: cancelled",
                ],
            )
        },
        Story {
            has_subscriber: true,
            ..plain(
                "a stream with tools",
                vec![calls([call("c1", "add", 1), call("c2", "add", 2)]), text("a b")],
                vec![
                    MEMORY,
                    "chat scripted",
                    "execute_tool add",
                    "execute_tool add",
                    "chat scripted",
                    "update_memory",
                    "invoke_agent writer",
                ],
            )
        },
    ]
}

#[actix::test]
async fn spans_are_the_same_live_and_from_the_record() {
    tokio::time::pause();
    for story in stories() {
        for is_remote in [false, true] {
            check(&story, is_remote).await;
        }
    }
}

async fn check(story: &Story, is_remote: bool) {
    let Story { name, script, has_subscriber, cancelled_after, ended, generations } = story;
    let model = match is_remote {
        true => ScriptedModel::remote(script.clone()),
        false => ScriptedModel::local(script.clone()),
    };
    let mut world = World::with(model, History::default(), |agent| {
        with_tools(agent);
        agent.memory = true;
        agent.sub_agents = vec!["writer".to_owned()];
    });
    let ends = Arc::new(Ends::default());
    world.deps.clock = Arc::new(TestClock::new());
    world.deps.meter = Arc::clone(&ends) as _;
    let watcher = Watcher::default();
    let spans = Some(watcher.clone().start().recipient());
    let filter = ObserverFilter::default();
    world
        .deps
        .feed
        .observe(Observer { spans, logs: None, filter, disconnect: Arc::new(|| {}) })
        .await;

    let recorder = Recorder::default();
    let (subscriber, _recorder) = recorder.subscribe();
    let asked = GenerationRequest { conversation_id: Some("talk".to_owned()), ..request(None) };
    let handle = world.spawn_for(asked, has_subscriber.then_some(subscriber));
    if let Some(after) = cancelled_after {
        tokio::time::sleep(Duration::from_millis(*after)).await;
        handle.cancel();
    }
    let outcome = handle.outcome().await;
    assert_eq!(outcome == Err(GenerateError::Cancelled), cancelled_after.is_some(), "{name}");
    settle().await;

    let live = watcher.0.lock().unwrap().clone();
    check_order(name, &live);
    let names: Vec<String> = live
        .iter()
        .filter(|event| event.phase == SpanPhase::Ended)
        .map(|SpanEvent { span, .. }| match &span.status {
            SpanStatus::Error(why) => format!("{}: {why}", span.name()),
            SpanStatus::Ok | SpanStatus::Unset => span.name(),
        })
        .collect();
    assert_eq!(names, *ended, "{name}");

    let mut recorded = Vec::new();
    let by_id: HashMap<_, _> = ends.0.lock().unwrap().iter().cloned().collect();
    assert_eq!((by_id.len(), ends.0.lock().unwrap().len()), (*generations, *generations), "{name}");
    for (id, turns) in by_id {
        let entry = world.history.store.generation(&id).await.unwrap().unwrap();
        assert_eq!(entry.steps.len(), turns, "{name}");
        let spans = spans_of_entry(&entry);
        check_order(name, &spans);
        recorded.extend(spans);
    }
    for phase in [SpanPhase::Started, SpanPhase::Ended] {
        assert_eq!(of_phase(&live, phase), of_phase(&recorded, phase), "{name}");
    }
    check_trace(name, &live, &world, is_remote);
}

/// Checks that all spans are in one trace, and that remote requests carry their span.
fn check_trace(name: &str, live: &[SpanEvent], world: &World, is_remote: bool) {
    let traces: HashSet<_> = live.iter().map(|event| event.span.trace().id.clone()).collect();
    assert_eq!(traces.len(), 1, "{name}");
    let chats = live.iter().filter(|event| event.phase == SpanPhase::Started);
    let chats = chats.filter(|event| event.span.name().starts_with("chat"));
    let chats: HashSet<_> = chats.map(|event| Some(event.span.id)).collect();
    let carried: HashSet<_> = world
        .model
        .requests()
        .into_iter()
        .map(|request| request.trace.and_then(|trace| trace.parent_span))
        .collect();
    let expected = if is_remote { chats } else { HashSet::from([None]) };
    assert_eq!(carried, expected, "{name}");
}

#[actix::test]
async fn a_failed_turn_is_recorded_with_its_error() {
    tokio::time::pause();
    let down = ModelError::new(ModelErrorKind::RateLimited, "too many");
    let world = World::local([ScriptedAnswer::Error(down)]);
    world.run(request(None)).await.unwrap_err();
    let entry = world.history.store.generation("g1").await.unwrap().unwrap();
    let [turn] = entry.steps.as_slice() else { panic!("{entry:?}") };
    assert!(!turn.has_content());
    let error = turn.timing.error.as_ref().unwrap();
    assert_eq!((error.kind.as_str(), error.message.as_str()), ("rate_limited", "too many"));
    assert_eq!(&*turn.timing.served.as_ref().unwrap().model, "scripted");
}
