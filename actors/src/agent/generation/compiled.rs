//! Templates, expressions and tool lists of agents, compiled when they are first used.
//!
//! Definitions stay as they are while the process runs, so there are as many of these as agents
//! have texts and lists.

use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};

use crate::domain::expression::{Expression, Template};

use super::tools::Toolset;

/// Templates and expressions by their source, lists of tools by the agent's id; shared by all
/// arbiters.
#[derive(Default)]
pub(crate) struct CompiledAgents {
    pub(super) templates: Cache<Template>,
    pub(super) expressions: Cache<Expression>,
    /// Of agents that have the same tools in every run.
    pub(super) toolsets: Cache<Toolset>,
}

/// Values that are made once each, by their key.
pub(super) struct Cache<V> {
    made: RwLock<HashMap<String, V>>,
}

impl<V> Default for Cache<V> {
    fn default() -> Self {
        Self { made: RwLock::default() }
    }
}

impl<V: Clone> Cache<V> {
    /// Returns the value of this key; a value that cannot be made is tried again the next time.
    pub(super) fn get_or_make<E>(
        &self,
        key: &str,
        make: impl FnOnce() -> Result<V, E>,
    ) -> Result<V, E> {
        if let Some(made) = self.made.read().unwrap_or_else(PoisonError::into_inner).get(key) {
            return Ok(made.clone());
        }
        // outside the lock: two at once make two, and one of them is kept
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
