//! AI agents and durable workflows as actors, behind HTTP.

pub mod adapters;
pub mod api;
pub mod app;
pub mod auth;
pub mod builder;
pub mod cli;
pub mod config;
mod greenroom;
mod handle;
mod http_client;
#[cfg(test)]
mod made_page;
pub mod maintenance;
mod nearest;
pub mod reload;
pub mod routes;
mod sample;
mod server;
pub mod telemetry;
mod threads;
mod web;

/// The framework for handlers of added routes; see [`Greenroom::routes`].
pub use actix_web;
pub use greenroom::{Greenroom, Problems, ServeError};
pub use greenroom_actors::Runtime;
pub use greenroom_actors::requests::StartError;
pub use handle::{Handle, Run, RunError, RunEvent, Start};
pub use server::Server;

/// Compiles the Rust of the documentation.
#[cfg(doctest)]
#[doc = include_str!("../docs/library.md")]
struct LibraryGuide;
