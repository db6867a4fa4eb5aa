//! Callers of an agent, and the history of its generations.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::json;

use super::Cluster;
use crate::crash::rng::Rng;
use support::eventually;
use support::server::Server;

/// The agent that they call.
pub(super) const CONFIG: &str =
    "[models.offline]\nprovider = \"rehearsal\"\n[agents.assistant]\nmodel = \"offline\"\n";
/// Pause between two calls, shortest and longest, in milliseconds.
const LULL_MS: (u64, u64) = (5, 200);
const PAGE: u64 = 100;

/// Gaps of the agent's numbers, and generations that have not ended.
const GAPS: &str = "SELECT count(*) - coalesce(max(number), 0), coalesce(min(number), 1), \
    count(*) FILTER (WHERE status = 0) FROM generations WHERE agent = 'assistant'";

impl Cluster<'_> {
    /// Calls the agent until the faults are over; returns the generations that were answered.
    pub(super) fn generate(&self, rng: &mut Rng) -> Vec<String> {
        let mut answered = Vec::new();
        while !self.is_over() {
            self.assert_not_failed();
            let body = json!({ "input": format!("question {}", answered.len()) }).to_string();
            let reply = self.open(rng).and_then(|mut wire| {
                wire.send("POST", "/agents/assistant/text", &[], Some(body.as_bytes()))?;
                wire.reply()
            });
            match reply {
                Ok(reply) if reply.status == 200 => {
                    let id = reply.header("x-generation-id");
                    answered.push(id.expect("an answer names its generation").to_owned());
                }
                Ok(reply) => self.note_refusal(&reply),
                Err(error) => self.note(&error),
            }
            let (least, most) = LULL_MS;
            std::thread::sleep(Duration::from_millis(least + rng.below(most - least)));
        }
        answered
    }

    /// Checks that the history has every answered generation, the same at each server, and numbers
    /// without gaps; returns its length.
    pub(super) fn check_history(&self, answered: &[String], servers: &[&Server]) -> usize {
        eventually("that the history has neither gaps nor generations that work", || {
            (self.rows(GAPS) == "0|1|0").then_some(())
        });
        let histories: Vec<_> = servers.iter().map(|server| history(server)).collect();
        let first = &histories[0];
        assert!(histories.iter().all(|history| history == first), "histories differ");
        let (ids, completed): (BTreeSet<_>, BTreeSet<_>) = first
            .iter()
            .map(|(id, status)| (id, Some(id).filter(|_| status == "completed")))
            .unzip();
        assert_eq!(ids.len(), first.len(), "a generation twice");
        let lost: Vec<_> = answered.iter().filter(|id| !completed.contains(&Some(*id))).collect();
        assert!(lost.is_empty(), "lost: {lost:?}");
        first.len()
    }
}

/// Returns the ids of all generations with their status, newest first.
fn history(server: &Server) -> Vec<(String, String)> {
    let mut history = Vec::new();
    for page in 0.. {
        let path = format!("/agents/assistant/history?page={page}&limit={PAGE}");
        let data = server.get(&path).data();
        let entries = data["entries"].as_array().unwrap();
        let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
        history.extend(entries.iter().map(|it| (text(&it["id"]), text(&it["status"]))));
        if (page + 1) * PAGE >= data["pagination"]["total"].as_u64().unwrap() {
            break;
        }
    }
    history
}
