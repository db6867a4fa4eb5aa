//! The handle of the server, for functions of its steps and tools.

use std::any::Any;

use greenroom_actors::Runtime;
use greenroom_actors::agent::tool::ToolContext;
use greenroom_actors::function::StepContext;

use super::{Handle, Host};

/// Context of a function that a server runs: [`StepContext`] or [`ToolContext`].
///
/// ```
/// use greenroom::prelude::*;
/// use serde_json::json;
///
/// /// Orders what is missing, and waits until it has arrived.
/// async fn restock(item: String, step: StepContext) -> Result<String, StepError> {
///     let order = json!({ "item": item });
///     // under an id of this step: another attempt finds what this one started
///     let id = format!("restock:{}", step.execution_id);
///     let server = step.handle()?;
///     let started = server.start("order", &order).execution_id(&id).await;
///     match started {
///         Ok(_) | Err(greenroom::StartError::Exists(_)) => {}
///         Err(error) => return Err(error.into()),
///     }
///     Ok(server.run("order", &id).returning::<String>().result().await?)
/// }
///
/// let server = Greenroom::new().call("restock", restock);
/// # drop(server);
/// ```
pub trait ServerContext: sealed::Sealed {
    /// Returns the handle of the server: the function can start executions and follow them. What it
    /// starts is not recorded as a part of its step, as a child of a `Step::workflow` is, so it
    /// should have an id by which another attempt finds it.
    fn handle(&self) -> Result<Handle, NoServer>;
}

/// Reason for a context without a handle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "no server runs this: the context is that of a unit test (greenroom::testing has worlds with a \
     server), or its server has ended"
)]
pub struct NoServer;

impl ServerContext for StepContext {
    fn handle(&self) -> Result<Handle, NoServer> {
        handle(self.runtime(), self.host())
    }
}

impl ServerContext for ToolContext {
    fn handle(&self) -> Result<Handle, NoServer> {
        handle(self.runtime(), self.host())
    }
}

fn handle(
    runtime: Option<Runtime>,
    host: Option<&(dyn Any + Send + Sync)>,
) -> Result<Handle, NoServer> {
    let host = host.and_then(|host| host.downcast_ref::<Host>()).ok_or(NoServer)?;
    Ok(Handle::new(runtime.ok_or(NoServer)?, host.clone()))
}

mod sealed {
    use super::{StepContext, ToolContext};

    pub trait Sealed {}

    impl Sealed for StepContext {}
    impl Sealed for ToolContext {}
}
