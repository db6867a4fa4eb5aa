//! Connections that can be called, as calls find them.

use std::sync::Arc;

use greenroom_actors::agent::tool::ToolError;
use greenroom_actors::domain::failure::ErrorKind;
use rmcp::{Peer, RoleClient};

use crate::adapters::mcp::connection::link::{Link, State};
use crate::adapters::mcp::failed::failed;
use crate::adapters::mcp::tools::admission::RemoteTool;
use crate::adapters::mcp::tools::changes::Change;

/// A connection that can be called.
pub(crate) struct CallableConnection {
    pub(crate) peer: Peer<RoleClient>,
    /// Number of the session.
    pub(crate) session: u64,
    /// True if the tool may be called again when it is not known whether a call had its effect.
    pub(crate) is_repeatable: bool,
    /// Set if its definition is not accepted.
    pub(crate) change: Option<Arc<Change>>,
}

impl Link {
    /// Waits while a connection is being made; one of the session `lost` does not count. Fails if there
    /// is none, or if the server has no such tool; the texts are for models and callers.
    pub(crate) async fn connected(
        &self,
        tool: &str,
        lost: Option<u64>,
    ) -> Result<CallableConnection, ToolError> {
        self.callable(tool, lost, false).await
    }

    /// As [`Self::connected`], but waits also while the server is away.
    pub(crate) async fn reached(
        &self,
        tool: &str,
        lost: Option<u64>,
    ) -> Result<CallableConnection, ToolError> {
        self.callable(tool, lost, true).await
    }

    async fn callable(
        &self,
        tool: &str,
        lost: Option<u64>,
        is_patient: bool,
    ) -> Result<CallableConnection, ToolError> {
        let server = self.name();
        let mut state = self.state.subscribe();
        let is_settled = |state: &State| match state {
            State::Connecting => false,
            State::Ready(_, session) => lost != Some(*session),
            State::Failed(_) => !is_patient,
        };
        let settled = match state.wait_for(is_settled).await.as_deref() {
            Ok(State::Ready(peer, session)) => Some((peer.clone(), *session)),
            Ok(State::Connecting | State::Failed(_)) | Err(_) => None,
        };
        let Some((peer, session)) = settled else {
            let why = format!("the MCP server {server} is not connected; try again later");
            return Err(failed(ErrorKind::Connection, why));
        };
        self.look_again(tool).await?;
        let listed = self.listed();
        match listed.tools.iter().find(|known| known.name == tool) {
            Some(RemoteTool { is_repeatable, change, .. }) => {
                let (is_repeatable, change) = (*is_repeatable, change.clone());
                Ok(CallableConnection { peer, session, is_repeatable, change })
            }
            None => {
                let why = match listed.left_out.iter().find(|it| it.name == tool) {
                    Some(left_out) => format!("{server}.{tool} cannot be used: {}", left_out.why),
                    None => format!("the MCP server {server} has no tool {tool}"),
                };
                Err(failed(ErrorKind::Tool, why))
            }
        }
    }
}
