//! Tools that leave the process.

pub mod http;
pub mod outgoing;
