//! Helpers for the stored form of facts and states.

use std::sync::Arc;

use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// Returns true for zero; such counts are not written.
pub fn is_zero<N: Default + PartialEq>(count: &N) -> bool {
    *count == N::default()
}

/// Returns true for false; such flags are not written.
pub fn is_false(flag: &bool) -> bool {
    !flag
}

/// Reads a field that is present as `Some`, `null` included. With `default`, an absent one is
/// `None`.
pub fn present<'de, D: Deserializer<'de>>(source: D) -> Result<Option<Arc<Value>>, D::Error> {
    Arc::<Value>::deserialize(source).map(Some)
}
