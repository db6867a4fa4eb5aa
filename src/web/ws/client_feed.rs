//! Messages to one client, in order: a greeting, the history, live events; and the same again after
//! each change of its subscription.

use std::collections::VecDeque;
use std::sync::Arc;

use actix::{AsyncContext, StreamHandler};
use bytestring::ByteString;
use futures_util::{Stream, stream};
use greenroom_actors::Runtime;
use greenroom_actors::observe::disconnect::Disconnect;
use greenroom_actors::visibility::Visibility;
use tokio::sync::mpsc;

use crate::api::ApiError;
use crate::api::wire::envelope::{DroppedFrame, ErrorFrame};
use crate::web::backlog::Held;
use crate::web::peer::SendBuffer;
use crate::web::settings::Settings;
use crate::web::ws::broadcast::Portion;
use crate::web::ws::channel::{ChannelOptions, Channels, PORTION_BYTES, Subscription, Topic};
use crate::web::ws::deduplicator::Deduplicator;
use crate::web::ws::frames::Frame;
use crate::web::ws::history::History;
use crate::web::ws::session::{Ctx, Session, SocketHandler, send};

/// Maximum number of unhandled requests of a client.
const REQUESTS_MAX: usize = 16;

/// Request of a client to subscribe to a topic, instead of its current one.
pub(super) struct TopicRequest {
    pub(super) topic: Topic,
    pub(super) history: History,
    /// First message, sent once no event of the topic can be missed.
    pub(super) greeting: Option<ByteString>,
}

/// Texts for a client, and the number of events lost before them.
pub(super) struct Messages {
    missed: u64,
    texts: Vec<ByteString>,
}

/// Sender of requests to a feed.
#[derive(Debug, Clone)]
pub(super) struct TopicRequests(mpsc::Sender<TopicRequest>);

impl TopicRequests {
    /// Sends a request, or returns the text of its refusal.
    pub(super) fn send(&self, request: Result<TopicRequest, ApiError>) -> Result<(), String> {
        let request = request.map_err(|refusal| refusal.to_string())?;
        self.0.try_send(request).map_err(|_| "Too many messages at once".to_owned())
    }
}

/// Sources of history and live events.
pub(super) struct Source {
    pub(super) runtime: Arc<Runtime>,
    pub(super) channels: Arc<Channels>,
}

/// Messages to one client. Runs only while the client reads.
pub(super) struct ClientFeed {
    runtime: Arc<Runtime>,
    channels: Arc<Channels>,
    settings: Arc<Settings>,
    disconnect: Disconnect,
    send_buffer: SendBuffer,
    requests: mpsc::Receiver<TopicRequest>,
    /// In order. The last one is live; those before it end.
    segments: VecDeque<Segment>,
}

struct Segment {
    greeting: Option<ByteString>,
    history: History,
    /// Texts of the history that are not sent yet.
    past: VecDeque<ByteString>,
    /// Counts them in the backlog until the last one has been sent.
    held: Option<Held>,
    deduplicator: Deduplicator,
    subscription: Subscription,
    /// Beginning of the next segment, if there is one.
    upto: Option<u64>,
}

impl ClientFeed {
    /// Returns the feed of a first request, and the sender of further ones.
    pub(super) fn new(
        first: TopicRequest,
        Source { runtime, channels }: Source,
        settings: Arc<Settings>,
        disconnect: Disconnect,
        send_buffer: SendBuffer,
    ) -> (Self, TopicRequests) {
        let (sender, requests) = mpsc::channel(REQUESTS_MAX);
        let sender = TopicRequests(sender);
        // The channel is empty: it has room.
        let _ = sender.send(Ok(first));
        (
            Self {
                runtime,
                channels,
                settings,
                disconnect,
                send_buffer,
                requests,
                segments: VecDeque::new(),
            },
            sender,
        )
    }

    /// Returns all messages in order. The next ones are taken only when the previous ones have been
    /// sent.
    pub(super) fn into_stream(self) -> impl Stream<Item = Messages> {
        stream::unfold(self, async |mut feed| {
            let messages = feed.next().await?;
            Some((messages, feed))
        })
    }

    async fn next(&mut self) -> Option<Messages> {
        loop {
            self.send_buffer.writable().await;
            match self.segments.front_mut() {
                None => {
                    let request = self.requests.recv().await?;
                    self.switch_to(request).await;
                }
                Some(segment) => {
                    if let Some(messages) = segment.ready(&self.runtime, &self.settings).await {
                        return Some(messages);
                    }
                    if segment.upto.is_some() {
                        self.segments.pop_front();
                        continue;
                    }
                    tokio::select! {
                        biased;
                        request = self.requests.recv() => {
                            let request = request?;
                            self.switch_to(request).await;
                        }
                        portion = segment.subscription.next() => {
                            if let Some(messages) = segment.live(portion) {
                                return Some(messages);
                            }
                        }
                    }
                }
            }
        }
    }

    /// Switches to another topic. The new subscription begins before the old one ends: events of
    /// both may be sent twice in between, and none is missed.
    async fn switch_to(&mut self, request: TopicRequest) {
        let TopicRequest { topic, history, greeting } = request;
        let config = &self.settings.config;
        let options = ChannelOptions {
            runtime: &self.runtime,
            limits: self.settings.queue_limits(),
            backlog: &self.settings.backlog,
            content: config.observed_content,
            stall_max: config.subscriber_stall,
        };
        let subscription = self.channels.subscribe(&topic, &self.disconnect, options).await;
        if let Some(last) = self.segments.back_mut() {
            last.upto = Some(last.subscription.end().await);
        }
        let (past, held, deduplicator, upto) =
            (VecDeque::new(), None, Deduplicator::default(), None);
        self.segments.push_back(Segment {
            greeting,
            history,
            past,
            held,
            deduplicator,
            subscription,
            upto,
        });
    }
}

impl Segment {
    /// Returns messages that are available without waiting for an event.
    async fn ready(&mut self, runtime: &Runtime, settings: &Settings) -> Option<Messages> {
        if let Some(greeting) = self.greeting.take() {
            return Some(Messages { missed: 0, texts: vec![greeting] });
        }
        if self.past.is_empty() {
            self.held = None;
        }
        let history = std::mem::take(&mut self.history);
        if let Some(read) = history.read(runtime, settings).await {
            (self.past, self.held, self.deduplicator) =
                (read.texts.into(), read.held, read.deduplicator);
        }
        if !self.past.is_empty() {
            return Some(self.next_of_past());
        }
        let upto = self.upto?;
        while !self.subscription.has_all_before(upto) {
            let portion = self.subscription.before(upto);
            if let Some(messages) = self.live(portion) {
                return Some(messages);
            }
        }
        None
    }

    fn next_of_past(&mut self) -> Messages {
        let (mut texts, mut bytes) = (Vec::new(), 0);
        while bytes < PORTION_BYTES {
            let Some(text) = self.past.pop_front() else { break };
            bytes += text.len();
            texts.push(text);
        }
        Messages { missed: 0, texts }
    }

    /// Returns live messages without those of the history; `None` if none are left.
    fn live(&mut self, portion: Portion<Frame>) -> Option<Messages> {
        let Portion { missed, mut items } = portion;
        items.retain(|frame| !self.deduplicator.is_repeat(frame));
        let texts: Vec<_> = items.into_iter().map(|frame| frame.text).collect();
        (missed > 0 || !texts.is_empty()).then_some(Messages { missed, texts })
    }
}

/// The feed of a session, which its client can change.
pub(super) struct FeedSession {
    /// `None` once it has started.
    feed: Option<ClientFeed>,
    requests: TopicRequests,
    /// Visibility of the caller.
    pub(super) visibility: Visibility,
}

impl FeedSession {
    pub(super) fn new(
        (feed, requests): (ClientFeed, TopicRequests),
        visibility: Visibility,
    ) -> Self {
        Self { feed: Some(feed), requests, visibility }
    }

    /// Starts to send the feed to the client.
    pub(super) fn start<C: SocketHandler>(&mut self, ctx: &mut Ctx<C>) {
        if let Some(feed) = self.feed.take() {
            ctx.add_stream(feed.into_stream());
        }
    }

    /// Sends a request to the feed, or its refusal to the client. Returns true if the feed has it.
    pub(super) fn change<C: SocketHandler>(
        &self,
        request: Result<TopicRequest, ApiError>,
        ctx: &mut Ctx<C>,
    ) -> bool {
        let sent = self.requests.send(request);
        if let Err(why) = &sent {
            send(ctx, &ErrorFrame::of(why));
        }
        sent.is_ok()
    }
}

impl<C: SocketHandler> StreamHandler<Messages> for Session<C> {
    fn handle(&mut self, messages: Messages, ctx: &mut Self::Context) {
        if messages.missed > 0 {
            self.count_missed(messages.missed);
            send(ctx, &DroppedFrame::of(messages.missed));
        }
        messages.texts.into_iter().for_each(|text| ctx.text(text));
    }
}
