//! Clients of the cluster: each request is sent to any of the servers, and repeated until it is
//! answered.

use std::io;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::Cluster;
use crate::crash::client::Client;
use crate::crash::rng::Rng;
use support::client::{Reply, Wire};

/// Pause of a client after an error.
pub(super) const RETRY_AFTER: Duration = Duration::from_millis(20);
/// Callers who resume one execution at once.
const RACERS: usize = 9;

/// Refusals that a fault explains.
pub(super) const REFUSABLE: &[&str] =
    &["store_unavailable", "execution_moved", "server_unreachable", "draining"];

impl Cluster<'_> {
    /// Opens a connection to one of the servers.
    pub(super) fn open(&self, rng: &mut Rng) -> io::Result<Wire> {
        let member = &self.members[rng.below(self.members.len() as u64) as usize];
        Wire::open(member.address().ok_or(io::ErrorKind::NotConnected)?)
    }

    /// Notes that a connection broke. Silence is no fault of a connection.
    pub(super) fn note(&self, error: &io::Error) {
        let is_silence = [io::ErrorKind::WouldBlock, io::ErrorKind::TimedOut];
        assert!(!is_silence.contains(&error.kind()), "a request was not answered: {error}");
        self.weather().error("broken connections");
        std::thread::sleep(RETRY_AFTER);
    }

    /// Notes a refusal, which has to be one that a fault explains.
    pub(super) fn note_refusal(&self, reply: &Reply) {
        let code = reply.header("x-error-code").unwrap_or_default();
        assert!(reply.status == 503 && REFUSABLE.contains(&code), "{reply:?}");
        self.weather().error(code);
        std::thread::sleep(RETRY_AFTER);
    }

    /// Works until the faults are over, and until every request was answered.
    pub(super) fn work(&self, client: &mut Client, rng: &mut Rng) {
        let mut asked = None;
        loop {
            self.assert_not_failed();
            let outcome = self.open(rng).and_then(|mut wire| match asked {
                Some(_) => client.repeat(&mut wire),
                None if rng.below(4) == 0 => client.look(&mut wire, &self.around.ledger),
                None => {
                    asked = Some(Instant::now());
                    let address = wire.stream.get_ref().peer_addr()?;
                    client.act(&mut wire, address)
                }
            });
            match outcome {
                Ok(true) => {
                    if let Some(asked) = asked.take() {
                        self.note_answer(asked.elapsed());
                    }
                    if self.is_over() {
                        return;
                    }
                }
                Ok(false) => {
                    self.weather().error(client.refusal());
                    std::thread::sleep(RETRY_AFTER);
                }
                Err(error) => self.note(&error),
            }
        }
    }

    /// Sends a request with a key, to one server after the other, until it is answered.
    fn ask(&self, rng: &mut Rng, path: &str, key: &str, body: &Value) -> Reply {
        let body = body.to_string();
        loop {
            self.assert_not_failed();
            let reply = self.open(rng).and_then(|mut wire| {
                let key = [("idempotency-key", key)];
                wire.send("POST", path, &key, Some(body.as_bytes()))?;
                wire.reply()
            });
            match reply {
                Ok(reply) if reply.status != 503 => return reply,
                Ok(reply) => self.note_refusal(&reply),
                Err(error) => self.note(&error),
            }
        }
    }

    /// Lets many callers resume the same execution at once, again and again; returns how often.
    pub(super) fn race(&self, rng: &mut Rng) -> u64 {
        for round in 0.. {
            if self.is_over() {
                return round;
            }
            let id = format!("race-{round}");
            let body = json!({ "input": { "n": 0 }, "options": { "executionId": id } });
            let started = self.ask(rng, "/workflows/approval/execute", &id, &body);
            assert_eq!(started.data()["status"], "suspended");
            let path = format!("/workflows/approval/executions/{id}/resume");
            let body = json!({ "resumeData": { "approved": true } });
            let replies: Vec<Reply> = std::thread::scope(|scope| {
                let racers = (0..RACERS).map(|number| {
                    let (mut rng, path, body) = (rng.split(), &path, &body);
                    let key = format!("{id}-{number}");
                    scope.spawn(move || self.watch(|| self.ask(&mut rng, path, &key, body)))
                });
                let racers: Vec<_> = racers.collect();
                racers.into_iter().map(|racer| racer.join().unwrap()).collect()
            });
            let won = replies.iter().filter(|reply| reply.status == 200).count();
            assert_eq!(won, 1, "{id}: {replies:#?}");
            let lost = replies.iter().filter(|reply| reply.status == 404).count();
            assert_eq!(lost, RACERS - 1, "{id}: {replies:#?}");
        }
        unreachable!("the faults end")
    }
}
