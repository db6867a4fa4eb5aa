//! AI agents and durable workflows as actors, behind HTTP.

pub mod adapters;
pub mod api;
pub mod app;
pub mod auth;
pub mod builder;
pub mod cli;
pub mod config;
mod greenroom;
pub mod upkeep;
mod web;

pub use greenroom::{Greenroom, Problems};

/// Compiles the Rust of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
