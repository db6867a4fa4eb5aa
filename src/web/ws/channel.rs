//! Channels: frames for all subscribers of one topic, encoded once.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::Waker;
use std::time::Duration;

use actix::Addr;
use greenroom_actors::Runtime;
use greenroom_actors::observe::disconnect::Disconnect;
use greenroom_actors::observe::span::ObserverFilter;
use greenroom_actors::ports::store::LogFilter;
use tokio::sync::watch;

use crate::web::backlog::Backlog;
use crate::web::subscriber_queue::Limits;
use crate::web::ws::broadcast::{Broadcast, Portion};
use crate::web::ws::frames::Frame;
use crate::web::ws::relay::{Flush, Relay, Stop};

/// Approximate bytes that a subscriber takes at once.
pub(super) const PORTION_BYTES: usize = 8 * 1024;

/// Subject of a channel.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Topic {
    /// Spans and log records of traces.
    Traces(ObserverFilter),
    Logs(LogFilter),
}

/// Channels with subscribers: one per topic, over all connections.
#[derive(Debug, Default)]
pub(crate) struct Channels {
    open: Mutex<Vec<Weak<Channel>>>,
}

/// Options of a new channel.
#[derive(Clone, Copy)]
pub(super) struct ChannelOptions<'a> {
    pub(super) runtime: &'a Arc<Runtime>,
    pub(super) limits: Limits,
    pub(super) backlog: &'a Backlog,
    /// True if spans include inputs and outputs.
    pub(super) content: bool,
    pub(super) stall_max: Duration,
}

pub(super) struct Channel {
    topic: Topic,
    broadcast: Mutex<Broadcast<Frame>>,
    relay: Addr<Relay>,
    /// True once the relay is registered with the runtime.
    is_ready: watch::Sender<bool>,
    /// True once all subscribers were disconnected; the channel takes no new ones.
    is_closed: watch::Sender<bool>,
}

/// Subscriber's end of a channel.
#[derive(Debug)]
pub(super) struct Subscription {
    channel: Arc<Channel>,
    id: u64,
}

impl Channels {
    /// Subscribes to a topic. Events published after this has resolved are not missed.
    pub(super) async fn subscribe(
        &self,
        topic: &Topic,
        disconnect: &Disconnect,
        options: ChannelOptions<'_>,
    ) -> Subscription {
        let channel = self.find_or_open(topic, options);
        // The channel owns the sender: it cannot be gone.
        let _ = channel.is_ready.subscribe().wait_for(|is_ready| *is_ready).await;
        let id = channel.broadcast().subscribe(Disconnect::clone(disconnect));
        Subscription { channel, id }
    }

    fn find_or_open(&self, topic: &Topic, options: ChannelOptions<'_>) -> Arc<Channel> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|channel| channel.strong_count() > 0);
        let mut known = open.iter().filter_map(Weak::upgrade);
        if let Some(channel) = known.find(|it| it.topic == *topic && !*it.is_closed.borrow()) {
            return channel;
        }
        let channel = Channel::open(topic.clone(), options);
        open.push(Arc::downgrade(&channel));
        channel
    }
}

impl Channel {
    fn open(topic: Topic, options: ChannelOptions<'_>) -> Arc<Self> {
        let ChannelOptions { runtime, limits, backlog, content, stall_max } = options;
        Relay::launch(Arc::clone(runtime), content, stall_max, |relay| {
            Arc::new(Self {
                topic,
                broadcast: Mutex::new(Broadcast::new(limits, backlog)),
                relay,
                is_ready: watch::Sender::new(false),
                is_closed: watch::Sender::new(false),
            })
        })
    }

    pub(super) fn topic(&self) -> &Topic {
        &self.topic
    }

    /// Marks the relay as registered.
    pub(super) fn set_ready(&self) {
        self.is_ready.send_replace(true);
    }

    /// Publishes frames to all subscribers, after `missed` lost events.
    pub(super) fn publish(&self, missed: u64, frames: impl Iterator<Item = Frame>) {
        let frames: Vec<Frame> = frames.collect();
        let waiting = {
            let mut broadcast = self.broadcast();
            broadcast.mark_lost(missed);
            for frame in frames {
                let bytes = frame.text.len();
                broadcast.publish(frame, bytes);
            }
            broadcast.take_wakers()
        };
        waiting.into_iter().for_each(Waker::wake);
    }

    /// Disconnects the subscribers that have taken nothing for so long.
    pub(super) fn disconnect_stalled(&self, stall_max: Duration) {
        let stalled = self.broadcast().stalled(stall_max);
        if !stalled.is_empty() {
            let count = stalled.len();
            log::info!(
                "disconnected {count} WebSocket subscribers: they read nothing for {stall_max:?}"
            );
        }
        stalled.iter().for_each(|disconnect| disconnect());
    }

    /// Disconnects all subscribers, and closes the channel.
    pub(super) fn disconnect_all(&self) {
        self.is_closed.send_replace(true);
        let disconnects = self.broadcast().disconnects();
        disconnects.iter().for_each(|disconnect| disconnect());
    }

    fn broadcast(&self) -> MutexGuard<'_, Broadcast<Frame>> {
        self.broadcast.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        // If the mailbox is full, the next message finds the channel gone.
        let _ = self.relay.try_send(Stop);
    }
}

impl std::fmt::Debug for Channel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Channel").field("topic", &self.topic).finish_non_exhaustive()
    }
}

impl Subscription {
    /// Waits for the next events.
    pub(super) async fn next(&self) -> Portion<Frame> {
        std::future::poll_fn(|cx| self.channel.broadcast().poll_take(self.id, PORTION_BYTES, cx))
            .await
    }

    /// Returns events before a number.
    pub(super) fn before(&self, upto: u64) -> Portion<Frame> {
        self.channel.broadcast().take(self.id, upto, PORTION_BYTES)
    }

    pub(super) fn has_all_before(&self, upto: u64) -> bool {
        self.channel.broadcast().has_taken(self.id, upto)
    }

    /// Returns the number after the last event that the runtime had published at the call.
    pub(super) async fn end(&self) -> u64 {
        // Queued behind the events in the mailbox. A relay that is gone publishes nothing.
        let _ = self.channel.relay.send(Flush).await;
        self.channel.broadcast().end()
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.channel.broadcast().unsubscribe(self.id);
    }
}
