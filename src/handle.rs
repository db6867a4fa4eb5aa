//! The running server, as other code of the process reaches it.

mod context;
mod resume;
mod run;
mod start;

use std::net::SocketAddr;

use greenroom_actors::Runtime;
use greenroom_actors::domain::ids::ExecutionId;
use serde::Serialize;
use tokio::sync::watch;

pub use self::context::{NoServer, ServerContext};
pub use self::resume::Resume;
pub use self::run::{Run, RunError, RunEvent};
pub use self::start::Start;

/// A running server, for code of the same process: a consumer of a queue, a scheduled task, an
/// application beside it. Its futures and streams may be awaited on any tokio runtime. Cheap to
/// clone; all clones are the same server.
///
/// What it does is checked as a request is, except that it needs no token: it sees all executions.
/// Handlers of [added routes](crate::Greenroom::routes) take it as an argument.
#[derive(Debug, Clone)]
pub struct Handle {
    runtime: Runtime,
    host: Host,
}

/// A server, without its runtime. All clones are the same server.
#[derive(Debug, Clone)]
pub(crate) struct Host {
    address: SocketAddr,
    /// True once a stop was asked for.
    stop: watch::Sender<bool>,
}

impl Host {
    pub(crate) fn new(address: SocketAddr) -> Self {
        Self { address, stop: watch::Sender::new(false) }
    }
}

impl Handle {
    /// Returns the handle of a server. For [`ServerContext`], the runtime has the same host.
    pub(crate) fn new(runtime: Runtime, host: Host) -> Self {
        Self { runtime, host }
    }

    /// Returns the bound address, with the actual port if 0 was configured.
    pub fn address(&self) -> SocketAddr {
        self.host.address
    }

    /// Returns the runtime, for what this handle has no method for.
    pub fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    /// Starts an execution of a workflow when awaited: then the start is durable, and the execution
    /// continues whether or not its [`Run`] is kept. An input that cannot be written as JSON is
    /// refused like one that does not fit the schema.
    ///
    /// ```no_run
    /// use greenroom::{Handle, StartError};
    /// use serde_json::json;
    ///
    /// async fn order(server: &Handle) -> Result<String, Box<dyn std::error::Error>> {
    ///     let order = json!({ "item": "lamp" });
    ///     let run = server.start("order", &order).execution_id("order-7").user("ann").await?;
    ///     Ok(run.returning::<String>().result().await?)
    /// }
    /// ```
    pub fn start(&self, workflow: &str, input: &(impl Serialize + ?Sized)) -> Start {
        Start::new(self.runtime.clone(), workflow, serde_json::to_value(input))
    }

    /// Returns an execution that was started before. Whether it exists shows when it is used.
    pub fn run(&self, workflow: &str, execution_id: &str) -> Run {
        Run::new(self.runtime.clone(), workflow, ExecutionId::trusted(execution_id))
    }

    /// Asks the server to stop, as SIGTERM does: running steps get `server.shutdown_grace`. Returns
    /// at once; the end is that of [`Server::stop`](crate::Server::stop) or of
    /// [`Greenroom::serve`](crate::Greenroom::serve).
    pub fn stop(&self) {
        self.host.stop.send_replace(true);
    }

    /// Resolves when the server was asked to stop by a handle.
    pub(crate) async fn asked_to_stop(&self) {
        let mut asked = self.host.stop.subscribe();
        // the sender is in `self`: waiting cannot fail
        let _ = asked.wait_for(|is_asked| *is_asked).await;
    }
}
