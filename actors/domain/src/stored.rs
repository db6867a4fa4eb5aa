//! How facts and states are written.

use std::sync::Arc;

use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// Whether a count is left out, being none.
pub fn is_zero<N: Default + PartialEq>(count: &N) -> bool {
    *count == N::default()
}

/// Reads a value that is there, `null` included; one that is not there stays `None`.
pub(crate) fn present<'de, D: Deserializer<'de>>(
    source: D,
) -> Result<Option<Arc<Value>>, D::Error> {
    Arc::<Value>::deserialize(source).map(Some)
}
