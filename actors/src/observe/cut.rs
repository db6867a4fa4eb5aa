//! Ending the connection of a subscriber.

use std::sync::Arc;

/// Ends a connection whose reader has stopped reading.
pub type Cut = Arc<dyn Fn() + Send + Sync>;
