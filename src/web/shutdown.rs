//! The word that the server is about to stop, for connections that would otherwise never end.

use tokio::sync::watch;

/// Cheap to clone; all clones are the same word.
#[derive(Debug, Clone)]
pub(crate) struct Shutdown(watch::Sender<bool>);

impl Shutdown {
    /// A word that has not been said.
    pub(crate) fn new() -> Self {
        Self(watch::Sender::new(false))
    }

    /// Says it: event streams end, WebSockets close as going away.
    pub(crate) fn fire(&self) {
        self.0.send_replace(true);
    }

    /// Whether it has been said.
    pub(crate) fn is_fired(&self) -> bool {
        *self.0.borrow()
    }

    /// Resolves when it is said.
    pub(crate) async fn fired(&self) {
        let mut word = self.0.subscribe();
        // The sender lives in `self`: waiting cannot fail before the word is said.
        let _ = word.wait_for(|is_fired| *is_fired).await;
    }
}

impl Default for Shutdown {
    fn default() -> Self {
        Self::new()
    }
}
