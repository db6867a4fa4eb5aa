//! Spans and log records of several processes over one store: every process shows those of all.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use actix::{Actor, AsyncContext, Context, Handler, WrapFuture};
use greenroom_actors::domain::principal::FORGOTTEN;
use greenroom_actors::domain::time::Timestamp;
use greenroom_actors::observe::log_record::{LogLevel, LogRecord, LogScope};
use greenroom_actors::observe::span::{
    LogsObserved, Observer, ObserverFilter, Owner, SpanEvent, SpanPhase, SpanWork, SpansObserved,
};
use greenroom_actors::ports::model::scripted::ScriptedModel;
use greenroom_actors::registry::Registry;
use greenroom_actors::requests::{Principal, ResumeExecution};
use greenroom_actors::testkit::{pass, registry_of};
use greenroom_actors::visibility::Visibility;
use serde_json::json;

use crate::generations::{registry, slowly};
use crate::processes::{Cluster, LEASE, Process, TAKEN_OVER, target};
use crate::workflows::{Calls, ask, map, run, with_functions, workflow};

/// Everything that an observer got.
#[derive(Default)]
struct Seen {
    spans: Vec<SpanEvent>,
    logs: Vec<Arc<LogRecord>>,
    missed: u64,
}

/// Takes batches, and waits for so long after each.
#[derive(Default)]
struct Watcher {
    seen: Rc<RefCell<Seen>>,
    pause: Option<Duration>,
}

impl Watcher {
    #[expect(clippy::disallowed_methods, reason = "a closed mailbox is what slow observers have")]
    fn pause(&self, ctx: &mut Context<Self>) {
        if let Some(pause) = self.pause {
            ctx.wait(tokio::time::sleep(pause).into_actor(self));
        }
    }
}

impl Actor for Watcher {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.set_mailbox_capacity(if self.pause.is_some() { 1 } else { 1_000 });
    }
}

impl Handler<SpansObserved> for Watcher {
    type Result = ();

    fn handle(&mut self, message: SpansObserved, ctx: &mut Self::Context) {
        let SpansObserved { spans, missed } = message;
        let mut seen = self.seen.borrow_mut();
        seen.spans.extend(spans.iter().cloned());
        seen.missed += missed;
        drop(seen);
        self.pause(ctx);
    }
}

impl Handler<LogsObserved> for Watcher {
    type Result = ();

    fn handle(&mut self, message: LogsObserved, _: &mut Self::Context) {
        let LogsObserved { logs, missed } = message;
        let mut seen = self.seen.borrow_mut();
        seen.logs.extend(logs.iter().cloned());
        seen.missed += missed;
    }
}

fn observer(filter: ObserverFilter, pause: Option<Duration>) -> (Observer, Rc<RefCell<Seen>>) {
    let seen = Rc::<RefCell<Seen>>::default();
    let watcher = Watcher { seen: Rc::clone(&seen), pause }.start();
    let (spans, logs) = (Some(watcher.clone().recipient()), Some(watcher.recipient()));
    (Observer { spans, logs, filter, disconnect: Arc::new(|| {}) }, seen)
}

/// Observes everything at a process.
async fn watch(process: &Process) -> Rc<RefCell<Seen>> {
    let (observer, seen) = observer(ObserverFilter::default(), None);
    process.runtime.observe(observer).await;
    seen
}

/// Returns the spans of one execution or generation, which are in order.
fn spans_of(seen: &RefCell<Seen>, id: &str) -> Vec<SpanEvent> {
    let is_of = |event: &&SpanEvent| match &event.span.owner {
        Owner::Execution(header) => header.id.as_str() == id,
        Owner::Generation(record) => record.id == id,
    };
    seen.borrow().spans.iter().filter(is_of).cloned().collect()
}

fn owners(seen: &RefCell<Seen>) -> BTreeSet<String> {
    let id = |event: &SpanEvent| match &event.span.owner {
        Owner::Execution(header) => header.id.to_string(),
        Owner::Generation(record) => record.id.clone(),
    };
    seen.borrow().spans.iter().map(id).collect()
}

fn workflows() -> Registry {
    let agents = registry(ScriptedModel::remote([slowly(), slowly()]));
    let asking = agents.workflows["w"].definition.clone();
    let definitions = [
        asking,
        workflow("nothing", vec![map("null", json!(null))]),
        workflow("asks", vec![ask("manager"), map("after", json!("data"))]),
        workflow("works", vec![run("a", "slow")]),
    ];
    let registry = Registry { workflows: registry_of(definitions).workflows, ..agents };
    with_functions(registry, &Calls::default())
}

async fn settled(processes: &[&Process]) {
    pass(Duration::from_secs(1)).await;
    for process in processes {
        process.runtime.observers_settled().await;
    }
    pass(Duration::from_millis(1)).await;
}

#[actix::test]
async fn what_any_process_does_is_observed_at_all() {
    let cluster = Cluster::linked_with(workflows());
    let processes = cluster.of(["a", "b", "c"]).await;
    let [first, second, third] = &processes;
    let mut seen = Vec::new();
    for process in &processes {
        seen.push(watch(process).await);
    }
    let filter =
        ObserverFilter { entity_id: Some("nothing".to_owned()), ..ObserverFilter::default() };
    let (filtered, of_nothing) = observer(filter, None);
    second.runtime.observe(filtered).await;
    let mut ids = Vec::new();
    for process in &processes {
        ids.push(process.start("nothing").await.to_string());
    }
    let with_agent = first.start("w").await;
    let asks = third.start("asks").await;
    let answer = ResumeExecution { data: json!({ "approved": 1 }), ..Default::default() };
    first.runtime.resume(&target("asks", &asks), answer).await.unwrap();
    settled(&[first, second, third]).await;

    assert_eq!(owners(&of_nothing), ids.iter().cloned().collect());
    ids.extend([with_agent.to_string(), asks.to_string()]);
    let all = owners(&seen[0]);
    assert_eq!(all.len(), 6, "with the generation: {all:?}");
    for other in &seen {
        for id in &all {
            let spans = spans_of(other, id);
            assert_eq!(spans, spans_of(&seen[0], id), "{id}");
            let ended = spans.iter().filter(|event| event.phase == SpanPhase::Ended).count();
            assert_eq!(ended * 2, spans.len(), "{id}");
        }
        assert_eq!((owners(other), other.borrow().missed), (all.clone(), 0));
    }
}

#[actix::test]
async fn records_of_any_process_are_observed_by_who_sees_them() {
    let cluster = Cluster::linked_with(workflows());
    let [first, second] = cluster.of(["a", "b"]).await;
    let everything = watch(&second).await;
    let filter =
        ObserverFilter { visibility: Visibility::Of("ann".into()), ..ObserverFilter::default() };
    let (of_ann, seen_by_ann) = observer(filter, None);
    second.runtime.observe(Observer { spans: None, ..of_ann }).await;
    let record = |user: Option<&str>| {
        let scope = LogScope { user_id: user.map(Arc::from), ..LogScope::default() };
        Arc::new(LogRecord {
            at: Timestamp(1),
            level: LogLevel::Warn,
            target: "target".into(),
            message: "told".to_owned(),
            attributes: vec![("key".to_owned(), json!([1, null]))],
            scope: Arc::new(scope),
        })
    };
    let records = [record(Some("ann")), record(None)];
    first.runtime.publish_logs(Arc::from(records.clone()));
    settled(&[&first, &second]).await;
    assert_eq!(everything.borrow().logs, records);
    assert_eq!(seen_by_ann.borrow().logs, records[..1]);
}

#[actix::test]
async fn processes_that_join_are_observed_and_those_that_are_lost_are_missed() {
    let cluster = Cluster::linked_with(workflows());
    let [first, second] = cluster.of(["a", "b"]).await;
    let seen = watch(&first).await;
    let third = cluster.join("c").await;
    pass(LEASE / 2).await;
    let (of_second, of_third) = (second.start("works").await, third.start("works").await);
    settled(&[&second, &third]).await;
    assert_eq!(owners(&seen), [of_second.to_string(), of_third.to_string()].into());

    cluster.cut(&first, &second);
    let lost = second.start("works").await.to_string();
    pass(LEASE).await;
    assert!(!owners(&seen).contains(&lost));
    cluster.heal(&first, &second);
    pass(LEASE / 2).await;
    let later = second.start("works").await.to_string();
    third.kill().await;
    pass(TAKEN_OVER).await;
    assert!(owners(&seen).contains(&later));
    assert_eq!(seen.borrow().missed, 2, "at least one of each connection that was lost");
}

#[actix::test]
async fn an_observer_that_is_removed_is_removed_everywhere() {
    let cluster = Cluster::linked_with(workflows());
    let [first, second] = cluster.of(["a", "b"]).await;
    let (observer, seen) = observer(ObserverFilter::default(), None);
    let id = first.runtime.observe(observer).await;
    let here = watch(&first).await;
    assert_eq!((first.runtime.stats().observers, second.runtime.stats().observers), (2, 2));
    first.runtime.forget(id);
    pass(LEASE / 2).await;
    assert_eq!((first.runtime.stats().observers, second.runtime.stats().observers), (1, 1));
    second.start("works").await;
    settled(&[&first, &second]).await;
    assert!(seen.borrow().spans.is_empty() && !here.borrow().spans.is_empty());
}

#[actix::test]
async fn a_slow_observer_learns_how_much_it_has_missed() {
    let cluster = Cluster::linked_with(workflows());
    let [first, second] = cluster.of(["a", "b"]).await;
    let (slow, seen) = observer(ObserverFilter::default(), Some(Duration::from_secs(2)));
    first.runtime.observe(slow).await;
    let all = watch(&first).await;
    for _ in 0..20 {
        second.start("nothing").await;
        first.start("nothing").await;
    }
    pass(Duration::from_secs(5)).await;
    second.start("works").await;
    settled(&[&first, &second]).await;
    pass(Duration::from_secs(30)).await;
    first.start("nothing").await;
    settled(&[&first]).await;
    pass(Duration::from_secs(30)).await;
    let (seen, all) = (seen.borrow(), all.borrow());
    assert!(seen.missed > 0 && seen.spans.len() < all.spans.len());
    assert_eq!(seen.spans.len() as u64 + seen.missed, all.spans.len() as u64);
}

#[actix::test]
async fn a_user_forgotten_at_any_process_is_in_no_span_that_ends_afterwards() {
    let cluster = Cluster::linked_with(workflows());
    let [first, second] = cluster.of(["a", "b"]).await;
    let seen = watch(&second).await;
    let id = first.begin("works").await;
    let it = target("works", &id);
    first.runtime.suspend(&it, None, Some(Principal::verified("lea"))).await.unwrap();
    second.runtime.forget_user("lea").await.unwrap();
    first.runtime.resume(&it, ResumeExecution::default()).await.unwrap();
    settled(&[&first, &second]).await;
    let spans = spans_of(&seen, id.as_str());
    let ended = spans.iter().filter(|event| event.phase == SpanPhase::Ended);
    let users = ended.filter_map(|event| match &event.span.work {
        SpanWork::Wait { suspended_by, .. } => suspended_by.as_ref().map(|by| by.id.to_string()),
        _ => None,
    });
    assert_eq!(users.collect::<Vec<_>>(), [FORGOTTEN]);
}
