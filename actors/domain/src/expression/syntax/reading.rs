//! Result of the analysis of a text.

use std::collections::BTreeSet;

use super::compared::Compared;

/// Names and words that a text uses.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reading {
    /// Paths that it reads, without names that it sets itself, in order.
    pub paths: Vec<Path>,
    /// Comparisons with constants.
    pub compared: Vec<Compared>,
    /// Filters, tests and functions.
    pub used: Vec<Used>,
    /// String literals in its code.
    pub constants: Vec<Part>,
    /// Literal text of a template.
    pub plain: Vec<Part>,
    /// True if the text is an expression that is a single path.
    pub is_path: bool,
}

/// A name and the keys that are looked up in its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Path {
    pub root: String,
    pub keys: Vec<PathKey>,
    /// True if the text handles its absence, here or elsewhere.
    pub is_optional: bool,
    /// Handling of its absence at this place.
    pub guard: Guard,
    /// Byte offset.
    pub at: usize,
}

/// Handling of the absence of a path, directly after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Guard {
    None,
    /// A `default`, which gives a value in its place.
    Default,
    /// A test of presence: `is defined`.
    Presence,
    /// `'key' in value`, which tests the last key alone.
    Key,
}

/// A step of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PathKey {
    Name(String),
    /// An index, or a key that is known only at run time.
    Computed,
}

/// Use of a filter, test, function or method.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Used {
    pub kind: UsedKind,
    pub name: String,
    pub at: usize,
}

/// Kind of a used name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UsedKind {
    Filter,
    Test,
    Function,
    /// A call on a value: `text.upper()`.
    Method,
}

/// A literal part of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    pub text: String,
    pub at: usize,
}

impl Reading {
    /// Returns the names that it reads.
    pub fn names(&self) -> BTreeSet<&str> {
        self.paths.iter().map(|path| path.root.as_str()).collect()
    }

    /// Returns the ids of the steps that it reads.
    pub fn steps(&self) -> BTreeSet<&str> {
        self.paths.iter().filter_map(Path::step).collect()
    }
}

impl Path {
    /// Returns the step that is read.
    pub fn step(&self) -> Option<&str> {
        match self.keys.first() {
            Some(PathKey::Name(id)) if self.root == "steps" => Some(id),
            Some(PathKey::Name(_) | PathKey::Computed) | None => None,
        }
    }

    /// Returns true if its guard handles the absence of `keys` in `path`, of which they are the
    /// first ones.
    pub fn guards(&self, path: &Self, keys: &[PathKey]) -> bool {
        if self.root != path.root || !self.keys.starts_with(keys) {
            return false;
        }
        match self.guard {
            Guard::None => false,
            Guard::Key => self.keys.len() == keys.len(),
            // a value that has been found was a member of all before it
            Guard::Presence => true,
            Guard::Default => self.keys.len() == keys.len() || path.keys.starts_with(&self.keys),
        }
    }

    pub(super) fn begins_with(&self, other: &Self) -> bool {
        self.root == other.root && self.keys.starts_with(&other.keys)
    }
}
