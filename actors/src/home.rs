//! The surroundings of a function: its runtime, and the owner of that runtime.

use std::any::Any;
use std::fmt;
use std::sync::{Arc, OnceLock};

use crate::agent::tool::ToolContext;
use crate::function::StepContext;
use crate::runtime::{Runtime, WeakRuntime};

/// Owner of a runtime, such as a server.
pub type Host = Arc<dyn Any + Send + Sync>;

/// The runtime around a function. Does not keep it alive. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct Home(Arc<Inner>);

#[derive(Default)]
struct Inner {
    /// Set at the launch, before anything runs.
    runtime: OnceLock<WeakRuntime>,
    host: Option<Host>,
}

impl Home {
    pub(crate) fn of(host: Option<Host>) -> Self {
        Self(Arc::new(Inner { runtime: OnceLock::new(), host }))
    }

    pub(crate) fn set(&self, runtime: WeakRuntime) {
        self.0.runtime.get_or_init(|| runtime);
    }

    pub(crate) fn runtime(&self) -> Option<Runtime> {
        self.0.runtime.get()?.upgrade()
    }

    pub(crate) fn host(&self) -> Option<&(dyn Any + Send + Sync)> {
        self.0.host.as_deref()
    }
}

impl fmt::Debug for Home {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Home").field(&self.runtime().is_some()).finish()
    }
}

impl StepContext {
    /// Returns the runtime that runs the step; `None` in unit tests, and once it has ended.
    pub fn runtime(&self) -> Option<Runtime> {
        self.home.runtime()
    }

    /// Returns [`RuntimePorts::host`](crate::RuntimePorts::host) of the runtime.
    pub fn host(&self) -> Option<&(dyn Any + Send + Sync)> {
        self.home.host()
    }
}

impl ToolContext {
    /// Returns the runtime that makes the call; `None` in unit tests, and once it has ended.
    pub fn runtime(&self) -> Option<Runtime> {
        self.home.runtime()
    }

    /// Returns [`RuntimePorts::host`](crate::RuntimePorts::host) of the runtime.
    pub fn host(&self) -> Option<&(dyn Any + Send + Sync)> {
        self.home.host()
    }
}
