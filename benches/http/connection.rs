//! One keep-alive connection, with the minimum of HTTP/1.1 that both servers need.

use std::io;
use std::net::SocketAddr;
use std::time::Instant;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::work::{Request, find};

const HEAD_END: &[u8] = b"\r\n\r\n";
const LENGTH: &str = "content-length:";
const CHUNKED: &str = "transfer-encoding: chunked";
/// The last chunk of a chunked body, with the line break of the one before.
const LAST_CHUNK: &[u8] = b"\r\n0\r\n\r\n";
/// Beginning of the first event of a stream.
const EVENT: &[u8] = b"data:";

/// An open connection and the bytes of the last answer.
pub(crate) struct Connection {
    stream: TcpStream,
    received: Vec<u8>,
}

/// An answer, read whole.
pub(crate) struct Answer<'a> {
    pub(crate) status: u16,
    pub(crate) body: &'a [u8],
    /// Time at which the first event of a stream was received.
    pub(crate) first_event: Option<Instant>,
}

struct Head {
    status: u16,
    body_begin: usize,
    /// `None` for a chunked body.
    body_length: Option<usize>,
}

impl Connection {
    pub(crate) async fn open(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, received: Vec::with_capacity(4096) })
    }

    /// Sends a request and waits for its answer.
    pub(crate) async fn call(&mut self, request: &Request) -> io::Result<Answer<'_>> {
        self.received.clear();
        self.stream.write_all(&request.0).await?;
        let head = loop {
            self.read_more().await?;
            if let Some(end) = find(&self.received, HEAD_END) {
                break parse_head(&self.received[..end])?;
            }
        };
        let Some(length) = head.body_length else { return self.read_chunks(head).await };
        let end = head.body_begin + length;
        while self.received.len() < end {
            self.read_more().await?;
        }
        if self.received.len() > end {
            return Err(io::Error::other("more bytes than the answer has"));
        }
        let body = &self.received[head.body_begin..end];
        Ok(Answer { status: head.status, body, first_event: None })
    }

    /// Reads a chunked body. It keeps the sizes of its chunks; no searched text spans two chunks.
    async fn read_chunks(&mut self, head: Head) -> io::Result<Answer<'_>> {
        let mut first_event = None;
        loop {
            let body = &self.received[head.body_begin..];
            if first_event.is_none() && find(body, EVENT).is_some() {
                first_event = Some(Instant::now());
            }
            if body.ends_with(LAST_CHUNK) {
                break;
            }
            self.read_more().await?;
        }
        Ok(Answer { status: head.status, body: &self.received[head.body_begin..], first_event })
    }

    async fn read_more(&mut self) -> io::Result<()> {
        match self.stream.read_buf(&mut self.received).await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }
}

/// Parses the head, up to the empty line and without it.
fn parse_head(bytes: &[u8]) -> io::Result<Head> {
    let text = std::str::from_utf8(bytes).map_err(io::Error::other)?;
    let status = text.get(9..12).and_then(|digits| digits.parse().ok());
    let length = text.lines().find_map(|line| {
        let name = line.get(..LENGTH.len())?;
        name.eq_ignore_ascii_case(LENGTH).then(|| line[LENGTH.len()..].trim().parse().ok())?
    });
    let is_chunked = text.lines().any(|line| line.eq_ignore_ascii_case(CHUNKED));
    match status {
        Some(status) if length.is_some() || is_chunked => {
            Ok(Head { status, body_begin: bytes.len() + HEAD_END.len(), body_length: length })
        }
        _ => Err(io::Error::other(format!("cannot parse the answer: {text}"))),
    }
}
