//! Connections to servers: transports, what they send and say, and their faults.

pub(crate) mod asking;
pub(crate) mod child;
pub(crate) mod connect;
pub(crate) mod faults;
pub(crate) mod http_client;
pub(crate) mod invalid_answers;
pub(crate) mod lines;
pub(crate) mod link;
pub(crate) mod listen;
pub(crate) mod outgoing;
pub(crate) mod progress;
pub(crate) mod silence;
