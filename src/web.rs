//! The HTTP front end: binds the routes of [`crate::api`] to actix-web. Nothing else in the
//! crate names the framework.

mod agents;
mod body;
mod executions;
mod generation_stream;
mod ids;
mod landing;
mod middleware;
mod origin;
mod outbox;
mod peer;
mod request_ids;
mod respond;
mod routes;
pub(crate) mod server;
pub(crate) mod shutdown;
mod sse;
mod system;
mod workflows;
mod ws;

#[cfg(test)]
mod tests;
