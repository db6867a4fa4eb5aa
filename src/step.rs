//! Functions as bodies of steps: their context, outcomes and failures.

pub use greenroom_actors::domain::ids::ExecutionId;
pub use greenroom_actors::domain::principal::Principal;
pub use greenroom_actors::domain::trace::Trace;
pub use greenroom_actors::function::{StepContext, StepError, StepFunction, StepOutcome};
pub use tokio_util::sync::CancellationToken;
