//! A configuration that is edited under a server that runs.

mod edits;
