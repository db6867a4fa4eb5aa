//! The side of a connection that sends requests and receives their answers.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use futures_util::Stream;
use greenroom_actors::ports::links::LinkError;
use tokio::sync::{Notify, mpsc};

use crate::connection::Side;
use crate::frame::{Carried, Control, Credit, Frame, Number, Violation};
use crate::limits::Limits;
use crate::outbox::{Outbox, Rank, Taken};

/// The asking side of a connection, until it is lost.
#[derive(Debug)]
pub(crate) struct Asking {
    limits: Limits,
    state: Mutex<State>,
    /// Wakes the writer of the connection.
    filled: Notify,
}

#[derive(Debug, Default)]
struct State {
    outbox: Outbox,
    exchanges: HashMap<Number, Asked>,
    /// Number of the last exchange.
    last: Number,
    is_lost: bool,
}

/// An open exchange.
#[derive(Debug)]
struct Asked {
    /// Bounded by the window: the answerer sends no more than there is room for.
    answers: mpsc::UnboundedSender<Received>,
    /// True once the request may reach the answerer as a whole.
    is_sent: bool,
    /// Parts of the answer that is being received.
    partial: Vec<u8>,
    /// Answers that have arrived and are not read.
    unread: Credit,
    /// Answers that were read and that the answerer does not know of.
    read: Credit,
}

/// Word to the reader of an exchange. A channel that ends without a failure: all answers are there.
#[derive(Debug)]
enum Received {
    Answer(Vec<u8>),
    Failed(LinkError),
}

impl Asking {
    pub(crate) fn new(limits: Limits) -> Arc<Self> {
        Arc::new(Self { limits, state: Mutex::default(), filled: Notify::new() })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the size of the requests that wait to be sent.
    pub(crate) fn queued_bytes(&self) -> usize {
        self.state().outbox.queued_bytes()
    }

    /// Sends a request.
    pub(crate) fn ask(self: &Arc<Self>, request: Bytes) -> Result<Answers, LinkError> {
        if request.len() > self.limits.message_bytes_max {
            let (bytes, most) = (request.len(), self.limits.message_bytes_max);
            log::warn!("a request of {bytes} bytes is not sent: {most} are allowed on links");
            return Err(LinkError::TooLarge);
        }
        let mut state = self.state();
        let queued_bytes = state.outbox.queued_bytes() + request.len();
        if state.is_lost
            || queued_bytes > self.limits.queued_bytes_max()
            || state.exchanges.len() >= Limits::EXCHANGES_MAX
        {
            return Err(LinkError::NotSent);
        }
        state.last += 1;
        let number = state.last;
        let (answers, received) = mpsc::unbounded_channel();
        let asked = Asked {
            answers,
            is_sent: false,
            partial: Vec::new(),
            unread: Credit::default(),
            read: Credit::default(),
        };
        state.exchanges.insert(number, asked);
        state.outbox.push(Rank::Urgent, Carried::Request, number, request);
        drop(state);
        self.filled.notify_one();
        Ok(Answers { link: Arc::clone(self), number, received, is_over: false })
    }

    /// Returns true if there are no exchanges and nothing waits to be sent.
    #[cfg(test)]
    pub(crate) fn is_idle(&self) -> bool {
        let state = self.state();
        state.exchanges.is_empty() && state.outbox.is_empty()
    }

    /// Ends all exchanges: the connection is lost.
    pub(crate) fn lose(&self) {
        let exchanges = {
            let mut state = self.state();
            state.is_lost = true;
            state.outbox = Outbox::default();
            std::mem::take(&mut state.exchanges)
        };
        for asked in exchanges.into_values() {
            let error = if asked.is_sent { LinkError::Lost } else { LinkError::NotSent };
            // an error: the reader is gone
            let _ = asked.answers.send(Received::Failed(error));
        }
    }

    /// Notes that an answer was read.
    fn note_read(&self, number: Number, bytes: usize) {
        let mut state = self.state();
        let Some(asked) = state.exchanges.get_mut(&number) else { return };
        let message = Credit::of_message(bytes);
        asked.unread.subtract(message);
        asked.read.add(message);
        if asked.read.is_worth_a_frame() {
            let room = std::mem::take(&mut asked.read);
            state.outbox.push_control(Control::Room(number, room));
            drop(state);
            self.filled.notify_one();
        }
    }

    /// Closes an exchange whose answers are no longer wanted.
    fn leave(&self, number: Number) {
        let mut state = self.state();
        let left = state.exchanges.remove(&number);
        let is_known_there = left.is_some() && state.outbox.remove(number).unwrap_or(true);
        if is_known_there {
            state.outbox.push_control(Control::Gone(number));
        }
        // the end of its channel wakes the reader
        drop(state);
        drop(left);
        if is_known_there {
            self.filled.notify_one();
        }
    }

    /// Adds a part of an answer. An exchange that was left is unknown.
    fn receive_part(
        &self,
        number: Number,
        is_last: bool,
        bytes: &BytesMut,
    ) -> Result<(), Violation> {
        let mut state = self.state();
        let Some(asked) = state.exchanges.get_mut(&number) else { return Ok(()) };
        if asked.partial.len() + bytes.len() > self.limits.message_bytes_max {
            return Err(Violation::MessageTooLarge);
        }
        if !asked.unread.leaves_room() {
            return Err(Violation::NoRoom);
        }
        asked.partial.extend_from_slice(bytes);
        if !is_last {
            return Ok(());
        }
        let answer = std::mem::take(&mut asked.partial);
        asked.unread.add(Credit::of_message(answer.len()));
        let answers = asked.answers.clone();
        // the reader may run at once, and ask for the state
        drop(state);
        // an error: the reader is gone, and leaves the exchange
        let _ = answers.send(Received::Answer(answer));
        Ok(())
    }

    /// Ends an exchange as the answerer says.
    fn end(&self, number: Number, error: Option<LinkError>) {
        let asked = self.state().exchanges.remove(&number);
        if let (Some(asked), Some(error)) = (asked, error) {
            // an error: the reader is gone
            let _ = asked.answers.send(Received::Failed(error));
        }
    }
}

impl Side for Asking {
    fn receive(&self, frame: Frame) -> Result<(), Violation> {
        match frame {
            Frame::Control(Control::Ping) => Ok(()),
            Frame::Control(Control::Ended(number)) => {
                self.end(number, None);
                Ok(())
            }
            Frame::Control(Control::Failed(number)) => {
                self.end(number, Some(LinkError::Failed));
                Ok(())
            }
            Frame::Part { carried: Carried::Answer, number, is_last, bytes } => {
                self.receive_part(number, is_last, &bytes)
            }
            Frame::Part { carried: Carried::Request, .. }
            | Frame::Control(Control::Gone(_) | Control::Room(..)) => Err(Violation::Direction),
        }
    }

    fn take(&self, to: &mut Vec<u8>) -> bool {
        let mut state = self.state();
        let Some(taken) = state.outbox.take(to) else { return false };
        if let Taken::Last(number) = taken
            && let Some(asked) = state.exchanges.get_mut(&number)
        {
            asked.is_sent = true;
        }
        true
    }

    fn push_ping(&self) {
        self.state().outbox.push_ping();
        self.filled.notify_one();
    }

    fn filled(&self) -> &Notify {
        &self.filled
    }
}

/// The answers to one request.
#[derive(Debug)]
pub(crate) struct Answers {
    link: Arc<Asking>,
    number: Number,
    received: mpsc::UnboundedReceiver<Received>,
    is_over: bool,
}

impl Stream for Answers {
    type Item = Result<Vec<u8>, LinkError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.is_over {
            return Poll::Ready(None);
        }
        match ready!(self.received.poll_recv(context)) {
            Some(Received::Answer(answer)) => {
                self.link.note_read(self.number, answer.len());
                Poll::Ready(Some(Ok(answer)))
            }
            Some(Received::Failed(error)) => {
                self.is_over = true;
                Poll::Ready(Some(Err(error)))
            }
            None => {
                self.is_over = true;
                Poll::Ready(None)
            }
        }
    }
}

impl Drop for Answers {
    fn drop(&mut self) {
        self.link.leave(self.number);
    }
}

#[cfg(test)]
mod tests;
