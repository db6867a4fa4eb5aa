//! What one client is told, in order: a word, what was before, what comes; and again after it has
//! asked for something else.

use std::collections::VecDeque;
use std::sync::Arc;

use actix::{AsyncContext, StreamHandler};
use bytestring::ByteString;
use futures_util::{Stream, stream};
use greenroom_actors::Runtime;
use greenroom_actors::observe::disconnect::Disconnect;
use tokio::sync::mpsc;

use crate::api::ApiError;
use crate::api::wire::envelope::DroppedFrame;
use crate::web::backlog::Held;
use crate::web::peer::Room;
use crate::web::settings::Settings;
use crate::web::ws::channel::{Channels, Making, PORTION_BYTES, Tap, Topic};
use crate::web::ws::frames::Frame;
use crate::web::ws::history::History;
use crate::web::ws::ring::Portion;
use crate::web::ws::seam::Seam;
use crate::web::ws::session::{Conversation, Ctx, Session, send};

/// Wishes of a client that may wait until it has read what comes before them.
const WISHES_MAX: usize = 16;

/// What a client asks for.
pub(super) struct Wish {
    pub(super) topic: Topic,
    pub(super) history: History,
    /// Said first, when nothing of the topic escapes the client any more.
    pub(super) word: Option<ByteString>,
}

/// Texts for a client, and how many events were lost before them.
pub(super) struct Said {
    missed: u64,
    texts: Vec<ByteString>,
}

/// Where wishes are told.
#[derive(Debug, Clone)]
pub(super) struct Wishes(mpsc::Sender<Wish>);

impl Wishes {
    /// Tells of a wish, or gives the words for why it is not fulfilled.
    pub(super) fn tell(&self, wish: Result<Wish, ApiError>) -> Result<(), String> {
        let wish = wish.map_err(|refusal| refusal.to_string())?;
        self.0.try_send(wish).map_err(|_| "Too many messages at once".to_owned())
    }
}

/// Where events and records come from.
pub(super) struct Source {
    pub(super) runtime: Arc<Runtime>,
    pub(super) channels: Arc<Channels>,
}

/// Tells one client. Runs only while the client reads.
pub(super) struct Listening {
    runtime: Arc<Runtime>,
    channels: Arc<Channels>,
    settings: Arc<Settings>,
    disconnect: Disconnect,
    room: Room,
    wishes: mpsc::Receiver<Wish>,
    /// In order. The last one goes on; those before it end.
    parts: VecDeque<Part>,
}

struct Part {
    word: Option<ByteString>,
    history: History,
    /// Texts of the history that are not said yet.
    past: VecDeque<ByteString>,
    /// Counts them as waiting, until the last one has left.
    held: Option<Held>,
    seam: Seam,
    tap: Tap,
    /// Where the next part begins, if there is one.
    upto: Option<u64>,
}

impl Listening {
    /// Fulfils wishes one after the other, from the first on.
    pub(super) fn new(
        first: Wish,
        Source { runtime, channels }: Source,
        settings: Arc<Settings>,
        disconnect: Disconnect,
        room: Room,
    ) -> (Self, Wishes) {
        let (sender, wishes) = mpsc::channel(WISHES_MAX);
        let told = Wishes(sender);
        // There is room for the first.
        let _ = told.tell(Ok(first));
        (
            Self { runtime, channels, settings, disconnect, room, wishes, parts: VecDeque::new() },
            told,
        )
    }

    /// Everything in order. Waits for the client: what it is told next is taken when what it was
    /// told before has gone.
    pub(super) fn said(self) -> impl Stream<Item = Said> {
        stream::unfold(self, async |mut listening| {
            let said = listening.next().await?;
            Some((said, listening))
        })
    }

    async fn next(&mut self) -> Option<Said> {
        loop {
            self.room.wait().await;
            match self.parts.front_mut() {
                None => {
                    let wish = self.wishes.recv().await?;
                    self.take_up(wish).await;
                }
                Some(part) => {
                    if let Some(said) = part.ready(&self.runtime, &self.settings).await {
                        return Some(said);
                    }
                    if part.upto.is_some() {
                        self.parts.pop_front();
                        continue;
                    }
                    tokio::select! {
                        biased;
                        wish = self.wishes.recv() => {
                            let wish = wish?;
                            self.take_up(wish).await;
                        }
                        portion = part.tap.next() => {
                            if let Some(said) = part.live(portion) {
                                return Some(said);
                            }
                        }
                    }
                }
            }
        }
    }

    /// Listens to something else from here on. The new is there before the old ends: what comes
    /// under both may come twice in between, and nothing is missed.
    async fn take_up(&mut self, wish: Wish) {
        let Wish { topic, history, word } = wish;
        let config = &self.settings.config;
        let making = Making {
            runtime: &self.runtime,
            limits: self.settings.queue_limits(),
            backlog: &self.settings.backlog,
            content: config.observed_content,
            stall_max: config.subscriber_stall,
        };
        let tap = self.channels.join(&topic, &self.disconnect, making).await;
        if let Some(last) = self.parts.back_mut() {
            last.upto = Some(last.tap.end().await);
        }
        let (past, held, seam, upto) = (VecDeque::new(), None, Seam::default(), None);
        self.parts.push_back(Part { word, history, past, held, seam, tap, upto });
    }
}

impl Part {
    /// What can be said without waiting for something to happen.
    async fn ready(&mut self, runtime: &Runtime, settings: &Settings) -> Option<Said> {
        if let Some(word) = self.word.take() {
            return Some(Said { missed: 0, texts: vec![word] });
        }
        if self.past.is_empty() {
            self.held = None;
        }
        let history = std::mem::take(&mut self.history);
        if let Some(read) = history.read(runtime, settings).await {
            (self.past, self.held, self.seam) = (read.texts.into(), read.held, read.seam);
        }
        if !self.past.is_empty() {
            return Some(self.next_of_past());
        }
        let upto = self.upto?;
        while !self.tap.has_all_before(upto) {
            let portion = self.tap.before(upto);
            if let Some(said) = self.live(portion) {
                return Some(said);
            }
        }
        None
    }

    fn next_of_past(&mut self) -> Said {
        let (mut texts, mut bytes) = (Vec::new(), 0);
        while bytes < PORTION_BYTES {
            let Some(text) = self.past.pop_front() else { break };
            bytes += text.len();
            texts.push(text);
        }
        Said { missed: 0, texts }
    }

    /// Leaves out what the history has told; none when that is all.
    fn live(&mut self, portion: Portion<Frame>) -> Option<Said> {
        let Portion { missed, mut items } = portion;
        items.retain(|frame| !self.seam.is_repeat(frame));
        let texts: Vec<_> = items.into_iter().map(|frame| frame.text).collect();
        (missed > 0 || !texts.is_empty()).then_some(Said { missed, texts })
    }
}

/// Has a session say what its client is told.
pub(super) fn say_all<C>(listening: Listening, ctx: &mut Ctx<C>)
where
    C: Conversation,
{
    ctx.add_stream(listening.said());
}

impl<C: Conversation> StreamHandler<Said> for Session<C> {
    fn handle(&mut self, said: Said, ctx: &mut Self::Context) {
        if said.missed > 0 {
            self.count_missed(said.missed);
            send(ctx, &DroppedFrame::of(said.missed));
        }
        said.texts.into_iter().for_each(|text| ctx.text(text));
    }
}
