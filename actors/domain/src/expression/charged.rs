//! Results of the engine's filters, functions and operators, which charge when they are read.
//!
//! The engine reads its own lists and maps without charge (`in`, `==` and others). So every list
//! whose length depends on data is wrapped in a [`Charged`] before it reaches an operator.

use std::fmt;
use std::sync::Arc;

use minijinja::value::{DynObject, Enumerator, Object, ObjectRepr, Value, ValueIter};

use super::json::Node;
use crate::effort;

/// A list, a map or an iterable of the engine.
#[derive(Debug)]
pub(super) struct Charged {
    inner: Value,
    repr: ObjectRepr,
}

/// Wraps a value that can be iterated in a [`Charged`].
pub(super) fn charged(value: Value) -> Value {
    // tuples are short, and equal only to tuples
    let is_ours = value.downcast_object_ref::<Node>().is_some()
        || value.downcast_object_ref::<Charged>().is_some();
    let repr = value.as_object().map(DynObject::repr);
    match repr {
        Some(ObjectRepr::Plain) | None => value,
        Some(_) if is_ours || value.is_tuple() || value.is_kwargs() => value,
        Some(repr) => Value::from_object(Charged { inner: value, repr }),
    }
}

impl Object for Charged {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        self.repr
    }

    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        if !effort::charge(1) {
            return None;
        }
        let found = self.inner.as_object()?.get_value(key)?;
        Some(charged(found))
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        if !effort::charge(1) {
            return Enumerator::Empty;
        }
        match (self.repr, self.inner.len(), self.inner.try_iter()) {
            (ObjectRepr::Seq, Some(length), _) => Enumerator::Seq(length),
            (_, _, Ok(items)) => Enumerator::Iter(Box::new(Walk { items })),
            (_, _, Err(_)) => Enumerator::NonEnumerable,
        }
    }

    fn enumerator_len(self: &Arc<Self>) -> Option<usize> {
        self.inner.len()
    }

    fn is_true(self: &Arc<Self>) -> bool {
        self.inner.is_true()
    }

    fn render(self: &Arc<Self>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The items charge by themselves.
        let _ = effort::charge_all(1 + self.inner.len().unwrap_or(0), 1);
        if effort::is_exceeded() { Ok(()) } else { write!(f, "{}", self.inner) }
    }
}

/// Iterates as long as the budget lasts.
struct Walk {
    items: ValueIter,
}

impl Iterator for Walk {
    type Item = Value;

    fn next(&mut self) -> Option<Value> {
        if effort::charge(1) { self.items.next().map(charged) } else { None }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.items.size_hint()
    }
}
