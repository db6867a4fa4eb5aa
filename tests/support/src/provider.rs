//! A scripted provider of models, over real sockets, byte by byte.

use std::collections::VecDeque;
use std::io::{BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::listener::{Request, Watched, hold, listen_with};

/// An action of the server on a connection. After the last one it closes.
#[derive(Debug, Clone)]
pub enum Deed {
    /// Sends bytes.
    Send(Vec<u8>),
    /// Does nothing until [`Provider::permit`].
    Wait,
    /// Does nothing until the client leaves.
    Hold,
    /// Sends the bytes again and again until the client leaves.
    Repeat(Vec<u8>),
}

/// A received request.
#[derive(Debug, Clone)]
pub struct Asked {
    /// With its query.
    pub path: String,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    /// A text if it is no JSON.
    pub body: Value,
}

/// A server with one script for each request: in the order of their arrival, or chosen by the
/// request. Clones are the same server.
#[derive(Debug, Clone)]
pub struct Provider {
    address: SocketAddr,
    shared: Arc<Watched<State>>,
}

#[derive(Debug, Default)]
struct State {
    scripts: VecDeque<Vec<Deed>>,
    /// Chooses the script of a request for which none is left.
    choose: Option<fn(&Asked) -> Vec<Deed>>,
    asked: Vec<Asked>,
    /// Unused permits for [`Deed::Wait`].
    permits: usize,
    /// Connections on which nothing more happens until their clients leave, or have left.
    held: usize,
    /// Connections that clients have closed.
    left: usize,
}

/// Returns a complete answer.
pub fn whole(status: u16, headers: &[(&str, &str)], body: &str) -> Vec<Deed> {
    let mut text = format!("HTTP/1.1 {status} Said\r\nconnection: close\r\n");
    for (name, value) in headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    text.push_str(&format!("content-length: {}\r\n\r\n{body}", body.len()));
    vec![Deed::Send(text.into_bytes())]
}

/// Returns the head of an event stream, which ends with the connection.
pub fn stream_head() -> Deed {
    let head = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: text/event-stream\r\n\
                transfer-encoding: chunked\r\n\r\n";
    Deed::Send(head.as_bytes().to_vec())
}

/// Returns a piece of a stream.
pub fn piece(bytes: &[u8]) -> Deed {
    let mut chunk = format!("{:x}\r\n", bytes.len()).into_bytes();
    chunk.extend_from_slice(bytes);
    chunk.extend_from_slice(b"\r\n");
    Deed::Send(chunk)
}

/// Returns the proper end of a stream.
pub fn stream_end() -> Deed {
    Deed::Send(b"0\r\n\r\n".to_vec())
}

impl Provider {
    /// Listens at a free port. Requests beyond the scripts are answered 500.
    pub fn start(scripts: impl IntoIterator<Item = Vec<Deed>>) -> Self {
        let state = State { scripts: scripts.into_iter().collect(), ..State::default() };
        let (address, shared) = listen_with(state, serve);
        Self { address, shared }
    }

    /// Listens at a free port, and chooses the script of each request by what is asked.
    pub fn choosing(choose: fn(&Asked) -> Vec<Deed>) -> Self {
        let state = State { choose: Some(choose), ..State::default() };
        let (address, shared) = listen_with(state, serve);
        Self { address, shared }
    }

    /// Returns the address for `base_url`.
    pub fn base_url(&self) -> String {
        format!("http://{}/v1/", self.address)
    }

    /// Returns all requests so far.
    pub fn asked(&self) -> Vec<Asked> {
        self.shared.lock().asked.clone()
    }

    /// Ends one [`Deed::Wait`].
    pub fn permit(&self) {
        self.shared.change(|state| state.permits += 1);
    }

    /// Waits until so many requests have arrived.
    ///
    /// # Panics
    ///
    /// After [`crate::PATIENCE`].
    pub fn wait_until_asked(&self, count: usize) {
        let state = self.shared.wait(|state| state.asked.len() >= count);
        assert!(state.asked.len() >= count, "{} of {count} requests", state.asked.len());
    }

    /// Waits until clients have closed so many connections; returns how long that took.
    ///
    /// # Panics
    ///
    /// After [`crate::PATIENCE`].
    pub fn wait_until_left(&self, count: usize) -> Duration {
        let begin = Instant::now();
        let state = self.shared.wait(|state| state.left >= count);
        assert!(state.left >= count, "{} of {count} clients have left", state.left);
        begin.elapsed()
    }

    /// Waits until the clients of all held connections have left; returns how many those were.
    ///
    /// # Panics
    ///
    /// After [`crate::PATIENCE`].
    pub fn wait_until_all_left(&self) -> usize {
        let state = self.shared.wait(|state| state.left == state.held);
        assert_eq!(state.left, state.held, "clients that have left, of those that were held");
        state.left
    }
}

fn serve(shared: &Watched<State>, mut stream: BufReader<TcpStream>) {
    let Some(asked) = Request::read(&mut stream).map(asked) else { return };
    let script = shared.change(|state| {
        let script = state.scripts.pop_front();
        let script = script.or_else(|| state.choose.map(|choose| choose(&asked)));
        state.asked.push(asked);
        script
    });
    for deed in script.unwrap_or_else(|| whole(500, &[], "the script has ended")) {
        match deed {
            Deed::Send(bytes) => {
                let _ = stream.get_mut().write_all(&bytes);
            }
            Deed::Wait => {
                let mut state = shared.wait(|state| state.permits > 0);
                state.permits = state.permits.saturating_sub(1);
            }
            Deed::Hold => {
                shared.change(|state| state.held += 1);
                hold(&mut stream);
                shared.change(|state| state.left += 1);
            }
            Deed::Repeat(bytes) => {
                shared.change(|state| state.held += 1);
                while stream.get_mut().write_all(&bytes).is_ok() {}
                shared.change(|state| state.left += 1);
            }
        }
    }
}

fn asked(request: Request) -> Asked {
    let Request { path, headers, body } = request;
    let text = || Value::String(String::from_utf8_lossy(&body).into_owned());
    let body = match body.is_empty() {
        true => Value::Null,
        false => serde_json::from_slice(&body).unwrap_or_else(|_| text()),
    };
    Asked { path, headers, body }
}
