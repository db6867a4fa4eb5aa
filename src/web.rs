//! The HTTP front end: binds the routes of [`crate::api`] to actix-web. `tests/tidy.rs` keeps the
//! framework out of the other modules.

pub(crate) mod admission;
mod agents;
mod backlog;
pub(crate) mod binding;
mod body;
#[cfg(feature = "ui")]
mod browse;
mod call;
mod compress;
#[cfg(feature = "ui")]
pub(crate) mod console;
pub(crate) mod custom;
mod docs;
mod executions;
mod faces;
pub(crate) mod gate;
mod generation_stream;
mod handle;
mod heartbeat;
mod history;
mod html;
mod ids;
mod inbox;
mod landing;
mod local_only;
mod memory;
mod middleware;
mod notice;
mod observability;
mod origin;
mod peer;
mod pending_stream;
mod pieces;
mod prefer;
pub(crate) mod query;
mod request_ids;
mod request_metrics;
mod respond;
pub(crate) mod routes;
mod scope;
pub(crate) mod server;
pub(crate) mod settings;
pub(crate) mod shutdown;
mod sse;
mod static_file;
pub(crate) mod stoppable_listener;
mod subscriber_queue;
mod system;
mod tools;
mod trace;
mod whoami;
mod workflows;
mod ws;

#[cfg(test)]
mod tests;
