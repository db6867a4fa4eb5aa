//! Limits of a connection, which both sides know.

/// Limits of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Limits {
    /// Maximum size of a request or an answer: the smaller one of what both sides take.
    pub(crate) message_bytes_max: usize,
}

impl Limits {
    /// Maximum number of open exchanges.
    pub(crate) const EXCHANGES_MAX: usize = 65_536;
    /// Number of frames without content beyond which no answers are asked for.
    pub(crate) const CONTROLS_MAX: usize = 4096;

    /// Returns the maximum size of the messages that wait to be sent, and of requests that have
    /// arrived in part.
    pub(crate) fn queued_bytes_max(self) -> usize {
        self.message_bytes_max.saturating_mul(2)
    }
}
