//! Valid and invalid configurations.

mod agents;
mod auth;
mod blocks;
mod cluster;
mod compensation;
mod expressions;
mod includes;
mod mcp;
mod mcp_face;
mod mistakes;
mod models;
mod page;
mod refusals;
mod renamed;
mod routes;
pub(super) mod schema;
mod secrets;
mod sections;
mod shipped;
mod store;
#[cfg(feature = "otel")]
mod telemetry;
mod tools;
mod workflow_tests;

use super::Config;

/// Returns the problems of a text, one line each.
fn problems_of(text: &str) -> Vec<String> {
    match Config::parse(text, "c.toml") {
        Ok(config) => config.warnings.iter().map(ToString::to_string).collect(),
        Err(problems) => problems.iter().map(ToString::to_string).collect(),
    }
}
