//! Parts of a program's own: its store, its clock and its check of answers.

use std::sync::Arc;

use crate::runtime::{Clock, GivenAnswer};
use crate::store::{CrashMarks, Store};

use super::Greenroom;

impl Greenroom {
    /// Keeps everything in a store of one's own, in place of the configured one. The server closes it
    /// when it stops, and has it for itself: `cluster.listen` is refused. The last call counts, so that
    /// a test can give a program another one. See [`crate::store`].
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use greenroom::Greenroom;
    /// use greenroom::store::MemoryStore;
    ///
    /// let server = Greenroom::new().store(Arc::new(MemoryStore::new()));
    /// # drop(server);
    /// ```
    #[must_use]
    pub fn store(mut self, store: Arc<dyn Store>) -> Self {
        self.parts.store = Some(store);
        self
    }

    /// Keeps marks of what is evaluated, by which the next process finds out what ended this one, in
    /// place of the file beside a SQLite store. A [store](Self::store) of one's own has none
    /// otherwise.
    #[must_use]
    pub fn crash_marks(mut self, marks: Arc<dyn CrashMarks>) -> Self {
        self.parts.crash_marks = Some(marks);
        self
    }

    /// Checks each answer before it is accepted. `Err` refuses it with a message for the one who gave
    /// it: status 403 and `answer_refused`, and what waits keeps waiting. A check that panics or
    /// takes longer than 10 s refuses as well. It is asked last, about one ask and with data that
    /// fits its schema; afterwards the rules of the ask are looked at again, so that it may be asked
    /// about an answer that is refused, for example since another one was first. At most
    /// `limits.answer_checks_max` run at once.
    ///
    /// It applies wherever an answer comes in: resumes and the inbox over HTTP, links, approvals and
    /// answers in chats, the `resumeData` of a replay, and those of Rust
    /// ([`Run::resume`](crate::Run::resume), [`Runtime`](crate::Runtime)); to the end of a pause as
    /// well. Deadlines give no answers and are not checked.
    ///
    /// ```
    /// use greenroom::Greenroom;
    ///
    /// let server = Greenroom::new().on_answer(|answer| async move {
    ///     let is_large = answer.data["amount"].as_f64().is_some_and(|amount| amount > 10_000.0);
    ///     let is_verified = answer.by.is_some_and(|by| by.verified);
    ///     if is_large && !is_verified {
    ///         return Err("a large amount needs a signed-in user".to_owned());
    ///     }
    ///     Ok(())
    /// });
    /// # drop(server);
    /// ```
    #[must_use]
    pub fn on_answer<F, R>(mut self, check: F) -> Self
    where
        F: Fn(GivenAnswer) -> R + Send + Sync + 'static,
        R: Future<Output = Result<(), String>> + Send + 'static,
    {
        if self.parts.answer_guard.replace(Arc::new(check)).is_some() {
            self.problems.push("on_answer is set twice: one check decides".to_owned());
        }
        self
    }

    /// Dates executions, generations, conversations, asks and idempotency keys, and makes their ids.
    /// Waits follow it: a timer is due by this clock. The last call counts.
    ///
    /// Log records, exported telemetry, the expiry of tokens and what an HTTP server answers about
    /// dates are by the system's clock, as other machines have them.
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use greenroom::Greenroom;
    /// use greenroom::runtime::{Clock, SystemClock, Timestamp};
    ///
    /// /// Tomorrow.
    /// struct Ahead;
    ///
    /// impl Clock for Ahead {
    ///     fn now(&self) -> Timestamp {
    ///         SystemClock.now().plus_ms(86_400_000)
    ///     }
    ///
    ///     fn new_id(&self) -> Arc<str> {
    ///         SystemClock.new_id()
    ///     }
    /// }
    ///
    /// let server = Greenroom::new().clock(Arc::new(Ahead));
    /// # drop(server);
    /// ```
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.parts.clock = Some(clock);
        self
    }
}

#[cfg(test)]
mod tests;
