//! Limits that lead to `at_capacity`.

use std::fmt;

/// The limit that was reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shortage {
    Connections,
    ConnectionsOfAddress,
    Streams,
    StreamsOfAddress,
    /// Bytes queued for clients that read slowly.
    UnreadBytes,
    /// Bytes of request bodies.
    BodyBytes,
    /// Memory of executions.
    ExecutionMemory,
}

impl fmt::Display for Shortage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Connections => "Too many connections are open",
            Self::ConnectionsOfAddress => "Too many connections are open from this address",
            Self::Streams => "Too many streams are open",
            Self::StreamsOfAddress => "Too many streams are open from this address",
            Self::UnreadBytes => "Too much data is queued for clients that read slowly",
            Self::BodyBytes => "Too much data of request bodies is arriving at once",
            Self::ExecutionMemory => {
                "The executions in memory have reached limits.executions_memory_max; running ones \
                 continue"
            }
        })
    }
}
