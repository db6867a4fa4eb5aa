//! One keep-alive connection: as little HTTP/1.1 as both servers speak.

use std::io;
use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::work::{Request, find};

const HEAD_END: &[u8] = b"\r\n\r\n";
const LENGTH: &str = "content-length:";

/// An open connection and the bytes of the last answer.
pub(crate) struct Connection {
    stream: TcpStream,
    received: Vec<u8>,
}

/// An answer, read whole.
pub(crate) struct Answer<'a> {
    pub(crate) status: u16,
    pub(crate) body: &'a [u8],
}

struct Head {
    status: u16,
    body_begin: usize,
    body_length: usize,
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
        let end = head.body_begin + head.body_length;
        while self.received.len() < end {
            self.read_more().await?;
        }
        if self.received.len() > end {
            return Err(io::Error::other("more bytes than the answer has"));
        }
        Ok(Answer { status: head.status, body: &self.received[head.body_begin..end] })
    }

    async fn read_more(&mut self) -> io::Result<()> {
        match self.stream.read_buf(&mut self.received).await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }
}

/// `bytes`: up to the empty line, which is not part of it.
fn parse_head(bytes: &[u8]) -> io::Result<Head> {
    let text = std::str::from_utf8(bytes).map_err(io::Error::other)?;
    let status = text.get(9..12).and_then(|digits| digits.parse().ok());
    let length = text.lines().find_map(|line| {
        let name = line.get(..LENGTH.len())?;
        name.eq_ignore_ascii_case(LENGTH).then(|| line[LENGTH.len()..].trim().parse().ok())?
    });
    let (Some(status), Some(body_length)) = (status, length) else {
        return Err(io::Error::other(format!("an answer that is not understood: {text}")));
    };
    Ok(Head { status, body_begin: bytes.len() + HEAD_END.len(), body_length })
}
