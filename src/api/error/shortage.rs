//! What there is no more room for.

use std::fmt;

/// What there is no more room for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shortage {
    Connections,
    ConnectionsOfAddress,
    Streams,
    StreamsOfAddress,
    /// Bytes wait for clients that read slowly, more than may.
    UnreadBytes,
    /// Executions in memory hold as much of it as they may.
    ExecutionMemory,
}

impl fmt::Display for Shortage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Connections => "Too many connections are open",
            Self::ConnectionsOfAddress => "Too many connections are open from this address",
            Self::Streams => "Too many streams are open",
            Self::StreamsOfAddress => "Too many streams are open from this address",
            Self::UnreadBytes => "Too much waits for clients that read slowly",
            Self::ExecutionMemory => {
                "The executions in memory hold all that limits.executions_memory_max leaves them; \
                 those that run go on"
            }
        })
    }
}
