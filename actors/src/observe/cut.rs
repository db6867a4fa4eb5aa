//! Ending the connection of a subscriber.

use std::sync::Arc;

/// Closes the connection of a subscriber that does not read.
pub type Cut = Arc<dyn Fn() + Send + Sync>;
