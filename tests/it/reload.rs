//! Changes of the configuration of a running server.

mod edits;
