//! Implementations of the runtime's ports; each knows one technology and nothing of HTTP.

pub mod rehearsal;
pub mod store_sqlite;
pub mod tools;
