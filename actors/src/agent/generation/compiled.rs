//! Cache of agents' templates, expressions and tool lists, compiled on first use.
//!
//! Unbounded, because definitions do not change: it holds at most one entry per text or list of an
//! agent.

use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};

use crate::domain::expression::{Expression, Template};

use super::tools::Toolset;

/// Templates and expressions by source, tool lists by agent id; shared by all arbiters.
#[derive(Default)]
pub(crate) struct CompiledAgents {
    pub(super) templates: Cache<Template>,
    pub(super) expressions: Cache<Expression>,
    /// Only of agents with a fixed tool list.
    pub(super) toolsets: Cache<Toolset>,
}

/// Values by key, each made once.
pub(super) struct Cache<V> {
    made: RwLock<HashMap<String, V>>,
}

impl<V> Default for Cache<V> {
    fn default() -> Self {
        Self { made: RwLock::default() }
    }
}

impl<V: Clone> Cache<V> {
    /// Returns the value of this key, making it if it is missing. Failures are not cached.
    pub(super) fn get_or_make<E>(
        &self,
        key: &str,
        make: impl FnOnce() -> Result<V, E>,
    ) -> Result<V, E> {
        if let Some(made) = self.made.read().unwrap_or_else(PoisonError::into_inner).get(key) {
            return Ok(made.clone());
        }
        // outside the lock: of two concurrent makers, the last one's value is kept
        let value = make()?;
        let mut made = self.made.write().unwrap_or_else(PoisonError::into_inner);
        made.insert(key.to_owned(), value.clone());
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_made_once() {
        let cache = Cache::default();
        assert_eq!(cache.get_or_make("a", || Err::<u32, _>("not yet")), Err("not yet"));
        assert_eq!(cache.get_or_make("a", || Ok::<_, &str>(1)), Ok(1));
        assert_eq!(cache.get_or_make("a", || Err("made twice")), Ok(1));
        assert_eq!(cache.get_or_make("b", || Ok::<_, &str>(2)), Ok(2));
    }
}
