//! Another registry in the place of the one in use.

use std::collections::HashSet;

use futures_util::future::join_all;

use crate::registry::Registry;
use crate::requests::Unavailable;
use crate::runtime::Runtime;
use crate::runtime::launch::store_definitions;
use crate::shard::supervisor::LookAgain;

impl Runtime {
    /// Puts another registry in the place of the one in use, in one step, after its definitions
    /// are durable; without them nothing changes.
    ///
    /// What has begun goes on with what it began with: an execution with its definition, a
    /// generation with its agent, model and tools. Agents, functions and workflows that steps
    /// refer to by name are those of the registry when the step begins; executions that waited
    /// for a name that is there now go on. Of two callers at once the later one's registry stays.
    pub async fn exchange(&self, registry: Registry) -> Result<(), Unavailable> {
        if self.shared.is_draining() {
            return Err(Unavailable::Draining { execution: None });
        }
        let before = self.registry();
        let known: HashSet<_> = before.workflows.values().map(|plan| &*plan.hash).collect();
        let new = registry.workflows.values().filter(|plan| !known.contains(&*plan.hash));
        store_definitions(new, &*self.shared.store).await?;
        self.shared.exchange(registry);
        self.wake_who_lacked().await;
        Ok(())
    }

    /// Those in memory look at once; the others are among those that the record says are running.
    async fn wake_who_lacked(&self) {
        let found = self.shared.current.found();
        if found.is_empty() {
            return;
        }
        join_all(self.system.shards.iter().map(|shard| shard.send(LookAgain))).await;
        let runtime = self.clone();
        actix::spawn(async move {
            runtime.continue_running().await;
        });
    }
}
