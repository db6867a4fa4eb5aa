//! Scopes of expressions.

use std::collections::BTreeMap;
use std::sync::Arc;

use minijinja::value::{Enumerator, Object, Value};
use serde_json::Value as Json;

use super::closure::{ClosureError, Closures, OfWorkflow, unregistered};
use super::json::Node;
use crate::effort;

/// Default of [`Scope::value_bytes_max`].
pub const VALUE_BYTES_MAX_DEFAULT: usize = 1 << 20;

/// Initial capacity: the number of names in a step's scope.
const SLOTS_USUAL: usize = 10;

/// Name under which filters find the limit. No source can contain it.
const VALUE_BYTES_MAX_NAME: &str = "value bytes max";

/// Names in scope. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Scope {
    names: Arc<Names>,
}

#[derive(Debug, Clone)]
struct Names {
    slots: Vec<(&'static str, Slot)>,
    value_bytes_max: usize,
    closures: Option<OfWorkflow>,
}

#[derive(Debug, Clone)]
enum Slot {
    Json(Arc<Json>),
    Empty,
    Map(Arc<BTreeMap<Arc<str>, Arc<Json>>>),
}

impl Default for Scope {
    fn default() -> Self {
        Self::new()
    }
}

impl Scope {
    /// Creates a scope without names.
    pub fn new() -> Self {
        let slots = Vec::with_capacity(SLOTS_USUAL);
        let names = Names { slots, value_bytes_max: VALUE_BYTES_MAX_DEFAULT, closures: None };
        Self { names: Arc::new(names) }
    }

    /// Adds a value, replacing an earlier one of the same name.
    #[must_use]
    pub fn with(self, name: &'static str, value: Arc<Json>) -> Self {
        self.with_slot(name, Slot::Json(value))
    }

    /// Adds a value that may be absent; the name is then defined and `none`.
    #[must_use]
    pub fn with_optional(self, name: &'static str, value: Option<Arc<Json>>) -> Self {
        self.with_slot(name, value.map_or(Slot::Empty, Slot::Json))
    }

    /// Adds values by key; other keys are undefined.
    #[must_use]
    pub fn with_map(self, name: &'static str, values: Arc<BTreeMap<Arc<str>, Arc<Json>>>) -> Self {
        self.with_slot(name, Slot::Map(values))
    }

    /// Sets the maximum size of a result, in bytes of JSON or text.
    #[must_use]
    pub fn value_bytes_max(mut self, bytes: usize) -> Self {
        Arc::make_mut(&mut self.names).value_bytes_max = bytes;
        self
    }

    /// Adds the closures of a workflow.
    #[must_use]
    pub fn with_closures(mut self, closures: Closures, workflow: Arc<str>) -> Self {
        Arc::make_mut(&mut self.names).closures = Some(OfWorkflow { closures, workflow });
        self
    }

    /// Returns the value of a name; `None` if it has none.
    pub fn value(&self, name: &str) -> Option<&Arc<Json>> {
        match self.slot(name)? {
            Slot::Json(value) => Some(value),
            Slot::Empty | Slot::Map(_) => None,
        }
    }

    /// Returns a value of a name that has values by key, such as `steps`.
    pub fn value_by_key(&self, name: &str, key: &str) -> Option<&Arc<Json>> {
        match self.slot(name)? {
            Slot::Map(values) => values.get(key),
            Slot::Json(_) | Slot::Empty => None,
        }
    }

    pub(super) fn call(&self, closure: &str) -> Result<Json, ClosureError> {
        match &self.names.closures {
            Some(own) => own.call(closure, self),
            None => Err(unregistered(closure).into()),
        }
    }

    fn slot(&self, name: &str) -> Option<&Slot> {
        self.names.slots.iter().find(|(known, _)| *known == name).map(|(_, slot)| slot)
    }

    fn with_slot(mut self, name: &'static str, slot: Slot) -> Self {
        let slots = &mut Arc::make_mut(&mut self.names).slots;
        match slots.iter_mut().find(|(known, _)| *known == name) {
            Some(known) => known.1 = slot,
            None => slots.push((name, slot)),
        }
        self
    }

    pub(super) fn bytes_max(&self) -> usize {
        self.names.value_bytes_max
    }

    /// Returns true if a name is in scope and its value is none.
    pub(super) fn is_none(&self, name: &str) -> bool {
        self.names.slots.iter().any(|(known, slot)| {
            *known == name
                && match slot {
                    Slot::Empty => true,
                    Slot::Json(value) => value.is_null(),
                    Slot::Map(_) => false,
                }
        })
    }

    pub(super) fn root(&self) -> Value {
        Value::from_dyn_object(Arc::clone(&self.names))
    }
}

/// Returns the limit of the current scope.
pub(super) fn bytes_max_of(state: &minijinja::State<'_, '_>) -> usize {
    state
        .lookup(VALUE_BYTES_MAX_NAME)
        .and_then(|bytes| bytes.as_usize())
        .unwrap_or(VALUE_BYTES_MAX_DEFAULT)
}

impl Object for Names {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        self.get_value_by_str(key.as_str()?)
    }

    fn get_value_by_str(self: &Arc<Self>, key: &str) -> Option<Value> {
        match self.slots.iter().find(|(name, _)| *name == key) {
            Some((_, Slot::Json(json))) => Some(Node::view(json)),
            Some((_, Slot::Empty)) => Some(Value::from(())),
            Some((_, Slot::Map(values))) => Some(Value::from_object(Keyed(Arc::clone(values)))),
            None if key == VALUE_BYTES_MAX_NAME => Some(Value::from(self.value_bytes_max)),
            None => None,
        }
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Values(self.slots.iter().map(|(name, _)| Value::from(*name)).collect())
    }
}

/// Values by key.
#[derive(Debug)]
struct Keyed(Arc<BTreeMap<Arc<str>, Arc<Json>>>);

impl Object for Keyed {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        self.get_value_by_str(key.as_str()?)
    }

    fn get_value_by_str(self: &Arc<Self>, key: &str) -> Option<Value> {
        self.0.get(key).filter(|_| effort::charge(1)).map(Node::view)
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        if !effort::charge_all(1 + self.0.len(), 1) {
            return Enumerator::Empty;
        }
        Enumerator::Values(self.0.keys().map(|key| Value::from(Arc::clone(key))).collect())
    }

    fn enumerator_len(self: &Arc<Self>) -> Option<usize> {
        Some(self.0.len())
    }
}
