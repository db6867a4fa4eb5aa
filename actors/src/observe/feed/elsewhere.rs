//! Spans and log records of other processes, for an observer of this one.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use actix::{Context, Handler, Message};
use serde::{Deserialize, Serialize};

use super::{Feed, FeedHandle};
use crate::observe::log_record::LogRecord;
use crate::observe::span::{ObserverId, SpanEvent};

/// A batch for an observer, as its process got it from another one.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Observed {
    Spans {
        spans: Arc<[SpanEvent]>,
        /// Number of earlier ones lost because a process or a connection was behind.
        missed: u64,
    },
    Logs {
        logs: Arc<[Arc<LogRecord>]>,
        missed: u64,
    },
}

#[derive(Message)]
#[rtype(result = "bool")]
struct Pass(ObserverId, Observed);

#[derive(Message)]
#[rtype(result = "bool")]
struct IsRegistered(ObserverId);

impl FeedHandle {
    /// Passes a batch to an observer, and waits for room in the feed; returns false if the observer
    /// is removed.
    pub(crate) async fn pass(&self, id: ObserverId, observed: Observed) -> bool {
        self.feed.send(Pass(id, observed)).await.unwrap_or(false)
    }

    /// Returns true until the observer is removed.
    pub(crate) async fn is_registered(&self, id: ObserverId) -> bool {
        self.feed.send(IsRegistered(id)).await.unwrap_or(false)
    }

    /// Counts spans or records that an observer at another process misses.
    pub(crate) fn count_dropped(&self, count: u64) {
        self.shared.dropped.fetch_add(count, Ordering::Relaxed);
    }
}

impl Handler<Pass> for Feed {
    type Result = bool;

    fn handle(&mut self, Pass(id, observed): Pass, _: &mut Context<Self>) -> bool {
        let (stall, dropped) = (self.stall, &self.shared.dropped);
        let Some(subscription) = self.observers.get_mut(&id) else { return false };
        let is_kept = match observed {
            Observed::Spans { spans, missed } => {
                subscription.spans.missed += missed;
                subscription.offer_spans(&spans, stall, dropped)
            }
            Observed::Logs { logs, missed } => {
                subscription.logs.missed += missed;
                subscription.offer_logs(&logs, stall, dropped)
            }
        };
        if !is_kept {
            self.observers.remove(&id);
            self.count();
        }
        is_kept
    }
}

impl Handler<IsRegistered> for Feed {
    type Result = bool;

    fn handle(&mut self, IsRegistered(id): IsRegistered, _: &mut Context<Self>) -> bool {
        self.observers.contains_key(&id)
    }
}
