//! The error of values that cannot be read.

use std::fmt::Display;

/// A stored value is damaged; the text says in what way. A store names the record and the column.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Damaged(Box<str>);

impl Damaged {
    /// Describes the damage. The text must not contain the value of a user.
    pub fn new(what: impl Display) -> Self {
        Self(what.to_string().into())
    }
}
