//! A generation that can continue after a wait or an interruption, as it is stored.

use crate::ports::store::{GenerationEntry, Generations, StoredContinuation};
use crate::requests::Unavailable;

use super::continuation::Continuation;

/// A generation with its continuation.
pub(crate) struct Continuable {
    pub(crate) entry: GenerationEntry,
    pub(crate) continuation: Continuation,
    /// Revision of the continuation, for a write that succeeds only if it was not changed since.
    pub(crate) revision: u64,
}

/// Stored parts of a generation.
pub(crate) enum Stored {
    Continuable(Box<Continuable>),
    /// It has no continuation.
    Alone(Box<GenerationEntry>),
    /// Its continuation cannot be read.
    Damaged(Box<GenerationEntry>, serde_json::Error),
}

impl Stored {
    /// Reads a generation; `None` if there is none.
    pub(crate) async fn read(
        store: &(impl Generations + ?Sized),
        id: &str,
    ) -> Result<Option<Self>, Unavailable> {
        let (entry, stored) = tokio::try_join!(store.generation(id), store.continuation(id))?;
        let Some(entry) = entry else { return Ok(None) };
        let Some(StoredContinuation { revision, body }) = stored else {
            return Ok(Some(Self::Alone(Box::new(entry))));
        };
        Ok(Some(match Continuation::read(&body, &entry.record) {
            Ok(continuation) => {
                Self::Continuable(Box::new(Continuable { entry, continuation, revision }))
            }
            Err(error) => Self::Damaged(Box::new(entry), error),
        }))
    }
}
