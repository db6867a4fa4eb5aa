//! The side of a connection that receives requests and sends their answers.

use std::collections::HashMap;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::BytesMut;
use futures_util::StreamExt as _;
use greenroom_actors::domain::cluster::NodeId;
use greenroom_actors::ports::links::Answerer;
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::task::AbortHandle;

use crate::connection::Side;
use crate::frame::{Carried, Control, Credit, Frame, Number, Violation};
use crate::limits::Limits;
use crate::outbox::{Outbox, Rank, Taken};

/// The answering side of a connection. Each exchange is a task on the thread of answers.
pub(crate) struct Answering {
    from: NodeId,
    answerer: Arc<dyn Answerer>,
    tasks: Handle,
    limits: Limits,
    state: Mutex<State>,
    /// Wakes the writer of the connection.
    filled: Notify,
}

#[derive(Default)]
struct State {
    outbox: Outbox,
    exchanges: HashMap<Number, Exchange>,
    /// Size of the requests that have arrived in part.
    partial_bytes: usize,
    /// Tasks that wait for room, by their exchanges.
    waiting: HashMap<Number, Waker>,
}

enum Exchange {
    /// The request arrives.
    Receiving(Vec<u8>),
    Answering(Answered),
}

/// An exchange whose answers are being sent.
struct Answered {
    task: AbortHandle,
    /// Answers that were sent and that the asker has not read, as far as is known here.
    under_way: Credit,
    /// True while an answer is in the outbox.
    is_sending: bool,
    has_answered: bool,
}

impl State {
    /// Returns true if the outbox takes another message.
    fn has_room(&self, limits: Limits) -> bool {
        self.outbox.queued_bytes() < limits.queued_bytes_max()
            && self.outbox.controls() < Limits::CONTROLS_MAX
    }

    fn wake(&mut self, number: Number) {
        if let Some(waker) = self.waiting.remove(&number) {
            waker.wake();
        }
    }

    /// Removes an exchange; returns false if there is no such one.
    fn remove(&mut self, number: Number) -> bool {
        self.waiting.remove(&number);
        self.outbox.remove(number);
        match self.exchanges.remove(&number) {
            Some(Exchange::Receiving(partial)) => self.partial_bytes -= partial.len(),
            Some(Exchange::Answering(answered)) => answered.task.abort(),
            None => return false,
        }
        true
    }
}

impl Answering {
    pub(crate) fn new(
        from: NodeId,
        answerer: Arc<dyn Answerer>,
        tasks: Handle,
        limits: Limits,
    ) -> Arc<Self> {
        let (state, filled) = (Mutex::default(), Notify::new());
        Arc::new(Self { from, answerer, tasks, limits, state, filled })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the state; if there is room only since then, wakes the tasks that wait for it.
    fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.state();
        let had_room = state.has_room(self.limits);
        let changed = change(&mut state);
        if !had_room && state.has_room(self.limits) {
            state.waiting.drain().for_each(|(_, waker)| waker.wake());
        }
        changed
    }

    /// Returns true if there are no exchanges and nothing waits to be sent.
    #[cfg(test)]
    pub(crate) fn is_idle(&self) -> bool {
        let state = self.state();
        let is_counted_right = state.partial_bytes == 0 && state.waiting.is_empty();
        state.exchanges.is_empty() && state.outbox.is_empty() && is_counted_right
    }

    /// Ends all exchanges: the connection is lost.
    pub(crate) fn lose(&self) {
        let mut state = self.state();
        state.outbox = Outbox::default();
        let numbers: Vec<Number> = state.exchanges.keys().copied().collect();
        for number in numbers {
            state.remove(number);
        }
    }

    fn receive_part(
        self: &Arc<Self>,
        number: Number,
        is_last: bool,
        bytes: &BytesMut,
    ) -> Result<(), Violation> {
        let mut state = self.state();
        if !state.exchanges.contains_key(&number) && state.exchanges.len() >= Limits::EXCHANGES_MAX
        {
            return Err(Violation::TooManyExchanges);
        }
        let partial_bytes = state.partial_bytes + bytes.len();
        let unknown = || Exchange::Receiving(Vec::new());
        let Exchange::Receiving(partial) = state.exchanges.entry(number).or_insert_with(unknown)
        else {
            return Err(Violation::NumberUsed);
        };
        if partial.len() + bytes.len() > self.limits.message_bytes_max {
            return Err(Violation::MessageTooLarge);
        }
        if partial_bytes > self.limits.queued_bytes_max() {
            return Err(Violation::TooManyBytes);
        }
        partial.extend_from_slice(bytes);
        if is_last {
            let request = std::mem::take(partial);
            state.partial_bytes = partial_bytes - request.len();
            let answering = Arc::clone(self).answer(number, request);
            let answered = Answered {
                task: self.tasks.spawn(answering).abort_handle(),
                under_way: Credit::default(),
                is_sending: false,
                has_answered: false,
            };
            state.exchanges.insert(number, Exchange::Answering(answered));
        } else {
            state.partial_bytes = partial_bytes;
        }
        Ok(())
    }

    async fn answer(self: Arc<Self>, number: Number, request: Vec<u8>) {
        let mut ending = Ending { side: &self, number, has_failed: true };
        let mut answers = self.answerer.answer(self.from, request);
        loop {
            let next = poll_fn(|context| match self.poll_room(number, context) {
                Poll::Ready(()) => answers.poll_next_unpin(context),
                Poll::Pending => Poll::Pending,
            });
            let Some(answer) = next.await else { break };
            let (bytes, most) = (answer.len(), self.limits.message_bytes_max);
            if bytes > most {
                log::error!("an answer of {bytes} bytes is not sent: {most} are allowed on links");
                return;
            }
            self.push(number, answer);
        }
        ending.has_failed = false;
    }

    /// Becomes ready when an answer may be asked for: the one before was sent, and neither the
    /// asker nor the connection has too much to do. Nothing is awaited between this and the answer,
    /// so at most one answer exceeds the limits.
    fn poll_room(&self, number: Number, context: &Context<'_>) -> Poll<()> {
        let mut state = self.state();
        let has_room = state.has_room(self.limits);
        let Some(Exchange::Answering(answered)) = state.exchanges.get(&number) else {
            return Poll::Pending; // the task is about to end
        };
        if has_room && !answered.is_sending && answered.under_way.leaves_room() {
            return Poll::Ready(());
        }
        state.waiting.insert(number, context.waker().clone());
        Poll::Pending
    }

    fn push(&self, number: Number, answer: Vec<u8>) {
        let mut state = self.state();
        let Some(Exchange::Answering(answered)) = state.exchanges.get_mut(&number) else { return };
        let rank = if answered.has_answered { Rank::Later } else { Rank::Urgent };
        answered.has_answered = true;
        answered.is_sending = true;
        answered.under_way.add(Credit::of_message(answer.len()));
        state.outbox.push(rank, Carried::Answer, number, answer);
        drop(state);
        self.filled.notify_one();
    }

    /// Notes that the asker has read answers.
    fn note_room(&self, number: Number, room: Credit) {
        let mut state = self.state();
        if let Some(Exchange::Answering(answered)) = state.exchanges.get_mut(&number) {
            answered.under_way.subtract(room);
            state.wake(number);
        }
    }
}

impl Side for Arc<Answering> {
    fn receive(&self, frame: Frame) -> Result<(), Violation> {
        match frame {
            Frame::Control(Control::Ping) => Ok(()),
            Frame::Control(Control::Gone(number)) => {
                self.change(|state| state.remove(number));
                Ok(())
            }
            Frame::Control(Control::Room(number, room)) => {
                self.note_room(number, room);
                Ok(())
            }
            Frame::Part { carried: Carried::Request, number, is_last, bytes } => {
                self.receive_part(number, is_last, &bytes)
            }
            Frame::Part { carried: Carried::Answer, .. }
            | Frame::Control(Control::Ended(_) | Control::Failed(_)) => Err(Violation::Direction),
        }
    }

    fn take(&self, to: &mut Vec<u8>) -> bool {
        self.change(|state| {
            let Some(taken) = state.outbox.take(to) else { return false };
            if let Taken::Last(number) = taken
                && let Some(Exchange::Answering(answered)) = state.exchanges.get_mut(&number)
            {
                answered.is_sending = false;
                state.wake(number);
            }
            true
        })
    }

    fn push_ping(&self) {
        self.state().outbox.push_ping();
        self.filled.notify_one();
    }

    fn filled(&self) -> &Notify {
        &self.filled
    }
}

/// Lets the asker know that an exchange has ended, in good order or by a panic of the answerer.
struct Ending<'a> {
    side: &'a Answering,
    number: Number,
    has_failed: bool,
}

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        let Self { side, number, has_failed } = *self;
        let frame = if has_failed { Control::Failed } else { Control::Ended };
        // otherwise the asker is gone, or the connection is
        let is_open = side.change(|state| {
            let is_open = state.remove(number);
            if is_open {
                state.outbox.push_control(frame(number));
            }
            is_open
        });
        if is_open {
            side.filled.notify_one();
        }
    }
}

#[cfg(test)]
mod tests;
