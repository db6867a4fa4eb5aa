//! The registry in use, replaced as a whole.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use tokio::sync::watch;

use crate::agent::generation::CompiledAgents;
use crate::registry::{Missing, Registry};

/// The registry in use, and what executions lack in it.
pub(crate) struct Current {
    now: RwLock<Arc<Configured>>,
    /// Names that executions wait for because the registry lacked them.
    missing: Mutex<BTreeSet<Missing>>,
    /// Notices of replacements.
    replaced: watch::Sender<()>,
}

/// One registry with everything derived from it. Code that looks up several names takes it once.
pub(crate) struct Configured {
    pub(crate) registry: Arc<Registry>,
    /// Its agents' templates and schemas, compiled.
    pub(crate) compiled: Arc<CompiledAgents>,
    /// Running executions of each workflow.
    running: BTreeMap<String, Arc<AtomicUsize>>,
}

impl Current {
    pub(crate) fn new(registry: Registry) -> Self {
        let running = registry.workflows.keys().map(|id| (id.clone(), Arc::default())).collect();
        let now = Configured { registry: Arc::new(registry), compiled: Arc::default(), running };
        let now = RwLock::new(Arc::new(now));
        Self { now, missing: Mutex::default(), replaced: watch::Sender::new(()) }
    }

    /// Returns what changes with each replacement.
    pub(crate) fn watch(&self) -> watch::Receiver<()> {
        self.replaced.subscribe()
    }

    pub(crate) fn now(&self) -> Arc<Configured> {
        Arc::clone(&self.now.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Replaces the registry in one step. Counts of running executions are kept.
    pub(crate) fn exchange(&self, registry: Registry) -> Arc<Configured> {
        let mut now = self.now.write().unwrap_or_else(PoisonError::into_inner);
        let mut running = now.running.clone();
        // a removed workflow is counted until its last execution has ended or unloaded
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
        self.replaced.send_replace(());
        Arc::clone(&now)
    }

    /// Notes that an execution waits for a name. Returns the name, or `None` if a registry that has
    /// it was put in place in the meantime: then the execution would not be woken.
    pub(crate) fn note_missing(&self, name: Missing) -> Option<Missing> {
        self.missing.lock().unwrap_or_else(PoisonError::into_inner).insert(name.clone());
        (!self.now().registry.has(&name)).then_some(name)
    }

    /// Removes and returns the noted names that the registry now has.
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

    /// Returns the numbers of running executions by workflow, in the order of ids.
    pub(crate) fn running(&self) -> Vec<(String, usize)> {
        let count =
            |(id, count): (&String, &Arc<AtomicUsize>)| (id.clone(), count.load(Ordering::Relaxed));
        self.running.iter().map(count).collect()
    }
}
