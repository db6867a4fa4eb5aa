//! Values of the program that its functions share.

use std::any::{Any, TypeId, type_name};
use std::collections::HashMap;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// A value that [`Greenroom::data`](crate::Greenroom::data) or
/// [`Greenroom::data_arc`](crate::Greenroom::data_arc) registered, as an argument of functions.
#[derive(Debug)]
pub struct Data<T: ?Sized>(pub Arc<T>);

impl<T: ?Sized> Clone for Data<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T: ?Sized> Deref for Data<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

/// Registered values, one of each type.
#[derive(Default)]
pub struct State {
    /// Each is a [`Data`] of the type.
    values: HashMap<TypeId, Box<dyn Any + Send + Sync>>,
}

impl State {
    /// Adds a value. Returns false if there was one of this type.
    pub(crate) fn add<T: ?Sized + Send + Sync + 'static>(&mut self, value: Arc<T>) -> bool {
        self.values.insert(TypeId::of::<T>(), Box::new(Data(value))).is_none()
    }

    /// Returns the registered value of a type.
    pub fn get<T: ?Sized + Send + Sync + 'static>(&self) -> Option<Data<T>> {
        self.values.get(&TypeId::of::<T>())?.downcast_ref().cloned()
    }
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "State({} values)", self.values.len())
    }
}

/// An argument that comes from the program's [`State`] and is found at the start of the server.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an argument that comes from the program",
    note = "arguments before the input are `greenroom::typed::Data<T>`"
)]
pub trait FromState: Clone + Send + Sync + 'static {
    /// Returns the argument, or what is missing in a few words: the server does not start then.
    fn from_state(state: &State) -> Result<Self, String>;
}

impl<T: ?Sized + Send + Sync + 'static> FromState for Data<T> {
    fn from_state(state: &State) -> Result<Self, String> {
        let missing = || {
            format!(
                "takes Data<{}>, which is not registered: call data() with it",
                type_name::<T>()
            )
        };
        state.get().ok_or_else(missing)
    }
}

macro_rules! tuples {
    ($($part:ident)*) => {
        impl<$($part: FromState),*> FromState for ($($part,)*) {
            fn from_state(_state: &State) -> Result<Self, String> {
                Ok(($($part::from_state(_state)?,)*))
            }
        }
    };
}

tuples! {}
tuples! { A }
tuples! { A B }
tuples! { A B C }
