//! Log records for observers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use actix::dev::SendError;
use actix::{Context, Handler, Message};

use super::{Feed, FeedHandle, Subscription};
use crate::observe::log_record::{LogRecord, LogScope};
use crate::observe::span::{EntityType, LogsObserved, ObserverFilter};

/// Records in the order of writing.
type Batch = Arc<[Arc<LogRecord>]>;

#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct PublishLogs(Batch);

impl FeedHandle {
    /// Queues records; drops them if the feed is behind. Never waits.
    pub(crate) fn publish_logs(&self, batch: Batch) {
        if self.shared.of_logs.load(Ordering::Relaxed) == 0 {
            return;
        }
        let count = batch.len() as u64;
        if self.feed.try_send(PublishLogs(batch)).is_err() {
            self.shared.lost_logs.fetch_add(count, Ordering::Relaxed);
            self.shared.dropped.fetch_add(count, Ordering::Relaxed);
        }
    }
}

impl Handler<PublishLogs> for Feed {
    type Result = ();

    fn handle(&mut self, message: PublishLogs, _: &mut Context<Self>) {
        let PublishLogs(batch) = message;
        let lost = self.shared.lost_logs.swap(0, Ordering::Relaxed);
        let (stall, shared) = (self.stall, &self.shared);
        let before = self.observers.len();
        self.observers.retain(|_, subscription| {
            subscription.logs.missed += lost;
            subscription.offer_logs(&batch, stall, &shared.dropped)
        });
        if self.observers.len() < before {
            self.count();
        }
    }
}

impl Subscription {
    /// Sends the matching records of a batch; returns false if the observer is to be removed.
    pub(super) fn offer_logs(
        &mut self,
        batch: &Batch,
        stall: Duration,
        dropped: &AtomicU64,
    ) -> bool {
        let Some(recipient) = &self.observer.logs else { return true };
        let logs = admitted(&self.observer.filter, batch);
        let count = logs.len();
        if count == 0 {
            return true;
        }
        let outcome = recipient.try_send(LogsObserved { logs, missed: self.logs.missed });
        if matches!(outcome, Err(SendError::Full(_))) {
            dropped.fetch_add(count as u64, Ordering::Relaxed);
        }
        self.logs.settle(&outcome, count, stall, &self.observer.disconnect)
    }
}

/// Returns the matching records of a batch, without copying if all match.
fn admitted(filter: &ObserverFilter, batch: &Batch) -> Batch {
    if batch.iter().all(|record| admits(filter, &record.scope)) {
        return Arc::clone(batch);
    }
    batch.iter().filter(|record| admits(filter, &record.scope)).cloned().collect()
}

/// Returns true if the observer gets the spans of the record's trace. Records without a trace go to
/// observers that select no entity.
fn admits(filter: &ObserverFilter, scope: &LogScope) -> bool {
    let ObserverFilter { entity_type, entity_id, visibility } = filter;
    let is_of = |kind: Option<EntityType>, id: &Option<Arc<str>>| {
        let is_kind = entity_type.is_none_or(|wanted| kind == Some(wanted));
        is_kind && entity_id.as_deref().is_none_or(|wanted| id.as_deref() == Some(wanted))
    };
    let is_own = is_of(Some(EntityType::Workflow), &scope.workflow_id)
        || is_of(Some(EntityType::Agent), &scope.agent_id);
    let is_selected = is_of(scope.root_type, &scope.root_id) || (entity_id.is_some() && is_own);
    is_selected && visibility.allows(scope.user_id.as_deref())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::visibility::Visibility;

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
    fn records_are_filtered_like_the_spans_of_their_trace() {
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
        let seen_by = |visibility| ObserverFilter { visibility, ..ObserverFilter::default() };
        let rows = [
            (everything, [true; 4]),
            (of(Some(workflow), None), [false, true, true, false]),
            (of(Some(EntityType::Agent), None), [false, false, false, true]),
            (of(None, Some("order")), [false, true, true, false]),
            (of(None, Some("clerk")), [false, false, true, true]),
            (of(Some(workflow), Some("clerk")), [false; 4]),
            (of(Some(EntityType::Agent), Some("clerk")), [false, false, true, true]),
            (seen_by(Visibility::Of("ann".into())), [false, true, true, false]),
            (seen_by(Visibility::Of("ben".into())), [false; 4]),
            (seen_by(Visibility::Nothing), [false; 4]),
        ];
        for (filter, expected) in rows {
            assert_eq!(all.map(|scope| admits(&filter, scope)), expected, "{filter:?}");
        }
    }
}
