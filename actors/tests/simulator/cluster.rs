//! Worlds of two to four processes over one disk.

pub(crate) mod book;
pub(crate) mod doors;
pub(crate) mod laws;
pub(crate) mod line;
pub(crate) mod links;
pub(crate) mod members;
pub(crate) mod node;
pub(crate) mod world;
