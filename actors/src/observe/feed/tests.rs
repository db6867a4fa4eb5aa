//! Routing to observers, and slow observers.

use std::cell::RefCell;
use std::rc::Rc;

use actix::Arbiter;

use super::*;
use crate::observe::trace::execution::spans_of_record;
use crate::observe::trace::execution::tests::{Story, completed, header_of, started};
use crate::visibility::Visibility;

const STALL: Duration = Duration::from_secs(10);

/// Records the number of spans of each message, and of those missed before it.
#[derive(Default)]
struct Watcher(Rc<RefCell<Vec<(usize, u64)>>>);

impl Actor for Watcher {
    type Context = Context<Self>;
}

impl Handler<SpansObserved> for Watcher {
    type Result = ();

    fn handle(&mut self, message: SpansObserved, _: &mut Self::Context) {
        self.0.borrow_mut().push((message.spans.len(), message.missed));
    }
}

/// Returns an observer of neither spans nor logs.
fn observer() -> Observer {
    Observer {
        spans: None,
        logs: None,
        filter: ObserverFilter::default(),
        disconnect: Arc::new(|| {}),
    }
}

/// Returns one span of `order`.
fn span() -> Arc<[SpanEvent]> {
    spans_of_record(&header_of("e"), &[started()]).into()
}

#[test]
fn a_filter_selects_the_root_of_a_trace_or_the_entity_itself() {
    let mut header = Header::clone(&header_of("e"));
    header.trace.root_type = EntityType::Agent;
    header.trace.root_id = Arc::from("clerk");
    let owner = Owner::Execution(Arc::new(header));
    let (agent, workflow) = (Some(EntityType::Agent), Some(EntityType::Workflow));
    let rows = [
        (None, None, true),
        (agent, None, true),
        (workflow, None, true),
        (agent, Some("clerk"), true),
        (None, Some("clerk"), true),
        (workflow, Some("clerk"), false),
        (workflow, Some("order"), true),
        (None, Some("order"), true),
        (agent, Some("order"), false),
        (None, Some("other"), false),
    ];
    for (entity_type, entity_id, expected) in rows {
        let entity_id = entity_id.map(str::to_owned);
        let filter = ObserverFilter { entity_type, entity_id, visibility: Visibility::Everything };
        assert_eq!(matches(&filter, &owner), expected, "{filter:?}");
        let blind = ObserverFilter { visibility: Visibility::Nothing, ..filter };
        assert!(!matches(&blind, &owner));
    }
}

#[actix::test]
async fn only_observers_of_spans_enable_publishing() {
    let feed = FeedHandle::start(&Arbiter::current(), STALL);
    assert!(!feed.is_watched());
    let of_logs = feed.observe(observer()).await;
    assert_eq!((feed.observers(), feed.is_watched()), (1, false));
    let spans = Some(Watcher::default().start().recipient());
    let of_spans = feed.observe(Observer { spans, ..observer() }).await;
    assert_eq!((feed.observers(), feed.is_watched()), (2, true));
    feed.forget(of_spans);
    feed.forget(of_logs);
    tokio::task::yield_now().await;
    assert_eq!((feed.observers(), feed.is_watched()), (0, false));
}

/// Starts a feed with an observer of spans; returns what it receives.
async fn watched() -> (FeedHandle, Rc<RefCell<Vec<(usize, u64)>>>) {
    let feed = FeedHandle::start(&Arbiter::current(), STALL);
    let watcher = Watcher::default();
    let received = Rc::clone(&watcher.0);
    feed.observe(Observer { spans: Some(watcher.start().recipient()), ..observer() }).await;
    (feed, received)
}

#[actix::test]
async fn spans_are_sent_in_the_order_of_publishing() {
    let (feed, received) = watched().await;
    let header = header_of("e");
    feed.publish(vec![(Arc::clone(&header), [started(), Story::step("a", 1)].into())]);
    feed.publish_spans(span());
    feed.publish(vec![(header, [Story::done("a", 1), completed(), completed()].into())]);
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert_eq!(*received.borrow(), [(2, 0), (1, 0), (3, 0)]);
    assert_eq!(feed.dropped(), 0);
}

#[actix::test]
async fn a_slow_observer_gets_the_number_of_missed_spans() {
    let (feed, received) = watched().await;
    for _ in 0..FEED_MAILBOX + 100 {
        feed.publish_spans(span());
    }
    let lost = feed.dropped();
    assert!(lost > 0, "the mailbox of the feed is bounded");
    tokio::time::sleep(Duration::from_millis(1)).await;
    feed.publish_spans(span());
    tokio::time::sleep(Duration::from_millis(1)).await;
    let (taken, missed) = received
        .borrow()
        .iter()
        .fold((0, 0), |sum, (spans, missed)| (sum.0 + *spans as u64, sum.1 + missed));
    assert_eq!(taken + missed, FEED_MAILBOX as u64 + 101, "all missed spans are reported");
    assert_eq!(missed, feed.dropped());
}
