//! Channels: what is told to everybody who asks for the same, written once for all of them.

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
use crate::web::outbox::Limits;
use crate::web::ws::frames::Frame;
use crate::web::ws::relay::{Flush, Relay, Silence};
use crate::web::ws::ring::{Portion, Ring};

/// Bytes that a listener takes at once.
pub(super) const PORTION_BYTES: usize = 8 * 1024;

/// What is asked for.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Topic {
    /// Spans and log records of traces.
    Traces(ObserverFilter),
    Logs(LogFilter),
}

/// All channels that somebody listens to. One for each topic, over all connections.
#[derive(Debug, Default)]
pub(crate) struct Channels {
    open: Mutex<Vec<Weak<Channel>>>,
}

/// How channels are made.
#[derive(Clone, Copy)]
pub(super) struct Making<'a> {
    pub(super) runtime: &'a Arc<Runtime>,
    pub(super) limits: Limits,
    pub(super) backlog: &'a Backlog,
    /// Whether spans are told with what was said in them.
    pub(super) content: bool,
    pub(super) stall_max: Duration,
}

pub(super) struct Channel {
    topic: Topic,
    ring: Mutex<Ring<Frame>>,
    relay: Addr<Relay>,
    /// Whether the runtime tells the relay everything.
    is_ready: watch::Sender<bool>,
    /// Ends the channel for those who are on it: nobody joins it any more.
    is_over: watch::Sender<bool>,
}

/// A listener's end.
#[derive(Debug)]
pub(super) struct Tap {
    channel: Arc<Channel>,
    id: u64,
}

impl Channels {
    /// Listens to a topic. What the runtime tells after this has resolved is not missed.
    pub(super) async fn join(
        &self,
        topic: &Topic,
        disconnect: &Disconnect,
        making: Making<'_>,
    ) -> Tap {
        let channel = self.find_or_open(topic, making);
        // The sender is the channel's own: it cannot have gone.
        let _ = channel.is_ready.subscribe().wait_for(|is_ready| *is_ready).await;
        let id = channel.ring().join(Disconnect::clone(disconnect));
        Tap { channel, id }
    }

    fn find_or_open(&self, topic: &Topic, making: Making<'_>) -> Arc<Channel> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|channel| channel.strong_count() > 0);
        let mut known = open.iter().filter_map(Weak::upgrade);
        if let Some(channel) = known.find(|it| it.topic == *topic && !*it.is_over.borrow()) {
            return channel;
        }
        let channel = Channel::open(topic.clone(), making);
        open.push(Arc::downgrade(&channel));
        channel
    }
}

impl Channel {
    fn open(topic: Topic, making: Making<'_>) -> Arc<Self> {
        let Making { runtime, limits, backlog, content, stall_max } = making;
        Relay::launch(Arc::clone(runtime), content, stall_max, |relay| {
            Arc::new(Self {
                topic,
                ring: Mutex::new(Ring::new(limits, backlog)),
                relay,
                is_ready: watch::Sender::new(false),
                is_over: watch::Sender::new(false),
            })
        })
    }

    pub(super) fn topic(&self) -> &Topic {
        &self.topic
    }

    /// From here on the relay hears of everything.
    pub(super) fn is_ready(&self) {
        self.is_ready.send_replace(true);
    }

    /// Tells everybody, who have missed so many events before.
    pub(super) fn tell(&self, missed: u64, frames: impl Iterator<Item = Frame>) {
        let frames: Vec<Frame> = frames.collect();
        let waiting = {
            let mut ring = self.ring();
            ring.miss(missed);
            for frame in frames {
                let bytes = frame.text.len();
                ring.say(frame, bytes);
            }
            ring.take_waiting()
        };
        waiting.into_iter().for_each(Waker::wake);
    }

    /// Ends the connections that have taken nothing for so long.
    pub(super) fn disconnect_stalled(&self, stall_max: Duration) {
        let stalled = self.ring().stalled(stall_max);
        if !stalled.is_empty() {
            log::info!("observers that took nothing for {stall_max:?} are cut: {}", stalled.len());
        }
        stalled.iter().for_each(|disconnect| disconnect());
    }

    /// Ends everybody's connection.
    pub(super) fn disconnect(&self) {
        self.is_over.send_replace(true);
        let disconnects = self.ring().disconnects();
        disconnects.iter().for_each(|disconnect| disconnect());
    }

    fn ring(&self) -> MutexGuard<'_, Ring<Frame>> {
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        // A full mailbox does as well: the next message finds the channel gone.
        let _ = self.relay.try_send(Silence);
    }
}

impl std::fmt::Debug for Channel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Channel").field("topic", &self.topic).finish_non_exhaustive()
    }
}

impl Tap {
    /// Waits for what comes next.
    pub(super) async fn next(&self) -> Portion<Frame> {
        std::future::poll_fn(|cx| self.channel.ring().poll_take(self.id, PORTION_BYTES, cx)).await
    }

    /// What there is before a number.
    pub(super) fn before(&self, upto: u64) -> Portion<Frame> {
        self.channel.ring().take(self.id, upto, PORTION_BYTES)
    }

    pub(super) fn has_all_before(&self, upto: u64) -> bool {
        self.channel.ring().has_taken(self.id, upto)
    }

    /// The number after the last event that the runtime had told when this was called.
    pub(super) async fn end(&self) -> u64 {
        // Behind everything else in the mailbox; a relay that has gone tells no more.
        let _ = self.channel.relay.send(Flush).await;
        self.channel.ring().end()
    }
}

impl Drop for Tap {
    fn drop(&mut self) {
        self.channel.ring().leave(self.id);
    }
}
