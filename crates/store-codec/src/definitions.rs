//! Definitions of workflows, which their hashes identify.

use std::fmt::Display;
use std::future::Future;
use std::sync::Arc;

use greenroom_actors::ports::store::{Read, ReadError};
use serde_json::Value;

/// Writes a definition as JSON by `put`, unless it is `known`: every start puts all definitions, and
/// most exist.
pub async fn put<W, E>(
    known: Read<'_, Option<Value>>,
    definition: &Value,
    put: impl FnOnce(Vec<u8>) -> W,
) -> Result<(), ReadError>
where
    W: Future<Output = Result<(), E>>,
    E: Display,
{
    match known.await {
        Ok(Some(_)) => return Ok(()),
        // a damaged one is replaced: its hash identifies the content
        Ok(None) | Err(ReadError::Corrupt(_)) => {}
        Err(error @ (ReadError::Unavailable(_) | ReadError::TooLarge(_))) => return Err(error),
    }
    let failed = |error: &dyn Display| ReadError::Unavailable(Arc::from(error.to_string()));
    let body = serde_json::to_vec(definition).map_err(|error| failed(&error))?;
    put(body).await.map_err(|error| failed(&error))
}
