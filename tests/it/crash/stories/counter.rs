//! A server that steps and tools call: it adds one, and records the keys of its callers.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::net::SocketAddr;
use std::sync::Arc;

use serde_json::{Value, json};

use support::listener::{Request, Watched, hold, listen};

/// Clones are the same server.
#[derive(Debug, Clone)]
pub(super) struct Counter {
    address: SocketAddr,
    shared: Arc<Watched<State>>,
}

#[derive(Debug, Default)]
struct State {
    /// Requests are never answered.
    is_held: bool,
    /// The received keys, by the last part of the path.
    keys: BTreeMap<String, Vec<String>>,
}

impl Counter {
    pub(super) fn start() -> Self {
        let shared = Arc::new(Watched::<State>::default());
        let told = Arc::clone(&shared);
        let address = listen(move |mut stream| {
            let Some(request) = Request::read(&mut stream) else { return };
            let key = request.header("idempotency-key").unwrap_or_default().to_owned();
            let is_held = told.change(|state| {
                state
                    .keys
                    .entry(request.path.trim_start_matches('/').to_owned())
                    .or_default()
                    .push(key);
                state.is_held
            });
            if is_held {
                return hold(&mut stream);
            }
            let mut data: Value = serde_json::from_slice(&request.body).unwrap();
            data["n"] = json!(data["n"].as_u64().unwrap() + 1);
            let body = data.to_string();
            let head = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: application/json";
            let answer = format!("{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len());
            let _ = stream.get_mut().write_all(answer.as_bytes());
        });
        Self { address, shared }
    }

    pub(super) fn url(&self, name: &str) -> String {
        format!("http://{}/{name}", self.address)
    }

    /// Sets whether requests are held until their callers disconnect.
    pub(super) fn hold(&self, is_held: bool) {
        self.shared.change(|state| state.is_held = is_held);
    }

    /// Returns the keys of the calls of a path.
    pub(super) fn keys(&self, name: &str) -> Vec<String> {
        self.shared.lock().keys.get(name).cloned().unwrap_or_default()
    }

    pub(super) fn wait_for(&self, name: &str, calls: usize) {
        let count = |state: &State| state.keys.get(name).map_or(0, Vec::len);
        let state = self.shared.wait(|state| count(state) >= calls);
        assert_eq!(count(&state), calls, "calls of {name}");
    }
}
