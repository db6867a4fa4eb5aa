//! Stored definitions of tools. The store is asked on the thread that started the connections, which
//! outlives them.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::future::Future;
use std::sync::{Arc, OnceLock};

use greenroom_actors::ports::store::{KnownTool, KnownTools};
use tokio::runtime::Handle;

/// Maximum number of tools that are read or written together.
const TOGETHER_MAX: usize = 100;

/// Access to the stored definitions. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct Records(Arc<OnceLock<Stored>>);

struct Stored {
    store: Arc<dyn KnownTools>,
    thread: Handle,
}

impl Records {
    /// Gives access to a store. Must be called on a thread that has a runtime.
    pub(crate) fn open(&self, store: Arc<dyn KnownTools>) {
        // those who open it twice have the same store
        let _ = self.0.set(Stored { store, thread: Handle::current() });
    }

    /// Asks the store.
    async fn ask<T, E, F>(&self, ask: impl FnOnce(Arc<dyn KnownTools>) -> F) -> Result<T, String>
    where
        T: Send + 'static,
        E: Display + Send + 'static,
        F: Future<Output = Result<T, E>> + Send + 'static,
    {
        let stored = self.0.get().ok_or("the store is not open")?;
        let asked = stored.thread.spawn(ask(Arc::clone(&stored.store))).await;
        match asked {
            Ok(answer) => answer.map_err(|error| error.to_string()),
            Err(_) => Err("the process is stopping".to_owned()),
        }
    }

    /// Returns the known ones of these tools of a server, by name.
    pub(crate) async fn known(
        &self,
        server: &Arc<str>,
        tools: &[Arc<str>],
    ) -> Result<BTreeMap<Arc<str>, KnownTool>, String> {
        let mut known = BTreeMap::new();
        for tools in tools.chunks(TOGETHER_MAX) {
            let (server, tools) = (Arc::clone(server), tools.to_vec());
            let found =
                self.ask(|store| async move { store.known_tools(&server, &tools).await }).await?;
            known.extend(found.into_iter().map(|tool| (Arc::clone(&tool.tool), tool)));
        }
        Ok(known)
    }

    /// Adds tools that are seen for the first time.
    pub(crate) async fn see(&self, seen: &[KnownTool], tools_max: usize) -> Result<(), String> {
        for seen in seen.chunks(TOGETHER_MAX) {
            let seen = seen.to_vec();
            self.ask(|store| store.see_tools(seen, tools_max)).await?;
        }
        Ok(())
    }

    /// Accepts a definition in place of another one. Returns false if that is not the accepted one.
    pub(crate) async fn accept(
        &self,
        accepted: KnownTool,
        replaced: Arc<str>,
    ) -> Result<bool, String> {
        self.ask(|store| store.accept_tool(accepted, replaced)).await
    }
}
