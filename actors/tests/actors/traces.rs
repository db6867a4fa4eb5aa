//! Traces: the spans that observers get live are those read from the record later.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use actix::{Actor, Context, Handler};
use greenroom_actors::RuntimeLimits;
use greenroom_actors::agent::AgentDefinition;
use greenroom_actors::domain::definition::{StepDefinition, WorkflowDefinition};
use greenroom_actors::domain::trace::{TraceOrigin, TraceParent};
use greenroom_actors::function::StepFunction;
use greenroom_actors::observe::span::{
    EntityType, Observer, ObserverFilter, Owner, Span, SpanEvent, SpanPhase, SpanStatus,
    SpansObserved,
};
use greenroom_actors::ports::store::RootFilter;
use greenroom_actors::requests::StartExecution;
use greenroom_actors::runtime::TraceView;
use greenroom_actors::testkit::{World, pass, registry_of, start, target};
use greenroom_actors::visibility::Visibility;
use serde_json::{Value, json};

use crate::agents::{Model, agent, text};
use crate::workflows::{
    self, Calls, add_agent, all, ask, ask_until, child, map, race, retried, run, sleep, spawn,
    with_functions, workflow,
};

/// All observed span events, in order.
pub(crate) type Observed = Rc<RefCell<Vec<SpanEvent>>>;

#[derive(Default)]
struct Watcher(Observed);

impl Actor for Watcher {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.set_mailbox_capacity(1000);
    }
}

impl Handler<SpansObserved> for Watcher {
    type Result = ();

    fn handle(&mut self, message: SpansObserved, _: &mut Self::Context) {
        assert_eq!(message.missed, 0);
        let owners = message.spans.iter().map(|event| id_of(&event.span));
        assert_eq!(owners.collect::<std::collections::HashSet<_>>().len(), 1, "one owner each");
        self.0.borrow_mut().extend(message.spans.iter().cloned());
    }
}

fn id_of(span: &Span) -> String {
    match &span.owner {
        Owner::Execution(header) => header.id.to_string(),
        Owner::Generation(record) => record.id.clone(),
    }
}

/// Returns an observer and the spans that it gets.
pub(crate) fn observer(filter: ObserverFilter) -> (Observer, Observed) {
    let watcher = Watcher::default();
    let observed = Rc::clone(&watcher.0);
    let spans = Some(watcher.start().recipient());
    (Observer { spans, logs: None, filter, disconnect: Arc::new(|| {}) }, observed)
}

pub(crate) async fn world_with(
    limits: RuntimeLimits,
    workflows: Vec<WorkflowDefinition>,
) -> (World, Observed) {
    let (observer, observed) = observer(ObserverFilter::default());
    let registry = with_functions(registry_of(workflows), &Calls::default());
    (World::launch_observed(registry, limits, vec![observer]).await, observed)
}

async fn world(steps: Vec<StepDefinition>) -> (World, Observed) {
    let limits = RuntimeLimits::default();
    let inner = vec![run("slow", "slow"), ask("manager")];
    world_with(limits, vec![workflow("w", steps), workflow("inner", inner)]).await
}

/// Starts `e` without waiting for it.
async fn begin(world: &World) {
    spawn(world, start("w", "e", json!({ "n": 1 })));
    pass(Duration::from_millis(1)).await;
}

async fn resume(world: &World) {
    let request = workflows::resume(json!({ "approved": true }));
    world.runtime.resume(&target("w", "e"), request).await.unwrap();
}

fn trace_id(observed: &Observed) -> Arc<str> {
    Arc::clone(&observed.borrow().first().expect("something was observed").span.trace().id)
}

async fn trace(world: &World, id: &str) -> TraceView {
    world.runtime.trace(id, &Visibility::Everything).await.unwrap().expect("there is such a trace")
}

/// Returns a span as API clients see it.
fn shown(span: &Span) -> (String, Value) {
    let attributes = span.attributes(true).into_iter();
    let attributes: Vec<_> = attributes.map(|(key, value)| format!("{key}={value:?}")).collect();
    let seen = json!({
        "trace": &*span.trace().id,
        "parent": span.parent,
        "name": span.name(),
        "kind": format!("{:?}", span.kind()),
        "start": span.start.0,
        "end": span.end.map(|end| end.0),
        "status": format!("{:?}", span.status),
        "attributes": attributes,
    });
    (span.id.to_string(), seen)
}

/// Returns the last observed state of each span.
fn latest(observed: &Observed) -> Vec<(String, Value)> {
    let mut spans: Vec<(String, Value)> = Vec::new();
    for event in observed.borrow().iter() {
        assert_eq!(event.span.end.is_some(), event.phase == SpanPhase::Ended);
        let (id, seen) = shown(&event.span);
        spans.retain(|(known, _)| *known != id);
        spans.push((id, seen));
    }
    spans.sort_by(|one, other| one.0.cmp(&other.0));
    spans
}

/// Asserts that the observed spans equal the recorded ones, and that each is found by its id.
pub(crate) async fn agree(world: &World, observed: &Observed, story: &str) -> TraceView {
    pass(Duration::from_millis(1)).await;
    let view = trace(world, &trace_id(observed)).await;
    let mut recorded: Vec<_> = view.spans.iter().map(shown).collect();
    recorded.sort_by(|one, other| one.0.cmp(&other.0));
    assert_eq!(latest(observed), recorded, "{story}");
    for span in &view.spans {
        let found = world.runtime.span(span.id, &Visibility::Everything).await.unwrap();
        assert_eq!(found.as_ref(), Some(span), "{story}");
        let hidden = world.runtime.span(span.id, &Visibility::Nothing).await;
        assert_eq!(hidden, Ok(None), "{story}");
    }
    assert!(!view.is_cut);
    view
}

fn names(view: &TraceView) -> Vec<String> {
    view.spans.iter().map(Span::name).collect()
}

fn stories() -> Vec<(&'static str, Vec<StepDefinition>)> {
    let nap = || vec![sleep("nap", 50)];
    vec![
        ("steps", vec![map("a", json!("data.n + 1")), run("b", "slow"), sleep("c", 70)]),
        ("attempts", vec![retried(run("a", "flaky"), 3, 40), map("b", json!("data"))]),
        ("a failure", vec![retried(run("a", "boom"), 2, 40)]),
        ("a question", vec![ask("a"), run("b", "slow")]),
        ("an attempt that asks", vec![run("a", "asks"), run("b", "slow")]),
        ("a deadline", vec![ask_until("a", 60), run("b", "slow")]),
        ("a race", vec![race("r", vec![("x", nap()), ("y", vec![run("h", "hang")])])]),
        ("all", vec![all("l", vec![("x", nap()), ("y", vec![run("s", "slow"), ask("q")])])]),
        ("a child", vec![child("sub", "inner"), map("b", json!("[data]"))]),
    ]
}

#[actix::test]
async fn observed_spans_equal_recorded_ones() {
    tokio::time::pause();
    for (story, steps) in stories() {
        let (world, observed) = world(steps).await;
        begin(&world).await;
        for _ in 0..6 {
            agree(&world, &observed, story).await;
            pass(Duration::from_millis(45)).await;
        }
        let state = world.runtime.describe(&target("w", "e")).await.unwrap();
        if state.suspension.is_some() {
            resume(&world).await;
        }
        pass(Duration::from_secs(1)).await;
        let view = agree(&world, &observed, story).await;
        assert!(view.spans.iter().all(|span| span.end.is_some()), "{story}: all has ended");
        let ids: std::collections::HashSet<_> = view.spans.iter().map(|span| span.id).collect();
        let top: Vec<_> = view.spans.iter().filter(|span| span.parent.is_none()).collect();
        assert_eq!((top.len(), top[0].name().as_str()), (1, "invoke_workflow w"), "{story}");
        assert!(view.spans.iter().all(|span| span.parent.is_none_or(|id| ids.contains(&id))));
        assert_eq!(view.spans[0].id, top[0].id, "{story}: the root comes first");
    }
}

#[actix::test]
async fn a_trace_continues_after_a_kill_at_any_moment() {
    tokio::time::pause();
    for (story, steps) in stories() {
        for moment in [2, 20, 55, 90, 130] {
            let story = format!("{story}, killed after {moment} ms");
            let (world, observed) = world(steps.clone()).await;
            begin(&world).await;
            pass(Duration::from_millis(moment)).await;
            let world = world.restart().await;
            pass(Duration::from_millis(300)).await;
            let state = world.runtime.describe(&target("w", "e")).await.unwrap();
            if state.suspension.is_some() {
                resume(&world).await;
            }
            pass(Duration::from_secs(1)).await;
            let view = agree(&world, &observed, &story).await;
            assert!(view.spans.iter().all(|span| span.end.is_some()), "{story}: all has ended");
        }
    }
}

#[actix::test]
async fn a_cancel_ends_open_spans_of_pauses_and_steps() {
    tokio::time::pause();
    for moment in [1, 60, 120] {
        let (world, observed) = world(vec![run("a", "slow"), ask("b")]).await;
        begin(&world).await;
        pass(Duration::from_millis(moment)).await;
        // a suspended execution cannot be paused
        let is_held = world.runtime.suspend(&target("w", "e"), None, None).await.is_ok();
        let world = world.restart().await;
        pass(Duration::from_millis(30)).await;
        world.runtime.cancel(&target("w", "e"), None, None).await.unwrap();
        let view = agree(&world, &observed, "a cancel").await;
        let cancelled = |span: &Span| match &span.status {
            SpanStatus::Error(why) => why.starts_with("cancelled"),
            SpanStatus::Unset | SpanStatus::Ok => false,
        };
        let waits: Vec<_> = view.spans.iter().filter(|it| it.name().starts_with("wait")).collect();
        assert_eq!(waits.len(), 1, "{:?}", names(&view));
        assert_eq!(waits[0].name() == "wait", is_held);
        assert!(cancelled(waits[0]) && cancelled(&view.spans[0]));
        assert!(view.spans.iter().all(|span| span.end.is_some()));
    }
}

#[actix::test]
async fn a_child_is_below_the_attempt_that_began_it_and_in_the_same_trace() {
    tokio::time::pause();
    let (world, observed) = world(vec![child("sub", "inner")]).await;
    begin(&world).await;
    pass(Duration::from_millis(200)).await;
    let view = agree(&world, &observed, "a child").await;
    let expected =
        ["invoke_workflow w", "step sub", "invoke_workflow inner", "step slow", "wait manager"];
    assert_eq!(names(&view), expected);
    for (above, below) in [(0, 1), (1, 2), (2, 3), (2, 4)] {
        assert_eq!(view.spans[below].parent, Some(view.spans[above].id), "{below}");
    }
}

#[actix::test]
async fn a_list_shows_roots_newest_first_within_its_read_limit() {
    tokio::time::pause();
    let limits = RuntimeLimits { trace_spans_max: 25, ..RuntimeLimits::default() };
    let inner = workflow("inner", vec![map("a", json!("data"))]);
    let outer = workflow("w", vec![child("sub", "inner")]);
    let (world, _) = world_with(limits, vec![inner, outer]).await;
    for (workflow, id) in [("inner", "i"), ("w", "e"), ("w", "f"), ("w", "g")] {
        world.runtime.execute(start(workflow, id, json!(1))).await.unwrap();
        pass(Duration::from_millis(5)).await;
    }
    let all = RootFilter::default();
    let page = world.runtime.traces(&all, None, 10).await.unwrap();
    // each family has ten facts: the third exceeds the limit of the page
    assert_eq!(page.traces.len(), 3);
    let newest = &page.traces[0];
    assert_eq!((&*newest.name, &*newest.entity_id), ("invoke_workflow w", "w"));
    assert_eq!((newest.entity_type, newest.span_count), (EntityType::Workflow, 4));
    assert_eq!(newest.status, SpanStatus::Ok);
    assert!(page.traces.is_sorted_by_key(|trace| std::cmp::Reverse(trace.start)));
    let rest = world.runtime.traces(&all, page.next, 10).await.unwrap();
    assert_eq!((rest.traces.len(), &*rest.traces[0].entity_id, rest.next), (1, "inner", None));

    let of_inner = RootFilter { entity_id: Some("inner".to_owned()), ..RootFilter::default() };
    let page = world.runtime.traces(&of_inner, None, 10).await.unwrap();
    assert_eq!(page.traces.len(), 1, "children are no roots");
    let hidden = RootFilter { visibility: Visibility::Nothing, ..RootFilter::default() };
    assert_eq!(world.runtime.traces(&hidden, None, 10).await.unwrap().traces.len(), 0);
}

#[actix::test]
async fn a_long_trace_is_truncated() {
    tokio::time::pause();
    let limits = RuntimeLimits { trace_spans_max: 3, ..RuntimeLimits::default() };
    let steps = vec![map("a", json!("data")), map("b", json!("data"))];
    let (world, observed) = world_with(limits, vec![workflow("w", steps)]).await;
    begin(&world).await;
    let view = trace(&world, &trace_id(&observed)).await;
    assert!(view.is_cut);
    assert_eq!(names(&view), ["invoke_workflow w", "step a"]);
}

#[actix::test]
async fn traces_of_large_values_are_truncated() {
    tokio::time::pause();
    let limits = RuntimeLimits { trace_bytes_max: 1 << 20, ..RuntimeLimits::default() };
    let steps = vec![map("a", json!("data")), map("b", json!("data"))];
    let (world, observed) = world_with(limits, vec![workflow("w", steps)]).await;
    for id in ["e", "f", "g"] {
        let input = json!(vec![json!({}); 10_000]);
        world.runtime.execute(start("w", id, input)).await.unwrap();
    }
    let view = trace(&world, &trace_id(&observed)).await;
    assert!(view.is_cut);
    assert_eq!(names(&view), ["invoke_workflow w"], "one fact takes more");
    let page = world.runtime.traces(&RootFilter::default(), None, 10).await.unwrap();
    assert_eq!((page.traces.len(), page.next.is_some()), (1, true));
    assert_eq!((page.traces[0].span_count, page.traces[0].is_cut), (1, true));
}

#[actix::test]
async fn a_trace_of_several_users_shows_each_user_its_own_part() {
    tokio::time::pause();
    let (world, observed) = world(vec![map("a", json!("data"))]).await;
    let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    for (user, id) in [("ann", "a"), ("ben", "b")] {
        let request = StartExecution {
            user_id: Some(user.to_owned()),
            trace: TraceOrigin::Remote(TraceParent::parse(parent, None).unwrap()),
            ..start("w", id, json!(1))
        };
        world.runtime.execute(request).await.unwrap();
    }
    let view = agree(&world, &observed, "two roots").await;
    assert_eq!(view.spans.len(), 4);
    let id = trace_id(&observed);
    assert_eq!(&*id, "0af7651916cd43dd8448eb211c80319c");
    for (user, spans) in [("ann", Some(2)), ("ben", Some(2)), ("eve", None)] {
        let visibility = Visibility::Of(user.into());
        let seen = world.runtime.trace(&id, &visibility).await.unwrap();
        assert_eq!(seen.as_ref().map(|view| view.spans.len()), spans, "{user}");
        assert!(seen.iter().flat_map(|it| &it.spans).all(|it| it.owner.user_id() == Some(user)));
    }
    let page = world.runtime.traces(&RootFilter::default(), None, 10).await.unwrap();
    assert_eq!(page.traces.len(), 1, "one trace with several roots");
    assert_eq!(page.traces[0].span_count, 4);
}

#[actix::test]
async fn functions_and_agents_work_within_the_trace_of_their_attempt() {
    tokio::time::pause();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let mut registry = registry_of([workflow("w", vec![run("calls", "calls"), agent("ask")])]);
    let parents = Arc::clone(&seen);
    let calls: StepFunction = Arc::new(move |context| {
        parents.lock().unwrap().push((context.traceparent(), context.attempt));
        Box::pin(async { Ok(json!("done").into()) })
    });
    registry.functions.insert("calls".to_owned(), calls);
    let model = Model::new([text("an answer")]);
    add_agent(&mut registry, "helper", model, AgentDefinition::default());
    let world = World::launch(registry, RuntimeLimits::default()).await;
    world.runtime.execute(start("w", "e", json!({}))).await.unwrap();

    let page = world.runtime.traces(&RootFilter::default(), None, 10).await.unwrap();
    assert_eq!(page.traces.len(), 1, "the generation is in the trace of the step");
    let id = &page.traces[0].trace_id;
    let view = trace(&world, id).await;
    let span = |name: &str| view.spans.iter().find(|span| span.name() == name).unwrap();
    assert_eq!(span("invoke_agent helper").parent, Some(span("step ask").id));
    let parent = format!("00-{id}-{}-01", span("step calls").id);
    assert_eq!(*seen.lock().unwrap(), [(Some(parent), 1)]);
}
