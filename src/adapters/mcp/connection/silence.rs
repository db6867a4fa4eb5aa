//! Programs that no longer say anything, noticed after calls that were given up.

use std::time::Duration;

use rmcp::model::{ClientRequest, PingRequest};
use rmcp::{Peer, RoleClient};
use tokio::sync::Notify;
use tokio::time::sleep;

use crate::adapters::mcp::connection::faults::Findings;
use crate::adapters::mcp::connection::link::Link;
use crate::adapters::mcp::settings::McpTransport;

/// Shortest silence that ends a connection. It is as long as the time limit of calls if that is longer:
/// a program may do one thing at a time.
const SILENCE_MIN: Duration = Duration::from_secs(30);

impl Link {
    /// Waits until a program says nothing after a call was given up, not even to a ping. Servers over
    /// HTTP are noticed by their lists.
    pub(crate) async fn silent(&self, peer: &Peer<RoleClient>, findings: &Findings) {
        if let McpTransport::Http { .. } = self.server.transport {
            std::future::pending::<()>().await;
        }
        let limit = self.server.limits.timeout.unwrap_or(SILENCE_MIN).max(SILENCE_MIN);
        let ping = || async {
            let ping = ClientRequest::PingRequest(PingRequest::default());
            // an answer of any kind counts
            if peer.send_request(ping).await.is_err() {
                std::future::pending::<()>().await;
            }
        };
        silence(&self.given_up, findings, limit, ping).await;
    }
}

/// Waits for a silence of this length that begins when a call is given up. `ping` returns with an answer.
async fn silence<F: Future<Output = ()>>(
    given_up: &Notify,
    findings: &Findings,
    limit: Duration,
    ping: impl Fn() -> F,
) {
    loop {
        given_up.notified().await;
        let messages = findings.messages();
        tokio::select! {
            () = ping() => {}
            () = sleep(limit) => if findings.messages() == messages { return },
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use tokio::time::Instant;

    use super::*;

    const LIMIT: Duration = Duration::from_secs(30);

    #[tokio::test(start_paused = true)]
    async fn programs_that_say_nothing_after_a_call_was_given_up_are_noticed() {
        let (given_up, findings) = (Notify::new(), Findings::default());
        let begun = Instant::now();
        let watching = silence(&given_up, &findings, LIMIT, pending);
        let giving_up = async {
            sleep(LIMIT * 10).await;
            given_up.notify_one();
            sleep(LIMIT - Duration::from_secs(1)).await;
            findings.message().unwrap();
            sleep(LIMIT * 10).await;
            given_up.notify_one();
            pending::<()>().await;
        };
        tokio::select! {
            () = watching => {}
            () = giving_up => {}
        }
        let silent = begun.elapsed() - (LIMIT * 21 - Duration::from_secs(1));
        assert_eq!(silent, LIMIT, "a message in time counts as an answer");
    }

    #[tokio::test(start_paused = true)]
    async fn a_program_that_answers_is_fine() {
        let (given_up, findings) = (Notify::new(), Findings::default());
        given_up.notify_one();
        tokio::select! {
            () = silence(&given_up, &findings, LIMIT, || ready(())) => panic!("it is there"),
            () = sleep(LIMIT * 10) => {}
        }
    }
}
