//! The surroundings of a function: its runtime, and the owner of that runtime.

use std::any::Any;
use std::fmt;
use std::sync::{Arc, OnceLock};

/// Owner of a runtime, such as a server.
pub type Host = Arc<dyn Any + Send + Sync>;

/// The runtime around a function. Does not keep it alive. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct Home(Arc<Inner>);

#[derive(Default)]
struct Inner {
    /// Set at the launch, before anything runs. Its type is known to the runtime alone: contexts of
    /// functions and tools have a home, and the runtime is made of those who use them.
    runtime: OnceLock<Box<dyn Any + Send + Sync>>,
    host: Option<Host>,
}

impl Home {
    pub(crate) fn of(host: Option<Host>) -> Self {
        Self(Arc::new(Inner { runtime: OnceLock::new(), host }))
    }

    /// Sets the handle of the runtime, unless there is one.
    pub(crate) fn set<T: Any + Send + Sync>(&self, runtime: T) {
        self.0.runtime.get_or_init(|| Box::new(runtime));
    }

    /// Returns the handle of the runtime.
    pub(crate) fn get<T: Any>(&self) -> Option<&T> {
        self.0.runtime.get()?.downcast_ref()
    }

    pub(crate) fn host(&self) -> Option<&(dyn Any + Send + Sync)> {
        self.0.host.as_deref()
    }
}

impl fmt::Debug for Home {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Home").field(&self.0.runtime.get().is_some()).finish()
    }
}
