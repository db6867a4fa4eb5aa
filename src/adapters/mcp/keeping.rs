//! The list of tools of a connected server, read again whenever it may have changed.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use rmcp::{Peer, RoleClient, ServiceError};
use tokio::time::{Instant, sleep, sleep_until, timeout, timeout_at};

use super::connect::{list, why_not_listed};
use super::link::{Ending, Link, State};
use super::listen::listen;
use super::names::Listed;
use super::settings::McpTransport;
use crate::mcp_servers::Unmatched;

/// Shortest time between two reads of a list, however often the server says that it has changed.
const LIST_PAUSE: Duration = Duration::from_secs(1);
/// Shortest time for which a list counts as fresh, whatever the server says.
const FRESH_MIN: Duration = Duration::from_secs(10);
/// Longest time between two looks whether a server over HTTP is still there.
const LOOK_PAUSE: Duration = Duration::from_secs(30);

impl Link {
    /// Keeps the list of tools current. Returns when the server does not answer.
    pub(super) async fn serve(&self, peer: &Peer<RoleClient>, deadline: Instant) -> Ending {
        let listed = match timeout_at(deadline, list(peer, &self.server)).await {
            Ok(Ok(listed)) => listed,
            Ok(Err(error)) => return Ending::Failed(why_not_listed(&error)),
            Err(_) => return Ending::Failed("it did not list its tools in time".to_owned()),
        };
        let mut fresh = self.take(listed);
        let session = self.sessions.fetch_add(1, Ordering::Relaxed);
        self.enter(State::Ready(peer.clone(), session));
        // again, now that calls find a connection
        self.changes.send_modify(|number| *number += 1);
        self.report();
        let mut listening = Box::pin(listen(peer, Arc::clone(&self.changed)));
        loop {
            let read = Instant::now();
            tokio::select! {
                () = self.changed.notified() => sleep_until(read + LIST_PAUSE).await,
                () = stale(fresh) => {}
                () = &mut listening => {}
            }
            match timeout(self.server.connect_timeout, list(peer, &self.server)).await {
                Ok(Ok(listed)) => fresh = self.take(listed),
                Ok(Err(error @ (ServiceError::McpError(_) | ServiceError::UnexpectedResponse))) => {
                    log::warn!("MCP server {}: {}", self.name(), why_not_listed(&error))
                }
                Ok(Err(_)) => return Ending::Lost("it does not answer".to_owned()),
                // one that makes calls may not list its tools meanwhile
                Err(_) if self.running() > 0 => {
                    log::warn!("MCP server {}: it did not list its tools in time", self.name());
                }
                Err(_) => return Ending::Lost("it did not list its tools in time".to_owned()),
            }
        }
    }

    /// Returns the time for which a list counts as fresh. Over HTTP the list is also read to see
    /// whether the server is still there.
    fn fresh_for(&self, said: Option<Duration>) -> Option<Duration> {
        let said = said.map(|fresh| fresh.max(FRESH_MIN));
        match self.server.transport {
            McpTransport::Http { .. } => Some(said.map_or(LOOK_PAUSE, |said| said.min(LOOK_PAUSE))),
            McpTransport::Program { .. } => said,
        }
    }

    /// Takes over a list. Returns the time for which it is fresh.
    fn take(&self, (listed, fresh): (Listed, Option<Duration>)) -> Option<Duration> {
        let mut known = self.listed.write().unwrap_or_else(PoisonError::into_inner);
        if **known != listed {
            *known = Arc::new(listed);
            drop(known);
            self.changes.send_modify(|number| *number += 1);
        }
        self.fresh_for(fresh)
    }

    /// Logs what was found, with patterns that match no tool.
    fn report(&self) {
        let (name, listed) = (self.name(), self.listed());
        let Listed { tools, left_out, unmatched, is_guarded } = &*listed;
        log::info!("MCP server {name}: connected; {} tools", tools.len());
        for left_out in left_out {
            log::debug!("MCP server {name}: {} is left out: {}", left_out.name, left_out.why);
        }
        for Unmatched { key, pattern } in unmatched {
            log::warn!("mcp.{name}.{key}: the server has no tool {pattern}");
        }
        if *is_guarded {
            log::warn!("mcp.{name}.approval: until that is mended, all its tools need approval");
        }
    }
}

/// Waits until a list is no longer fresh.
async fn stale(fresh: Option<Duration>) {
    match fresh {
        Some(fresh) => sleep(fresh).await,
        None => std::future::pending().await,
    }
}
