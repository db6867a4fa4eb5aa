//! The names that most programs need, for one `use`.
//!
//! ```
//! use greenroom::prelude::*;
//!
//! async fn double(n: u32) -> Result<u32, StepError> {
//!     Ok(n * 2)
//! }
//!
//! let server = Greenroom::new().workflow(Workflow::new("w").step(Step::call("double", double)));
//! # drop(server);
//! ```

pub use crate::builder::{
    Agent, Block, Compensation, Mapping, OnError, Retry, Scope, Step, Suspend, Tool, Workflow,
};
pub use crate::step::{StepContext, StepError, StepOutcome};
pub use crate::tool::{Approval, ToolContext, ToolError};
pub use crate::typed::Data;
pub use crate::{Greenroom, Handle, Run, Runtime, ServeError, Server, ServerContext};
