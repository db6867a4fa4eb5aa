//! The runtime that a server runs, and requests to it: for handlers of added routes, which take it
//! as `web::Data<Runtime>`.
//!
//! ```
//! use greenroom::actix_web::web;
//! use greenroom::api::ApiError;
//! use greenroom::runtime::StartExecution;
//! use greenroom::{Greenroom, Runtime};
//! use serde_json::json;
//!
//! /// Starts an order, and answers as soon as the start is durable.
//! async fn order(runtime: web::Data<Runtime>, item: web::Path<String>) -> Result<String, ApiError> {
//!     let start = StartExecution::new("order", json!({ "item": item.as_str() }));
//!     Ok(runtime.begin(start).await?.to_string())
//! }
//!
//! let server = Greenroom::new().routes(|routes| {
//!     routes.post("/orders/:item", order);
//! });
//! # drop(server);
//! ```

pub use greenroom_actors::agent::generation::GenerationRequest;
pub use greenroom_actors::domain::event::EventKind;
pub use greenroom_actors::domain::fact::{Fact, Recorded};
pub use greenroom_actors::domain::ids::{ExecutionId, StepPath};
pub use greenroom_actors::domain::principal::Principal;
pub use greenroom_actors::domain::state::Outcome;
pub use greenroom_actors::domain::status::Status;
pub use greenroom_actors::domain::time::Timestamp;
pub use greenroom_actors::ports::answer_guard::GivenAnswer;
pub use greenroom_actors::ports::clock::{Clock, SystemClock};
pub use greenroom_actors::requests::{
    AnswerAsk, Answered, AskError, Cancelled, ControlError, DescribeError, ExecutionOutcome,
    ExecutionState, Failure, Halted, IdempotencyKey, ResumeError, ResumeExecution, StartError,
    StartExecution, StepState, StepStatus, Subscription, Suspended, Target, TraceOrigin,
    TraceParent, Unavailable,
};
pub use greenroom_actors::runtime::{
    AskedBefore, CallTool, CallToolError, EventPage, Readiness, Runtime,
};
pub use greenroom_actors::visibility::Visibility;
