//! Writes of executions.

use std::sync::Arc;

use greenroom_actors::ports::store::{
    Acknowledgement, Append, AppendError, CommitSink, Journal, Row, Snapshot, TimerChange, Written,
};
use greenroom_store_codec::prepared::PreparedAppend;

use crate::lane::fold::Job;
use crate::lane::reached;
use crate::store::PostgresStore;

impl PostgresStore {
    /// Returns the number of requests queued for the lanes, with those being committed.
    pub fn queued(&self) -> usize {
        self.lanes.queued()
    }
}

impl Journal for PostgresStore {
    fn technology(&self) -> &'static str {
        "postgres"
    }

    fn attach(&self, sink: Arc<dyn CommitSink>) {
        if self.shared.sink.set(sink).is_err() {
            log::error!("ignored a second commit sink");
        }
    }

    fn close(&self) {
        if !self.driver.is_running() {
            return;
        }
        // the last owner may be the sink, on the thread that the lanes need
        if !self.driver.is_current() {
            self.lanes.close(&self.shared.outages);
            self.leave();
        }
        self.shared.pool.close();
        self.driver.stop();
    }

    fn next_row(&self) -> Option<Row> {
        self.shared.execution_rows.next()
    }

    fn append(&self, append: Append) {
        let (ticket, upto) = (append.ticket, append.projection.last_seq);
        self.shared.newest_append.note(append.projection.updated_at);
        let refusal = |error| Acknowledgement { ticket, upto, result: Err(error) };
        let unavailable = |reason: &str| refusal(AppendError::Unavailable(Arc::from(reason)));
        let id = append.projection.header.id.clone();
        let mut job = match PreparedAppend::new(append) {
            Ok(prepared) => Job::Append(Box::new(prepared)),
            Err(error) => Job::Refuse(unavailable(&error.to_string())),
        };
        let owned = self.shared.membership.owned();
        if owned.as_ref().is_some_and(|owned| !owned.has(&id)) {
            job = Job::Refuse(refusal(AppendError::Lost));
        }
        let queued = self.lanes.queue(ticket.shard, job);
        // until here, the slot was not given away
        drop(owned);
        if queued.is_err()
            && let Some(sink) = self.shared.sink.get()
        {
            sink.committed(ticket.shard, vec![unavailable("the store is closed")]);
        }
    }

    fn store_snapshot(&self, shard: usize, snapshot: Snapshot) {
        let owned = self.shared.membership.owned();
        if owned.is_none_or(|owned| owned.has(&snapshot.execution)) {
            // snapshots are optional: lost if the store is closed
            let _ = self.lanes.queue(shard, Job::Snapshot(snapshot));
        }
    }

    fn is_writable(&self) -> bool {
        self.shared.outages.is_writable()
    }

    fn settled(&self) -> Written<()> {
        let earlier = self.lanes.marks();
        self.change(async move |shared| reached(earlier, shared.settings.patience).await.map(Ok))
    }

    fn change_timers(&self, shard: usize, mut changes: Vec<TimerChange>) {
        let owned = self.shared.membership.owned();
        if let Some(owned) = &owned {
            changes.retain(|change| match change {
                TimerChange::Arm(timer) => owned.has(&timer.execution),
                TimerChange::Disarm { execution, .. } => owned.has(execution),
            });
        }
        if self.lanes.queue(shard, Job::Timers(changes)).is_err() {
            log::error!("lost a change of timers: the store is closed");
        }
    }
}
