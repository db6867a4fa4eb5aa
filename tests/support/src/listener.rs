//! Parts of scripted servers: a listener, parsed requests, and a state that tests can wait for.

use std::io::{BufRead, BufReader, Read};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use crate::PATIENCE;

/// Listens at a free port and serves each connection on a separate thread.
pub fn listen(serve: impl Fn(BufReader<TcpStream>) + Clone + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    // lives as long as the test's process; an idle thread costs nothing
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let _ = stream.set_nodelay(true);
            let serve = serve.clone();
            std::thread::spawn(move || serve(BufReader::new(stream)));
        }
    });
    address
}

/// Returns a free port that stays free while its server is down: it is below those that systems give
/// to outgoing connections, so that a client which tries to reconnect is not given it itself.
pub fn reserved_port() -> u16 {
    const FIRST: u16 = 10_000;
    const COUNT: u16 = 20_000;
    static TRIED: AtomicU16 = AtomicU16::new(0);
    // processes side by side begin at different ones
    let begin = u16::try_from(std::process::id() % u32::from(COUNT / 32)).unwrap_or_default() * 32;
    loop {
        let tried = TRIED.fetch_add(1, Ordering::Relaxed);
        assert!(tried < COUNT, "no port is free");
        let port = FIRST + (begin + tried) % COUNT;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

/// A state whose changes threads can wait for.
#[derive(Debug, Default)]
pub struct Watched<T> {
    state: Mutex<T>,
    changed: Condvar,
}

impl<T> Watched<T> {
    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn change<R>(&self, change: impl FnOnce(&mut T) -> R) -> R {
        let changed = change(&mut self.lock());
        self.changed.notify_all();
        changed
    }

    /// Returns the state once it satisfies the condition, or after the timeout.
    pub fn wait(&self, wished: impl Fn(&T) -> bool) -> MutexGuard<'_, T> {
        let waited = self.changed.wait_timeout_while(self.lock(), PATIENCE, |state| !wished(state));
        waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

/// Listens as [`listen`] does, for connections that share a state.
pub fn listen_with<T: Send + 'static>(
    state: T,
    serve: fn(&Watched<T>, BufReader<TcpStream>),
) -> (SocketAddr, Arc<Watched<T>>) {
    let shared = Arc::new(Watched { state: Mutex::new(state), changed: Condvar::new() });
    let serving = Arc::clone(&shared);
    (listen(move |stream| serve(&serving, stream)), shared)
}

/// A received request.
#[derive(Debug, Clone)]
pub struct Request {
    /// With its query.
    pub path: String,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Request {
    /// Returns `None` if the client disconnects before the end of its request.
    pub fn read(stream: &mut BufReader<TcpStream>) -> Option<Self> {
        let mut line = String::new();
        stream.read_line(&mut line).ok()?;
        let path = line.split(' ').nth(1)?.to_owned();
        let mut headers = Vec::new();
        loop {
            let mut line = String::new();
            stream.read_line(&mut line).ok()?;
            let Some((name, value)) = line.trim_end().split_once(':') else { break };
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        let mut request = Self { path, headers, body: Vec::new() };
        if let Some(length) = request.header("content-length") {
            request.body = vec![0; length.parse().ok()?];
            stream.read_exact(&mut request.body).ok()?;
        }
        Some(request)
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }
}

/// Returns when the client has disconnected.
pub fn hold(stream: &mut BufReader<TcpStream>) {
    while stream.get_mut().read(&mut [0; 64]).is_ok_and(|count| count > 0) {}
}
