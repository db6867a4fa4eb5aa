//! AI agents and durable workflows as actors, behind HTTP.
//!
//! A program registers workflows, agents, tools and models with a [`Greenroom`], which serves them:
//! routes to start, stream, suspend, resume and describe executions, chats with agents, an inbox of
//! everything that waits for a person, traces, metrics, and an OpenAPI document. Every execution is
//! recorded before its result is shown, and continues after a crash.
//!
//! Start here:
//!
//! | For | See |
//! |---|---|
//! | the server, and everything that is registered with it | [`Greenroom`] |
//! | workflows, agents, tools and routes in Rust, a builder for each | [`builder`] |
//! | closures as conditions, items, inputs and payloads | [`builder::Scope`] |
//! | functions and tools over types, with shared data | [`typed`], [`schema`] |
//! | functions of steps: context, outcomes, failures | [`step`] |
//! | tools: context, failures, approvals | [`tool`] |
//! | agents: hooks, messages, generations | [`agent`] |
//! | models of one's own, and one for tests | [`model`], [`adapters::mock`] |
//! | routes of one's own, and who calls them | [`routes`], [`auth`] |
//! | a server beside other code: starting, following and resuming executions | [`Server`], [`Handle`], [`Run`] |
//! | the same from functions of steps and tools | [`ServerContext`] |
//! | everything that requests can do, from Rust | [`runtime`] |
//! | a store of one's own, and the rules that it has to follow | [`store`] |
//! | tests of workflows: virtual time, mocks, crashes | [`testing`] |
//! | the usual names in one `use` | [`prelude`] |
//!
//! # A workflow
//!
//! ```no_run
//! use std::time::Duration;
//!
//! use greenroom::prelude::*;
//! use serde::{Deserialize, Serialize};
//! use serde_json::json;
//!
//! #[derive(Deserialize)]
//! struct Order {
//!     item: String,
//!     cents: u64,
//! }
//!
//! #[derive(Serialize)]
//! struct Receipt {
//!     text: String,
//! }
//!
//! async fn pay(order: Order, step: StepContext) -> Result<Receipt, StepError> {
//!     if order.cents == 0 {
//!         return Err(StepError::terminal("nothing to pay"));
//!     }
//!     Ok(Receipt { text: format!("{} paid with {}", order.item, step.idempotency_key) })
//! }
//!
//! fn main() -> Result<(), ServeError> {
//!     // waits for a person, over restarts, if the order is expensive
//!     let approval = Suspend::when("input.cents > 100000").reason("{{ input.item }}");
//!     let order = Workflow::new("order")
//!         .step(Step::map("approve", json!("input")).suspend(approval))
//!         .step(Step::call("pay", pay).retry(Retry::attempts(3).delay(Duration::from_secs(1))));
//!     Greenroom::new().workflow(order).serve()
//! }
//! ```
//!
//! # An agent
//!
//! ```no_run
//! use std::sync::Arc;
//!
//! use greenroom::adapters::mock::{MockConfig, MockModel, MockRule};
//! use greenroom::prelude::*;
//! use serde_json::json;
//!
//! fn main() -> Result<(), ServeError> {
//!     // a model for rehearsals, which calls the tool and tells what it returned
//!     let rules = vec![
//!         MockRule::reply("It is {{ tool_results[-1].output.status }}.").when("tool_results"),
//!         MockRule::call("order_status", json!({ "number": "7" })).when("'order' in prompt"),
//!         MockRule::reply("Ask me about an order."),
//!     ];
//!     let config = MockConfig { rules, ..MockConfig::default() };
//!     let offline = MockModel::new(config)?;
//!     let parameters = json!({ "type": "object", "required": ["number"],
//!         "properties": { "number": { "type": "integer" } } });
//!     Greenroom::new()
//!         .model("offline", Arc::new(offline))
//!         .tool("order_status", "Returns the status of an order", parameters, |order, _| async move {
//!             Ok(json!({ "number": order["number"], "status": "on its way" }))
//!         })
//!         .agent(
//!             Agent::new("desk")
//!                 .model("offline")
//!                 .instructions("You work at the service desk.")
//!                 .tools(["order_status"]),
//!         )
//!         .serve()
//! }
//! ```
//!
//! # A route
//!
//! ```no_run
//! use greenroom::actix_web::web;
//! use greenroom::api::ApiError;
//! use greenroom::prelude::*;
//! use greenroom::routes::Caller;
//! use serde_json::json;
//!
//! /// Starts an order of the user of the token, and answers with the id of its execution.
//! async fn order(
//!     server: Handle,
//!     caller: Caller,
//!     item: web::Path<String>,
//! ) -> Result<String, ApiError> {
//!     let order = json!({ "item": item.as_str() });
//!     let run = server.start("order", &order).caller(&caller).await?;
//!     Ok(run.id().to_string())
//! }
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     Greenroom::from_config("config.toml")?
//!         .routes(|routes| {
//!             routes.post("/orders/:item", order).summary("Starts an order");
//!         })
//!         .serve()?;
//!     Ok(())
//! }
//! ```
//!
//! # A test
//!
//! Time is virtual: two days without an answer pass in a moment. See [`testing`] for mocks, answers and
//! kills at every point.
//!
//! ```
//! # #[cfg(feature = "testing")] {
//! use std::time::Duration;
//!
//! use greenroom::prelude::*;
//! use greenroom::testing::{self, Case};
//! use serde_json::json;
//!
//! const TWO_DAYS: Duration = Duration::from_secs(48 * 3600);
//!
//! fn server() -> Greenroom {
//!     let asked = Suspend::always().deadline(TWO_DAYS).on_timeout_resume(json!(false));
//!     let approve = Step::map("approve", json!("resume")).suspend(asked);
//!     Greenroom::new().workflow(Workflow::new("order").step(approve))
//! }
//!
//! # fn nobody_answers() {
//! let case = Case::new("order").expect("result == false").expect_took(TWO_DAYS);
//! testing::run(case.run(server)).unwrap();
//! # }
//! # nobody_answers();
//! # }
//! ```

pub mod adapters;
pub mod agent;
pub mod api;
pub mod app;
pub mod auth;
pub mod builder;
#[cfg(feature = "cli")]
#[doc(hidden)]
pub mod cli;
pub mod config;
mod faces;
mod globs;
mod greenroom;
mod handle;
#[cfg(feature = "http-client")]
mod http_client;
mod loopback;
#[cfg(test)]
mod made_page;
#[doc(hidden)]
pub mod maintenance;
#[doc(hidden)]
pub mod mcp_servers;
pub mod model;
mod nearest;
pub mod prelude;
#[doc(hidden)]
pub mod reload;
pub mod routes;
pub mod runtime;
mod sample;
#[cfg(feature = "schemars")]
pub mod schema;
mod server;
pub mod step;
pub mod store;
#[doc(hidden)]
pub mod telemetry;
#[cfg(feature = "testing")]
pub mod testing;
mod threads;
pub mod tool;
pub mod typed;
mod web;

/// The framework for handlers of added routes; see [`Greenroom::routes`].
pub use actix_web;
pub use greenroom::{Greenroom, Problems, ServeError};
pub use greenroom_actors::Runtime;
pub use greenroom_actors::requests::{ControlError, DescribeError, ResumeError, StartError};
pub use handle::{Handle, NoServer, Resume, Run, RunError, RunEvent, ServerContext, Start};
/// The library that makes JSON Schemas of types. A derived `JsonSchema` of a program that does not
/// name it needs `use greenroom::schemars;` beside it.
#[cfg(feature = "schemars")]
pub use schemars;
pub use server::Server;

/// Compiles the Rust of the documentation.
#[cfg(doctest)]
#[doc = include_str!("../docs/library.md")]
struct LibraryGuide;

#[cfg(doctest)]
#[doc = include_str!("../docs/testing.md")]
struct TestingGuide;
