//! The list of tools of a connected server, read again whenever it may have changed.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use rmcp::{Peer, RoleClient, ServiceError};
use tokio::time::{Instant, sleep, sleep_until, timeout, timeout_at};

use crate::adapters::mcp::connection::connect::list;
use crate::adapters::mcp::connection::link::{Ending, Link, State};
use crate::adapters::mcp::connection::listen::listen;
use crate::adapters::mcp::reasons::{refusal_of, why_not_listed};
use crate::adapters::mcp::settings::McpTransport;
use crate::adapters::mcp::tools::admission::{Admission, Listed};
use crate::mcp_servers::{ChangedTool, Unmatched};

/// Shortest time between two reads of a list, however often the server says that it has changed.
const LIST_PAUSE: Duration = Duration::from_secs(1);
/// Longest of these times: each list that is another one again doubles it.
const LIST_PAUSE_MAX: Duration = Duration::from_secs(60);
/// Times that the pause has to pass without a change before it is the shortest again.
const QUIET: u32 = 4;
/// Shortest time for which a list counts as fresh, whatever the server says.
const FRESH_MIN: Duration = Duration::from_secs(10);
/// Longest time between two looks whether a server over HTTP is still there.
const LOOK_PAUSE: Duration = Duration::from_secs(30);

impl Link {
    /// Keeps the list of tools current. Returns when the server does not answer.
    pub(crate) async fn serve(&self, peer: &Peer<RoleClient>, deadline: Instant) -> Ending {
        if !peer.peer_info().is_some_and(|info| is_version(&info.protocol_version.to_string())) {
            let why = "its protocol version is not of the form YYYY-MM-DD";
            return Ending::Failed(why.to_owned());
        }
        let listed = match timeout_at(deadline, self.list(peer)).await {
            Ok(Ok(listed)) => listed,
            Ok(Err(error)) => return Ending::Failed(why_not_listed(&error)),
            Err(_) => return Ending::Failed("it did not list its tools in time".to_owned()),
        };
        let (mut fresh, mut pause) = match self.take(listed).await {
            Ok((_, fresh)) => (fresh, LIST_PAUSE),
            Err(why) => return Ending::Failed(why),
        };
        let session = self.sessions.fetch_add(1, Ordering::Relaxed);
        self.enter(State::Ready(peer.clone(), session));
        // again, now that calls find a connection
        self.changes.send_modify(|number| *number += 1);
        self.report();
        let mut listening = Box::pin(listen(peer, Arc::clone(&self.changed)));
        loop {
            let read = Instant::now();
            tokio::select! {
                () = self.changed.notified() => {
                    pause = after_quiet(pause, read.elapsed());
                    sleep_until(read + pause).await;
                }
                () = stale(fresh) => {}
                never = &mut listening => never,
            }
            match timeout(self.server.limits.connect_timeout, self.list(peer)).await {
                Ok(Ok(listed)) => {
                    let has_changed;
                    (has_changed, fresh) = self.take(listed).await.unwrap_or_else(|why| {
                        log::warn!("MCP server {}: {why}", self.name());
                        (false, Some(FRESH_MIN))
                    });
                    if has_changed {
                        pause = (pause * 2).min(LIST_PAUSE_MAX);
                    }
                }
                Ok(Err(error @ (ServiceError::McpError(_) | ServiceError::UnexpectedResponse))) => {
                    let why = self.said(&why_not_listed(&error));
                    log::warn!("MCP server {}: {why}", self.name());
                }
                Ok(Err(error)) => {
                    return Ending::Lost(match refusal_of(&error) {
                        Some(refusal) => refusal.to_string(),
                        None => "it does not answer".to_owned(),
                    });
                }
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

    async fn list(
        &self,
        peer: &Peer<RoleClient>,
    ) -> Result<(Listed, Option<Duration>), ServiceError> {
        let before = Arc::clone(&*self.newest.lock().await);
        list(peer, Admission::of(&self.server, self.sent.clone(), before)).await
    }

    /// Takes over a list. Returns whether it is another one, and the time for which it is fresh.
    async fn take(
        &self,
        (listed, fresh): (Listed, Option<Duration>),
    ) -> Result<(bool, Option<Duration>), String> {
        let is_other = **self.newest.lock().await != listed;
        self.review(Some(listed)).await?;
        let fresh = self.fresh_for(fresh);
        // another process may accept what has changed
        let has_changed = !self.listed().changed.is_empty();
        let looked = fresh.unwrap_or(LOOK_PAUSE).min(LOOK_PAUSE);
        Ok((is_other, if has_changed { Some(looked) } else { fresh }))
    }

    /// Logs what was found, with patterns that match no tool.
    fn report(&self) {
        let (name, listed) = (self.name(), self.listed());
        let Listed { tools, left_out, changed, unmatched, is_guarded } = &*listed;
        log::info!("MCP server {name}: connected; {} tools", tools.len());
        for left_out in left_out {
            log::debug!("MCP server {name}: {} is left out: {}", left_out.name, left_out.why);
        }
        for ChangedTool { name: tool, .. } in changed {
            log::warn!("MCP server {name}: {tool} has changed, and waits to be accepted");
        }
        for Unmatched { key, pattern } in unmatched {
            log::warn!("mcp.{name}.{key}: the server has no tool {pattern}");
        }
        if *is_guarded {
            log::warn!("mcp.{name}.approval: all its tools need approval until this is fixed");
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

/// Returns true if a text has the form of a version of the protocol. Others are not shown or sent on.
fn is_version(text: &str) -> bool {
    let fits = |(at, byte): (usize, u8)| match at {
        4 | 7 => byte == b'-',
        _ => byte.is_ascii_digit(),
    };
    text.len() == 10 && text.bytes().enumerate().all(fits)
}

/// Returns the pause before the next read of a list that is said to have changed so long after the read
/// before.
fn after_quiet(pause: Duration, quiet: Duration) -> Duration {
    if quiet >= (pause * QUIET).min(LIST_PAUSE_MAX) { LIST_PAUSE } else { pause }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_dates() {
        for (text, expected) in [
            ("2025-11-25", true),
            ("1900-01-01", true),
            ("1900-01-01\r\nx-evil: 1", false),
            ("2025-11-2", false),
            ("2025/11/25", false),
            ("", false),
            ("２０２", false),
        ] {
            assert_eq!(is_version(text), expected, "{text}");
        }
    }

    #[test]
    fn the_pause_begins_again_after_a_quiet_time() {
        for (pause, quiet, next) in
            [(1, 0, 1), (8, 31, 8), (8, 32, 1), (60, 59, 60), (60, 60, 1), (1, 3, 1)]
        {
            let [pause, quiet, next] = [pause, quiet, next].map(Duration::from_secs);
            assert_eq!(after_quiet(pause, quiet), next, "{pause:?} {quiet:?}");
        }
    }
}
