//! Review of the tools of a server: its newest list is compared with what is accepted, and calls of
//! tools that have changed wait for a person.

use std::sync::{Arc, PoisonError};

use futures_util::FutureExt as _;
use greenroom_actors::agent::CallApproval;
use greenroom_actors::agent::tool::{ApprovalFunction, ToolContext, ToolError};
use greenroom_actors::domain::failure::{AttemptFailure, ErrorKind};
use greenroom_actors::ports::clock::{Clock as _, SystemClock};
use greenroom_actors::ports::store::KnownTool;

use crate::adapters::mcp::calls::callable::CallableConnection;
use crate::adapters::mcp::connection::link::Link;
use crate::adapters::mcp::failed::failed;
use crate::adapters::mcp::tools::admission::{Listed, RemoteTool};
use crate::adapters::mcp::tools::changes::{
    Change, accept_request, acceptance, first_look, review,
};
use crate::mcp_servers::{ChangedTool, NotAccepted};

/// Attempts to accept a definition while others accept other ones.
const ATTEMPTS: usize = 5;

/// Returns the function of a tool that accepts the change which a person has approved, before the call.
pub(crate) fn on_approval(link: &Arc<Link>, tool: &str) -> ApprovalFunction {
    let (link, tool) = (Arc::clone(link), Arc::<str>::from(tool));
    Arc::new(move |approved| {
        let (link, tool) = (Arc::clone(&link), Arc::clone(&tool));
        async move { link.accept_approved(&tool, &approved).await }.boxed()
    })
}

impl Link {
    /// Puts a list in use, compared with what is accepted; `None`: the newest one, as something may have
    /// been accepted since. The error says why that is not known.
    pub(crate) async fn review(&self, newest: Option<Listed>) -> Result<(), String> {
        let mut listed = self.newest.lock().await;
        let newest = newest.map_or_else(|| Arc::clone(&listed), Arc::new);
        let reviewed = self.compared(&newest).await;
        let reviewed =
            reviewed.map_err(|why| format!("the accepted tools cannot be read: {why}"))?;
        *listed = newest;
        let mut known = self.listed.write().unwrap_or_else(PoisonError::into_inner);
        if **known != reviewed {
            for ChangedTool { name, .. } in &reviewed.changed {
                if !known.changed.iter().any(|before| before.name == *name) {
                    let server = self.name();
                    log::warn!(
                        "MCP server {server}: {name} differs from the accepted definition; review \
                         it (`greenroom tools servers`), and accept it with `greenroom tools \
                         accept {server} {name}`"
                    );
                }
            }
            *known = Arc::new(reviewed);
            // counted before it can be read
            self.changes.send_modify(|number| *number += 1);
        }
        Ok(())
    }

    async fn compared(&self, list: &Listed) -> Result<Listed, String> {
        let (server, now) = (&self.server, SystemClock.now());
        let names: Vec<Arc<str>> =
            list.tools.iter().map(|tool| tool.name.as_str().into()).collect();
        let mut known = self.records.known(&server.name, &names).await?;
        let is_new = |tool: &&RemoteTool| !known.contains_key(tool.name.as_str());
        let new: Vec<_> =
            list.tools.iter().filter(is_new).map(|tool| first_look(server, tool, now)).collect();
        if !new.is_empty() {
            self.records.see(&new, server.limits.tools_seen_max).await?;
            // those of another process may have been first
            known = self.records.known(&server.name, &names).await?;
        }
        let review = review(server, list, &self.listed(), &known, now);
        for (accepted, replaced) in review.taken {
            let name = Arc::clone(&accepted.tool);
            if self.records.accept(accepted, replaced).await? {
                log::warn!("MCP server {}: {name} has changed, and is used as it is", server.name);
            }
        }
        Ok(review.listed)
    }

    /// Accepts the change of a tool that a person has approved, or returns what the call waits for.
    pub(crate) async fn settle(
        &self,
        tool: &str,
        change: &Change,
        context: &ToolContext,
    ) -> Result<(), ToolError> {
        if context.approved.as_ref() == Some(&change.hash) {
            let accepted = self.accept_for_call(tool, &change.hash).await;
            return accepted.map_err(ToolError::Failed);
        }
        if context.agent_id.is_none() {
            let why = self.without_secrets(change.refusal(&self.server, tool));
            return Err(failed(ErrorKind::Tool, why));
        }
        let approval = self.server.approval.as_ref().map(|(_, approval)| approval);
        Err(ToolError::NeedsApproval(Box::new(CallApproval {
            reason: self.without_secrets(change.question()),
            subject: Arc::clone(&change.hash),
            to: approval.map(|it| it.assignees().to_vec()).unwrap_or_default(),
            deadline: approval.and_then(|it| it.time_limit()),
            permission: Some(accept_request(&self.server).into()),
        })))
    }

    /// Accepts a change that a person has approved, if the tool still has it: the call says what is wrong
    /// otherwise.
    async fn accept_approved(&self, tool: &str, approved: &str) -> Result<(), AttemptFailure> {
        match self.connected(tool, None).await {
            Ok(CallableConnection { change: Some(change), .. }) if *change.hash == *approved => {
                self.accept_for_call(tool, approved).await
            }
            Ok(_) | Err(_) => Ok(()),
        }
    }

    async fn accept_for_call(&self, tool: &str, hash: &str) -> Result<(), AttemptFailure> {
        let accepted = self.accept(tool, Some(hash)).await;
        accepted.map(drop).map_err(|why| match why {
            NotAccepted::Unavailable(why) => self.unavailable(&why),
            NotAccepted::NoServer | NotAccepted::NoTool | NotAccepted::Differs => {
                let why = format!("{}.{tool} has changed again; call it again", self.name());
                AttemptFailure::new(ErrorKind::Tool, why)
            }
        })
    }

    /// Reads again what is accepted if a tool is known to have changed: another call, another process or
    /// an operator may have accepted it.
    pub(crate) async fn look_again(&self, tool: &str) -> Result<(), ToolError> {
        if self.listed().changed.iter().any(|changed| changed.name == tool) {
            self.review(None).await.map_err(|why| self.unknown(&why))?;
        }
        Ok(())
    }

    fn unknown(&self, why: &str) -> ToolError {
        ToolError::Failed(self.unavailable(why))
    }

    fn unavailable(&self, why: &str) -> AttemptFailure {
        log::warn!("MCP server {}: {why}", self.name());
        let why = format!("the store of {} is not available; try again later", self.name());
        AttemptFailure::new(ErrorKind::Connection, why)
    }

    /// Accepts the definition that a tool has, which has to have this hash if one is given. Returns true
    /// if it was not accepted before.
    pub(crate) async fn accept(&self, name: &str, hash: Option<&str>) -> Result<bool, NotAccepted> {
        let newest = Arc::clone(&*self.newest.lock().await);
        let tool = newest.tools.iter().find(|tool| tool.name == name).ok_or(NotAccepted::NoTool)?;
        if hash.is_some_and(|hash| *tool.prints.hash() != *hash) {
            return Err(NotAccepted::Differs);
        }
        let is_new = self.put_accepted(tool).await.map_err(NotAccepted::Unavailable)?;
        if is_new {
            log::info!("MCP server {}: the change of {name} is accepted", self.name());
        }
        self.review(None).await.map_err(NotAccepted::Unavailable)?;
        Ok(is_new)
    }

    /// Accepts all that has changed, as it is now. Returns the names of the tools. Those that change
    /// meanwhile are left as they are.
    pub(crate) async fn accept_all(&self) -> Result<Vec<String>, NotAccepted> {
        let mut accepted = Vec::new();
        for ChangedTool { name, hash, .. } in &self.listed().changed {
            match self.accept(name, Some(hash)).await {
                Ok(true) => accepted.push(name.clone()),
                Ok(false) | Err(NotAccepted::Differs | NotAccepted::NoTool) => {}
                Err(error @ (NotAccepted::NoServer | NotAccepted::Unavailable(_))) => {
                    return Err(error);
                }
            }
        }
        Ok(accepted)
    }

    /// Returns the tools whose definitions are not the accepted ones.
    pub(crate) fn changed(&self) -> Vec<ChangedTool> {
        let clean = |text: &String| self.without_secrets(text.clone());
        let changed = self.listed().changed.clone().into_iter();
        changed
            .map(|it| ChangedTool { description: it.description.as_ref().map(clean), ..it })
            .collect()
    }

    async fn put_accepted(&self, tool: &RemoteTool) -> Result<bool, String> {
        let (server, name) = (&self.server, Arc::<str>::from(tool.name.as_str()));
        for _ in 0..ATTEMPTS {
            let known = self.records.known(&server.name, std::slice::from_ref(&name)).await?;
            let Some(known) = known.get(&name) else { return Ok(false) };
            let Some(accepted) = acceptance(server, tool, known, SystemClock.now()) else {
                return Ok(false);
            };
            let KnownTool { hash, .. } = known;
            if self.records.accept(accepted, Arc::clone(hash)).await? {
                return Ok(true);
            }
        }
        Err(format!("{name} was changed concurrently; try again"))
    }
}
