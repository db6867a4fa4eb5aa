//! Replacing the registry in use.

use std::collections::HashSet;
use std::sync::Arc;

use futures_util::future::join_all;

use crate::registry::Registry;
use crate::requests::Unavailable;
use crate::runtime::Runtime;
use crate::runtime::launch::store_definitions;
use crate::shard::supervisor::RegistryChanged;

impl Runtime {
    /// Replaces the registry in one step, after its definitions are durable; if they cannot be
    /// stored, nothing changes.
    ///
    /// Work that has begun keeps what it began with: an execution its definition, a generation its
    /// agent, model and tools. Agents, functions and workflows that steps refer to by name are
    /// taken from the registry when the step begins; executions that waited for a name that is now
    /// there continue. Of two concurrent calls the later registry stays.
    pub async fn exchange(&self, registry: Registry) -> Result<(), Unavailable> {
        if self.shared.is_draining() {
            return Err(Unavailable::Draining { execution: None });
        }
        let before = self.registry();
        let known: HashSet<_> = before.workflows.values().map(|plan| &*plan.hash).collect();
        let new = registry.workflows.values().filter(|plan| !known.contains(&*plan.hash));
        store_definitions(new, &*self.shared.store).await?;
        self.shared.exchange(registry);
        self.wake_waiting().await;
        Ok(())
    }

    /// Continues executions that waited for a missing name: those in memory at once, the others as
    /// running executions of the store.
    async fn wake_waiting(&self) {
        let found = self.shared.current.found();
        if found.is_empty() {
            return;
        }
        join_all(self.system.shards.iter().map(|shard| shard.send(RegistryChanged))).await;
        let shared = Arc::clone(&self.shared);
        actix::spawn(async move {
            shared.continue_running(&shared.ownership.served()).await;
        });
    }
}
