//! Clients for calls of steps out of the process.

use futures_util::future::{BoxFuture, FutureExt as _};
use greenroom_actors::domain::call::{CommandRun, HttpRequest};
use greenroom_actors::domain::failure::{AttemptFailure, ErrorKind};
use greenroom_actors::ports::external_calls::{CallOrigin, ExternalCalls};
use serde_json::Value;

use super::command::Commands;
use super::http::HttpCalls;

/// Clients of HTTP calls and of programs.
#[derive(Debug, Clone)]
pub struct OutboundClients {
    /// The client, or the reason why none could be made.
    pub http: Result<HttpCalls, String>,
    pub commands: Commands,
}

impl ExternalCalls for OutboundClients {
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

    fn command(
        &self,
        run: CommandRun,
        origin: CallOrigin,
    ) -> BoxFuture<'static, Result<Value, AttemptFailure>> {
        let commands = self.commands.clone();
        async move { commands.run(run, &origin).await }.boxed()
    }
}
