//! What the process can run just now: one registry, exchanged as a whole.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use crate::agent::generation::CompiledAgents;
use crate::registry::{Missing, Registry};

/// The registry in use, and what depends on it.
pub(crate) struct Current {
    now: RwLock<Arc<Configured>>,
    /// What executions wait for because this process did not have it when they asked.
    missing: Mutex<BTreeSet<Missing>>,
}

/// One registry with what was made of it. Whoever works with several names takes it once.
pub(crate) struct Configured {
    pub(crate) registry: Arc<Registry>,
    /// What its agents say, ready for use.
    pub(crate) compiled: Arc<CompiledAgents>,
    /// Running executions of each workflow.
    running: BTreeMap<String, Arc<AtomicUsize>>,
}

impl Current {
    pub(crate) fn new(registry: Registry) -> Self {
        let running = registry.workflows.keys().map(|id| (id.clone(), Arc::default())).collect();
        let now = Configured { registry: Arc::new(registry), compiled: Arc::default(), running };
        Self { now: RwLock::new(Arc::new(now)), missing: Mutex::default() }
    }

    pub(crate) fn now(&self) -> Arc<Configured> {
        Arc::clone(&self.now.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Puts another registry in the place of this one, in one step. Counts go on.
    pub(crate) fn exchange(&self, registry: Registry) -> Arc<Configured> {
        let mut now = self.now.write().unwrap_or_else(PoisonError::into_inner);
        let mut running = now.running.clone();
        // one that is gone is counted until the last of its executions rests
        running.retain(|id, count| {
            registry.workflows.contains_key(id) || count.load(Ordering::Acquire) > 0
        });
        for id in registry.workflows.keys() {
            running.entry(id.clone()).or_default();
        }
        *now = Arc::new(Configured {
            registry: Arc::new(registry),
            compiled: Arc::default(),
            running,
        });
        Arc::clone(&now)
    }

    /// Notes that an execution waits for something. Gives it back unless a registry that has it
    /// came meanwhile: then nobody would wake the execution.
    pub(crate) fn note_missing(&self, name: Missing) -> Option<Missing> {
        self.missing.lock().unwrap_or_else(PoisonError::into_inner).insert(name.clone());
        (!self.now().registry.has(&name)).then_some(name)
    }

    /// What was lacked and is there now. It is not lacked any more.
    pub(crate) fn found(&self) -> BTreeSet<Missing> {
        let registry = &self.now().registry;
        let mut missing = self.missing.lock().unwrap_or_else(PoisonError::into_inner);
        let (found, still) =
            std::mem::take(&mut *missing).into_iter().partition(|it| registry.has(it));
        *missing = still;
        found
    }
}

impl Configured {
    pub(crate) fn running_of(&self, workflow_id: &str) -> Option<&Arc<AtomicUsize>> {
        self.running.get(workflow_id)
    }

    /// Running executions by workflow, in the order of their ids.
    pub(crate) fn running(&self) -> Vec<(String, usize)> {
        let count =
            |(id, count): (&String, &Arc<AtomicUsize>)| (id.clone(), count.load(Ordering::Relaxed));
        self.running.iter().map(count).collect()
    }
}
