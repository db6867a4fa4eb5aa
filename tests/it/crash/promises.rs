//! Answers of the server, compared with its later state.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};

use super::ledger::{Ledger, Line};
use support::client::{Event, Reply};
use support::server::Server;

/// Knowledge about one execution, from answers alone.
#[derive(Debug, Clone)]
pub(super) struct Promise {
    pub(super) workflow: &'static str,
    pub(super) id: String,
    pub(super) body: Value,
    /// The server has acknowledged the execution, which must never be lost.
    pub(super) is_acknowledged: bool,
    /// The last known state is a suspension, and nothing was sent since.
    pub(super) is_waiting: bool,
    /// A resume was sent but not answered.
    pub(super) is_resuming: bool,
    /// The answer with the result.
    pub(super) completed: Option<Value>,
    /// Events at their first read.
    pub(super) events: Vec<Event>,
    /// Finished steps by path: attempts, and the length of the ledger when they were seen.
    pub(super) finished: BTreeMap<String, (u64, usize)>,
    /// Something was sent or answered since the last check.
    pub(super) is_touched: bool,
    /// Codes of refusals after which a request is repeated.
    pub(super) refusable: &'static [&'static str],
    /// Number of requests that were refused so.
    pub(super) refusals: u64,
    /// Code of the last such refusal, and whether it has the id of the execution.
    pub(super) refusal: String,
}

impl Promise {
    pub(super) fn new(workflow: &'static str, id: String, pause: u64) -> Self {
        let body = json!({ "input": { "n": 0, "pause": pause },
            "options": { "executionId": id } });
        Self {
            workflow,
            id,
            body,
            is_acknowledged: false,
            is_waiting: false,
            is_resuming: false,
            completed: None,
            events: Vec::new(),
            finished: BTreeMap::new(),
            is_touched: true,
            refusable: &["store_unavailable"],
            refusals: 0,
            refusal: String::new(),
        }
    }

    /// Returns the number of attempts for one execution, its children included.
    pub(super) fn expected_n(&self) -> u64 {
        match self.workflow {
            "chain" | "approval" | "fan" => 3,
            "nap" => 2,
            "family" => 5,
            "nest" => 4,
            other => panic!("{other}"),
        }
    }

    /// Records an answer of execute or resume; returns false if it is a refusal, after which the
    /// request is repeated.
    pub(super) fn answer(&mut self, reply: &Reply) -> bool {
        if self.is_refused(reply) {
            return false;
        }
        self.hear(&reply.data());
        true
    }

    /// Returns true if an answer says that the request may be repeated; it names the execution if
    /// that is recorded.
    pub(super) fn is_refused(&mut self, reply: &Reply) -> bool {
        if reply.status != 503 {
            return false;
        }
        let code = reply.header("x-error-code").unwrap_or_default();
        assert!(self.refusable.contains(&code), "{reply:?}");
        self.refusal = code.to_owned();
        self.refusals += 1;
        if let Some(id) = reply.header("x-execution-id") {
            assert_eq!(id, self.id);
            self.is_acknowledged = true;
            self.refusal.push_str(" with an id");
        }
        true
    }

    /// Records an answer of execute or resume.
    pub(super) fn hear(&mut self, data: &Value) {
        assert_eq!(data["executionId"], self.id.as_str(), "{data}");
        self.is_acknowledged = true;
        self.is_resuming = false;
        match data["status"].as_str() {
            Some("suspended") => self.is_waiting = true,
            Some("completed") => {
                assert_eq!(data["result"]["n"], self.expected_n(), "{} {data}", self.workflow);
                self.completed = Some(data.clone());
                self.is_waiting = false;
            }
            other => panic!("{other:?}: {data}"),
        }
    }

    /// Reads the execution and compares it with everything known.
    pub(super) fn check(&mut self, server: &Server, ledger: &Path) -> Option<Value> {
        let path = format!("/workflows/{}/executions/{}/state", self.workflow, self.id);
        let reply = server.get(&path);
        if reply.status == 404 {
            assert!(!self.is_acknowledged, "lost: {self:?}");
            return None;
        }
        let state = reply.data();
        self.check_state(&state, ledger);
        self.check_events(server, state["lastSequence"].as_u64().unwrap());
        self.is_acknowledged = true;
        Some(state)
    }

    /// Compares a state with everything known.
    pub(super) fn check_state(&mut self, state: &Value, ledger: &Path) {
        let status = state["status"].as_str().unwrap();
        if let Some(completed) = &self.completed {
            assert_eq!(status, "completed", "{state}");
            for name in ["result", "startAt", "endAt"] {
                assert_eq!(state[name], completed[name], "{name} of {state}");
            }
        } else if self.is_waiting {
            assert_eq!(status, "suspended", "{self:?} {state}");
        } else {
            assert!(["running", "suspended", "completed"].contains(&status), "{state}");
        }
        assert_eq!(state["input"], self.body["input"]);
        self.check_steps(state, ledger);
    }

    /// Checks that a finished step stays finished, with the same attempts.
    fn check_steps(&mut self, state: &Value, ledger: &Path) {
        let length = super::ledger::length(ledger);
        let mut finished = BTreeMap::new();
        for step in state["steps"].as_array().unwrap() {
            if step["status"] == "completed" {
                let path = step["path"].as_str().unwrap().to_owned();
                finished.insert(path, (step["attempts"].as_u64().unwrap(), length));
            }
        }
        for (path, (attempts, _)) in &self.finished {
            let now = finished.get(path).map(|(attempts, _)| attempts);
            assert_eq!(now, Some(attempts), "{path} of {} was finished: {state}", self.id);
        }
        for (path, seen) in finished {
            self.finished.entry(path).or_insert(seen);
        }
    }

    /// Checks that events have numbers without a gap, and that those read before are unchanged.
    fn check_events(&mut self, server: &Server, last: u64) {
        let events = server.events(self.workflow, &self.id, 0, last);
        let ids: Vec<_> = events.iter().map(|event| event.id).collect();
        let expected: Vec<_> = (1..=ids.len() as u64).collect();
        assert_eq!(ids, expected, "{}", self.id);
        assert!(ids.len() as u64 >= last, "{} has {} of {last} events", self.id, ids.len());
        let known = self.events.len();
        assert!(events.len() >= known, "{} has lost events", self.id);
        assert_eq!(events[..known], self.events, "{} has other events", self.id);
        self.events = events;
    }

    /// Checks that no attempt of a finished step began after its end was visible.
    pub(super) fn check_ledger(&self, ledger: &Ledger) {
        for (path, (attempts, length)) in &self.finished {
            let lines = ledger.get(&(self.id.clone(), path.clone()));
            for Line { at, attempt, .. } in lines.into_iter().flatten() {
                assert!(at < length, "{} {path} ran again after it had finished", self.id);
                assert!(attempt <= attempts, "{} {path}: {attempt} of {attempts}", self.id);
            }
        }
    }
}
