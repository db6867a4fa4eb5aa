//! Parts of a program's own: its store and its clock.

use std::sync::Arc;

use crate::runtime::Clock;
use crate::store::{CrashMarks, Store};

use super::Greenroom;

impl Greenroom {
    /// Keeps everything in a store of one's own, in place of the configured one. The server closes it
    /// when it stops, and has it for itself: `cluster.listen` is refused. See [`crate::store`].
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

    /// Dates executions, generations, conversations, asks and idempotency keys, and makes their ids.
    /// Waits follow it: a timer is due by this clock.
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
