//! Disconnecting a subscriber from outside.

use std::sync::Arc;

/// Closes the connection of a subscriber that has stopped reading. Callable from any thread.
pub type Disconnect = Arc<dyn Fn() + Send + Sync>;
