//! Clients for calls of steps out of the process.

use futures_util::future::{BoxFuture, FutureExt as _};
use greenroom_actors::domain::call::{CommandRun, HttpRequest};
use greenroom_actors::domain::failure::{AttemptFailure, ErrorKind};
use greenroom_actors::ports::external_calls::{CallOrigin, ExternalCalls};
use serde_json::Value;

#[cfg(feature = "mcp")]
use crate::adapters::mcp::hub::McpHub;
use crate::adapters::tools::command::Commands;
#[cfg(feature = "providers")]
use crate::adapters::tools::http::HttpCalls;

/// Clients of HTTP calls, of programs and of MCP servers.
#[derive(Debug, Clone)]
pub struct OutboundClients {
    /// The client, or the reason why none could be made.
    #[cfg(feature = "providers")]
    pub http: Result<HttpCalls, String>,
    pub commands: Commands,
    /// Connections to MCP servers.
    #[cfg(feature = "mcp")]
    pub mcp: std::sync::Arc<McpHub>,
}

impl ExternalCalls for OutboundClients {
    #[cfg(feature = "providers")]
    fn http(
        &self,
        request: HttpRequest,
        origin: CallOrigin,
    ) -> BoxFuture<'static, Result<Value, AttemptFailure>> {
        let calls = self.http.clone();
        async move {
            let calls = calls.map_err(|why| AttemptFailure::new(ErrorKind::Request, why))?;
            calls.call(request, &origin).await
        }
        .boxed()
    }

    /// Fails. No server gets here: it would not have started with an HTTP step.
    #[cfg(not(feature = "providers"))]
    fn http(
        &self,
        _: HttpRequest,
        _: CallOrigin,
    ) -> BoxFuture<'static, Result<Value, AttemptFailure>> {
        let why = "this program was built without the feature `providers`";
        std::future::ready(Err(AttemptFailure::new(ErrorKind::Request, why))).boxed()
    }

    fn command(
        &self,
        run: CommandRun,
        origin: CallOrigin,
    ) -> BoxFuture<'static, Result<Value, AttemptFailure>> {
        let commands = self.commands.clone();
        async move { commands.run(run, &origin).await }.boxed()
    }
}
