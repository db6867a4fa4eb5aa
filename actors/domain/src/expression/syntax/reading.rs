//! What is read from the syntax tree of a text.

use std::collections::BTreeSet;

use super::compared::Compared;

/// What a text reads and uses.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reading {
    /// What it reads by name, without what it sets itself, in the order of the text.
    pub paths: Vec<Path>,
    /// Where it asks whether a value is a constant.
    pub compared: Vec<Compared>,
    /// The filters, tests and functions that it uses.
    pub used: Vec<Used>,
    /// Constant texts inside of its code.
    pub constants: Vec<Part>,
    /// What of a template is no code.
    pub plain: Vec<Part>,
    /// Whether the text is an expression that is one path and nothing else.
    pub is_path: bool,
}

/// A name, and the keys that are looked up in its value one after the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Path {
    pub root: String,
    pub keys: Vec<PathKey>,
    /// Whether the text allows for it not to be there.
    pub is_optional: bool,
    /// Where it begins, in bytes.
    pub at: usize,
}

/// What is looked up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PathKey {
    Name(String),
    /// An item, or a key that only a run knows.
    Computed,
}

/// Something of the engine that a text uses by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Used {
    pub kind: UsedKind,
    pub name: String,
    pub at: usize,
}

/// What a name of the engine stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UsedKind {
    Filter,
    Test,
    Function,
    /// Called on a value: `text.upper()`.
    Method,
}

/// A part of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    pub text: String,
    pub at: usize,
}

impl Reading {
    /// The names that it reads.
    pub fn names(&self) -> BTreeSet<&str> {
        self.paths.iter().map(|path| path.root.as_str()).collect()
    }

    /// Ids of the steps that it reads.
    pub fn steps(&self) -> BTreeSet<&str> {
        self.paths.iter().filter_map(Path::step).collect()
    }
}

impl Path {
    /// The step that is read.
    pub fn step(&self) -> Option<&str> {
        match self.keys.first() {
            Some(PathKey::Name(id)) if self.root == "steps" => Some(id),
            Some(PathKey::Name(_) | PathKey::Computed) | None => None,
        }
    }

    pub(super) fn begins_with(&self, other: &Self) -> bool {
        self.root == other.root && self.keys.starts_with(&other.keys)
    }
}
