//! Log records for observers, beside the spans.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use actix::{Context, Handler, Message};

use super::{Feed, FeedHandle};
use crate::log_record::{LogRecord, LogScope};
use crate::span::{LogsObserved, ObserverFilter};

/// Records in the order in which they are kept.
type Batch = Arc<[Arc<LogRecord>]>;

#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct PublishLogs(Batch);

impl FeedHandle {
    /// Hands records over; drops them when nobody wants any or the feed is behind, never waits.
    pub(crate) fn publish_logs(&self, batch: Batch) {
        if self.shared.log_observers.load(Ordering::Relaxed) == 0 {
            return;
        }
        let records = batch.len() as u64;
        if self.feed.try_send(PublishLogs(batch)).is_err() {
            self.shared.dropped_logs.fetch_add(records, Ordering::Relaxed);
        }
    }
}

impl Handler<PublishLogs> for Feed {
    type Result = ();

    fn handle(&mut self, message: PublishLogs, _: &mut Context<Self>) {
        let PublishLogs(batch) = message;
        let (stall, dropped) = (self.stall, self.shared.dropped_logs.swap(0, Ordering::Relaxed));
        self.observers.retain(|_, watching| {
            let Some(recipient) = &watching.observer.logs else { return true };
            watching.missed += dropped;
            let logs = admitted(&watching.observer.filter, &batch);
            if logs.is_empty() {
                return true;
            }
            let (count, missed) = (logs.len() as u64, watching.missed);
            let sent = recipient.try_send(LogsObserved { logs, missed });
            watching.settle(sent, count, stall)
        });
        self.count();
    }
}

/// Those of a batch that an observer wants: all of it as it is, where they are all.
fn admitted(filter: &ObserverFilter, batch: &Batch) -> Batch {
    if batch.iter().all(|record| admits(filter, &record.scope)) {
        return Arc::clone(batch);
    }
    batch.iter().filter(|record| admits(filter, &record.scope)).cloned().collect()
}

/// What is about nothing that has a root goes to those who ask for no root.
fn admits(filter: &ObserverFilter, scope: &LogScope) -> bool {
    let type_fits = filter.entity_type.is_none_or(|wanted| scope.root_type == Some(wanted));
    let id_fits = filter.entity_id.as_deref().is_none_or(|wanted| {
        let ids = [&scope.root_id, &scope.workflow_id, &scope.agent_id];
        ids.into_iter().flatten().any(|id| &**id == wanted)
    });
    type_fits && id_fits && filter.sight.reaches(scope.user_id.as_deref())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sight::Sight;
    use crate::span::EntityType;

    fn scope(root: (EntityType, &str), agent: Option<&str>, user: Option<&str>) -> LogScope {
        LogScope {
            root_type: Some(root.0),
            root_id: Some(root.1.into()),
            agent_id: agent.map(Arc::from),
            user_id: user.map(Arc::from),
            ..LogScope::default()
        }
    }

    #[test]
    fn records_go_where_the_spans_of_their_trace_go() {
        let workflow = EntityType::Workflow;
        let server = LogScope::default();
        let order = scope((workflow, "order"), None, Some("ann"));
        let clerk_in_order = scope((workflow, "order"), Some("clerk"), Some("ann"));
        let clerk = scope((EntityType::Agent, "clerk"), Some("clerk"), None);
        let all = [&server, &order, &clerk_in_order, &clerk];
        let everything = ObserverFilter::default();
        let of = |entity_type, id: Option<&str>| ObserverFilter {
            entity_type,
            entity_id: id.map(str::to_owned),
            ..ObserverFilter::default()
        };
        let seen_by = |sight| ObserverFilter { sight, ..ObserverFilter::default() };
        let rows = [
            (everything, [true; 4]),
            (of(Some(workflow), None), [false, true, true, false]),
            (of(Some(EntityType::Agent), None), [false, false, false, true]),
            (of(None, Some("order")), [false, true, true, false]),
            (of(None, Some("clerk")), [false, false, true, true]),
            (of(Some(workflow), Some("clerk")), [false, false, true, false]),
            (seen_by(Sight::Of("ann".into())), [false, true, true, false]),
            (seen_by(Sight::Of("ben".into())), [false; 4]),
            (seen_by(Sight::Nothing), [false; 4]),
        ];
        for (filter, expected) in rows {
            assert_eq!(all.map(|scope| admits(&filter, scope)), expected, "{filter:?}");
        }
    }
}
