//! HTTP/1.1 by hand: nothing is retried, repaired or hidden.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};

use serde_json::Value;

use crate::PATIENCE;

/// A connection.
#[derive(Debug)]
pub struct Wire {
    pub stream: BufReader<TcpStream>,
}

/// An answer, read whole.
#[derive(Debug, Clone)]
pub struct Reply {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

/// A frame of an event stream: its number and its data as they came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Zero if it has none.
    pub id: u64,
    pub data: String,
}

/// An event stream under way.
#[derive(Debug)]
pub struct Events {
    pub head: Reply,
    wire: Wire,
    text: Vec<u8>,
}

impl Wire {
    pub fn open(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        stream.set_nodelay(true)?;
        Ok(Self::of(stream))
    }

    /// Uses an open connection.
    pub fn of(stream: TcpStream) -> Self {
        Self { stream: BufReader::new(stream) }
    }

    /// Sends literal bytes.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.get_mut().write_all(bytes)
    }

    pub fn send(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<&[u8]>,
    ) -> io::Result<()> {
        let mut request = format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\n").into_bytes();
        for (name, value) in headers {
            request.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
        }
        if let Some(body) = body {
            request.extend_from_slice(format!("content-length: {}\r\n", body.len()).as_bytes());
        }
        request.extend_from_slice(b"\r\n");
        request.extend_from_slice(body.unwrap_or_default());
        self.write(&request)
    }

    /// Reads a whole answer.
    pub fn reply(&mut self) -> io::Result<Reply> {
        let head = self.head()?;
        self.rest_of(head)
    }

    /// Reads the body of an answer whose head has been read.
    pub fn rest_of(&mut self, mut reply: Reply) -> io::Result<Reply> {
        if reply.status == 204 || reply.status == 304 {
            return Ok(reply);
        }
        if let Some(length) = reply.header("content-length") {
            let length = length.parse().map_err(|_| malformed("content-length"))?;
            reply.body.resize(length, 0);
            self.stream.read_exact(&mut reply.body)?;
        } else if reply.header("transfer-encoding") == Some("chunked") {
            while let Some(chunk) = self.chunk()? {
                reply.body.extend_from_slice(&chunk);
            }
        } else {
            self.stream.read_to_end(&mut reply.body)?;
        }
        Ok(reply)
    }

    /// Reads the head of an answer, but not its body.
    pub fn head(&mut self) -> io::Result<Reply> {
        let line = self.line()?;
        let status = line.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3)?.parse().ok());
        let status = status.ok_or_else(|| malformed(&line))?;
        let mut headers = Vec::new();
        loop {
            let line = self.line()?;
            if line.is_empty() {
                return Ok(Reply { status, headers, body: Vec::new() });
            }
            let (name, value) = line.split_once(':').ok_or_else(|| malformed(&line))?;
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
    }

    /// Returns the next chunk of a chunked body; `None` at its end.
    pub fn chunk(&mut self) -> io::Result<Option<Vec<u8>>> {
        let line = self.line()?;
        let length = usize::from_str_radix(&line, 16).map_err(|_| malformed(&line))?;
        let mut chunk = vec![0; length];
        self.stream.read_exact(&mut chunk)?;
        self.line()?;
        Ok((length > 0).then_some(chunk))
    }

    /// Returns the next line of a head; an error at the end of the connection.
    pub fn line(&mut self) -> io::Result<String> {
        let mut line = Vec::new();
        self.stream.read_until(b'\n', &mut line)?;
        match line.strip_suffix(b"\r\n") {
            Some(line) => String::from_utf8(line.to_vec()).map_err(|_| malformed("head")),
            None => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}

fn malformed(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("not HTTP: {what:?}"))
}

impl Reply {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// Returns the body, parsed as JSON.
    pub fn json(&self) -> Value {
        let parsed = serde_json::from_slice(&self.body);
        parsed.unwrap_or_else(|error| panic!("{} {:?}: {error}", self.status, self.text()))
    }

    /// Returns `data` of a successful answer.
    pub fn data(&self) -> Value {
        let mut body = self.json();
        assert_eq!((self.status, &body["success"]), (200, &Value::Bool(true)), "{}", self.text());
        body["data"].take()
    }

    /// `error` of a refusal, whose envelope holds nothing else, unless it says what failed or what
    /// was meant.
    pub fn error(&self) -> String {
        let body = self.json();
        let mut keys: Vec<_> = body.as_object().unwrap().keys().map(String::as_str).collect();
        if matches!(
            self.header("x-error-code"),
            Some("execution_failed" | "workflow_not_found" | "agent_not_found" | "tool_not_found")
        ) {
            keys.retain(|key| *key != "data");
        }
        assert_eq!(keys, ["success", "error"], "{}", self.text());
        assert_eq!(body["success"], false, "{}", self.text());
        body["error"].as_str().unwrap().to_owned()
    }
}

impl Event {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.data).unwrap()
    }

    pub fn kind(&self) -> String {
        self.json()["type"].as_str().unwrap().to_owned()
    }
}

impl Events {
    /// Reads the answer of a request that was sent, which must be a stream.
    pub fn read(mut wire: Wire) -> io::Result<Self> {
        let head = wire.head()?;
        Self::after(head, wire)
    }

    /// Continues after the head of an answer, which must be that of a stream.
    pub fn after(head: Reply, wire: Wire) -> io::Result<Self> {
        if head.status != 200 || head.header("content-type") != Some("text/event-stream") {
            return Err(io::Error::other(format!("no event stream: {head:?}")));
        }
        Ok(Self { head, wire, text: Vec::new() })
    }

    /// Returns the next event; `None` at a proper end of the stream. Comments are skipped.
    #[expect(clippy::should_implement_trait, reason = "a stream ends, or it fails")]
    pub fn next(&mut self) -> io::Result<Option<Event>> {
        self.next_while(|| {})
    }

    /// Returns the next event, and calls `check` before every read: heartbeats keep a stream open
    /// for which nothing else happens.
    pub fn next_while(&mut self, check: impl Fn()) -> io::Result<Option<Event>> {
        loop {
            check();
            let end = self.text.windows(2).position(|pair| pair == b"\n\n");
            let Some(end) = end else {
                match self.wire.chunk()? {
                    Some(chunk) => self.text.extend_from_slice(&chunk),
                    None if self.text.is_empty() => return Ok(None),
                    None => return Err(malformed("a stream that ends inside a frame")),
                }
                continue;
            };
            let frame: Vec<u8> = self.text.drain(..end + 2).collect();
            let frame = String::from_utf8(frame).map_err(|_| malformed("frame"))?;
            if frame.starts_with(':') {
                continue;
            }
            let (id, data) = match frame.trim_end().strip_prefix("id: ") {
                Some(rest) => rest.split_once('\n').ok_or_else(|| malformed(&frame))?,
                None => ("0", frame.trim_end()),
            };
            let data = data.strip_prefix("data: ").ok_or_else(|| malformed(&frame))?;
            let id = id.parse().map_err(|_| malformed(&frame))?;
            return Ok(Some(Event { id, data: data.to_owned() }));
        }
    }
}
