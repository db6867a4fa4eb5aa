//! Failures of writes and reads.

use std::sync::Arc;

use super::PageTooLarge;

/// Reason for rejecting an append, of which nothing was stored but for [`AppendError::Unsettled`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AppendError {
    #[error("an execution with this id exists")]
    Exists,
    #[error("the stored execution has moved on")]
    Stale,
    #[error("the idempotency key is taken")]
    KeyTaken,
    /// The execution belongs to another process now, which continues it.
    #[error("this process no longer owns the execution")]
    Lost,
    /// As [`AppendError::Lost`], but the append may have been stored before.
    #[error("this process no longer owns the execution, and may have changed it before")]
    Unsettled,
    #[error("the store rejects writes: {0}")]
    Unavailable(Arc<str>),
}

/// Failed read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// The store does not answer. A later read may succeed.
    #[error("the store cannot be read: {0}")]
    Unavailable(Arc<str>),
    /// The named record is corrupt, and a retry does not help. The store has logged the reason.
    /// Lists and searches skip such records instead.
    #[error("the record of {0} is corrupt")]
    Corrupt(Arc<str>),
    /// The records of a page have too many bytes. Only of reads with a [`PageSize`](super::PageSize).
    #[error(transparent)]
    TooLarge(#[from] PageTooLarge),
}
