//! A server on a separate thread, with one request per connection.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// A received request.
#[derive(Debug, Clone)]
pub(super) struct Request {
    pub(super) method: String,
    pub(super) target: String,
    headers: Vec<(String, String)>,
    pub(super) body: String,
}

/// A server that answers every request with a function. Ends with its test.
pub(super) struct Server {
    pub(super) url: String,
    address: SocketAddr,
    seen: Arc<Mutex<Vec<Request>>>,
}

/// Formats a whole answer.
pub(super) fn answer(status: u16, content_type: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status} x\r\ncontent-type: {content_type}\r\ncontent-length: {length}\r\n\
         connection: close\r\n\r\n"
    );
    [head.as_bytes(), body.as_bytes()].concat()
}

impl Server {
    pub(super) fn start(answer: impl Fn(&Request) -> Vec<u8> + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&seen);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let Some(request) = stream.ok().and_then(Request::read) else { return };
                let (mut stream, request) = request;
                let bytes = answer(&request);
                noted.lock().unwrap().push(request);
                // a client that has read enough disconnects
                let _ = stream.write_all(&bytes);
            }
        });
        Self { url: format!("http://{address}"), address, seen }
    }

    pub(super) fn port(&self) -> u16 {
        self.address.port()
    }

    pub(super) fn seen(&self) -> Vec<Request> {
        self.seen.lock().unwrap().clone()
    }
}

impl Drop for Server {
    /// A connection without a request ends the thread.
    fn drop(&mut self) {
        drop(TcpStream::connect(self.address));
    }
}

impl Request {
    fn read(stream: TcpStream) -> Option<(TcpStream, Self)> {
        let mut reader = BufReader::new(stream);
        let mut line = || {
            let mut line = String::new();
            reader.read_line(&mut line).ok()?;
            Some(line.trim_end().to_owned())
        };
        let first = line()?;
        let mut words = first.split(' ').map(str::to_owned);
        let (method, target) = (words.next()?, words.next()?);
        let mut headers = Vec::new();
        loop {
            let header = line()?;
            let Some((name, value)) = header.split_once(": ") else { break };
            headers.push((name.to_ascii_lowercase(), value.to_owned()));
        }
        let mut request = Self { method, target, headers, body: String::new() };
        let length = request.header("content-length").and_then(|it| it.parse().ok()).unwrap_or(0);
        let mut body = vec![0; length];
        reader.read_exact(&mut body).ok()?;
        request.body = String::from_utf8(body).ok()?;
        Some((reader.into_inner(), request))
    }

    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}
