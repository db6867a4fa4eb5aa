//! greenroom: a server where AI agents and durable workflows run as actors, behind HTTP.

pub mod api;
pub mod web;
