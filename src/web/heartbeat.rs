//! The heartbeat of event streams: the comment that keeps an idle stream open, and the time after
//! which a client that reads nothing counts as stalled.

use std::time::Duration;

use actix_web::web::Bytes;
use greenroom_actors::observe::disconnect::Disconnect;

use crate::web::settings::WebConfig;
use crate::web::subscriber_queue::{SubscriberQueue, Weight};

/// Comment that keeps an idle stream open.
const KEEP_ALIVE: &[u8] = b": keep-alive\n\n";

/// Heartbeat of one stream.
#[derive(Debug)]
pub(crate) struct Heartbeat {
    /// Time from one beat to the next.
    interval: Duration,
    /// Time without reading after which a client is disconnected.
    stall_max: Duration,
    /// True while a check of the client is due.
    is_checking: bool,
}

/// Outcome of a check of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reading {
    /// It is not behind.
    Current,
    /// It is behind, and has read something not long ago.
    Behind,
    /// It has read nothing for this time, and is to be disconnected.
    Stalled(Duration),
}

impl Heartbeat {
    pub(crate) fn of(config: &WebConfig) -> Self {
        let WebConfig { heartbeat: interval, subscriber_stall: stall_max, .. } = *config;
        Self { interval, stall_max, is_checking: false }
    }

    pub(crate) fn interval(&self) -> Duration {
        self.interval
    }

    pub(crate) fn stall_max(&self) -> Duration {
        self.stall_max
    }

    /// Queues a comment if nothing else is to be sent.
    pub(crate) fn beat(queue: &SubscriberQueue<Bytes>) {
        if queue.is_empty() {
            queue.push(Bytes::from_static(KEEP_ALIVE), Weight::NONE);
        }
    }

    /// Returns whether the client of a queue reads.
    pub(crate) fn reading(&self, queue: &SubscriberQueue<Bytes>) -> Reading {
        self.rate(queue.stalled_for())
    }

    /// Returns the time until the client of a queue can have stalled, for a check then; `None` if a
    /// check is due already.
    pub(crate) fn begin_check(&mut self, queue: &SubscriberQueue<Bytes>) -> Option<Duration> {
        let is_due = std::mem::replace(&mut self.is_checking, true);
        (!is_due).then(|| self.stall_max.saturating_sub(queue.stalled_for().unwrap_or_default()))
    }

    /// Makes the check that was due.
    pub(crate) fn check(&mut self, queue: &SubscriberQueue<Bytes>) -> Reading {
        self.is_checking = false;
        self.reading(queue)
    }

    /// Watches a queue that has ended until its client has read it all; disconnects a client that takes
    /// nothing for the whole time.
    pub(crate) fn watch_end(&self, queue: SubscriberQueue<Bytes>, disconnect: Disconnect) {
        let stall_max = self.stall_max;
        actix_web::rt::spawn(async move {
            while queue.has_receiver() && !queue.is_empty() {
                let left = queue.len();
                tokio::time::sleep(stall_max).await;
                if queue.has_receiver() && queue.len() == left {
                    log::info!(
                        "disconnected a client at the end of its stream: it read nothing for \
                         {stall_max:?}"
                    );
                    disconnect();
                    return;
                }
            }
        });
    }

    fn rate(&self, stall: Option<Duration>) -> Reading {
        match stall {
            Some(stall) if stall >= self.stall_max => Reading::Stalled(stall),
            Some(_) => Reading::Behind,
            None => Reading::Current,
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::{FutureExt as _, StreamExt as _};

    use super::*;
    use crate::web::backlog::Backlog;
    use crate::web::subscriber_queue::{Delivery, Limits};

    const STALL_MAX: Duration = Duration::from_secs(30);

    fn heartbeat() -> Heartbeat {
        Heartbeat::of(&WebConfig { subscriber_stall: STALL_MAX, ..WebConfig::default() })
    }

    fn queue() -> SubscriberQueue<Bytes> {
        SubscriberQueue::new(Limits { events: 1, bytes: 10 }, &Backlog::alone(1000))
    }

    #[test]
    fn a_client_is_stalled_once_it_has_read_nothing_for_the_whole_time() {
        let shorter = STALL_MAX - Duration::from_millis(1);
        let rows = [
            (None, Reading::Current),
            (Some(Duration::ZERO), Reading::Behind),
            (Some(shorter), Reading::Behind),
            (Some(STALL_MAX), Reading::Stalled(STALL_MAX)),
            (Some(2 * STALL_MAX), Reading::Stalled(2 * STALL_MAX)),
        ];
        for (stall, reading) in rows {
            assert_eq!(heartbeat().rate(stall), reading, "{stall:?}");
        }
    }

    #[actix_web::test]
    async fn only_an_idle_stream_has_a_comment() {
        let queue = queue();
        let mut client = queue.receiver(|| ());
        Heartbeat::beat(&queue);
        Heartbeat::beat(&queue);
        let comment = Delivery::Item(Bytes::from_static(KEEP_ALIVE));
        assert_eq!(client.next().now_or_never(), Some(Some(comment)));
        assert_eq!(client.next().now_or_never(), None, "one is enough for a client that is behind");
    }

    #[actix_web::test]
    async fn one_check_at_a_time_is_due_when_the_client_can_have_stalled() {
        tokio::time::pause();
        let (mut heartbeat, queue) = (heartbeat(), queue());
        let _client = queue.receiver(|| ());
        assert_eq!(heartbeat.begin_check(&queue), Some(STALL_MAX));
        assert_eq!(heartbeat.begin_check(&queue), None);
        assert_eq!(heartbeat.check(&queue), Reading::Current);
        let one = Weight { events: 1, bytes: 1 };
        assert!(queue.push(Bytes::from_static(b"a"), one));
        assert!(!queue.push(Bytes::from_static(b"b"), one));
        tokio::time::advance(STALL_MAX / 3).await;
        assert_eq!(heartbeat.begin_check(&queue), Some(STALL_MAX - STALL_MAX / 3));
        assert_eq!(heartbeat.check(&queue), Reading::Behind);
        tokio::time::advance(STALL_MAX - STALL_MAX / 3).await;
        assert_eq!(heartbeat.begin_check(&queue), Some(Duration::ZERO));
        assert_eq!(heartbeat.check(&queue), Reading::Stalled(STALL_MAX));
    }
}
