//! One keep-alive connection.

use std::io;
use std::net::SocketAddr;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

const HEAD_END: &[u8] = b"\r\n\r\n";

pub(crate) struct Client {
    stream: TcpStream,
    received: Vec<u8>,
}

/// An answer with a length, read whole.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) text: String,
}

impl Client {
    pub(crate) async fn open(server: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(server).await?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, received: Vec::new() })
    }

    pub(crate) async fn call(&mut self, request: &str) -> io::Result<Answer> {
        self.received.clear();
        self.stream.write_all(request.as_bytes()).await?;
        loop {
            self.read_more().await?;
            if let Some(answer) = self.whole_answer()? {
                return Ok(answer);
            }
        }
    }

    /// Sends a request and reads until its answer contains `mark`; leaves the rest.
    pub(crate) async fn call_until(mut self, request: &str, mark: &str) -> io::Result<()> {
        self.stream.write_all(request.as_bytes()).await?;
        while !String::from_utf8_lossy(&self.received).contains(mark) {
            self.read_more().await?;
        }
        Ok(())
    }

    async fn read_more(&mut self) -> io::Result<()> {
        match self.stream.read_buf(&mut self.received).await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }

    fn whole_answer(&self) -> io::Result<Option<Answer>> {
        let end = self.received.windows(HEAD_END.len()).position(|bytes| bytes == HEAD_END);
        let Some(end) = end else { return Ok(None) };
        let head = String::from_utf8_lossy(&self.received[..end]).to_ascii_lowercase();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
        let length = length.and_then(|text| text.trim().parse::<usize>().ok());
        let status = head.get(9..12).and_then(|digits| digits.parse().ok());
        let (Some(length), Some(status)) = (length, status) else {
            return Err(io::Error::other(format!("cannot parse the answer: {head}")));
        };
        let body = &self.received[end + HEAD_END.len()..];
        let text = || String::from_utf8_lossy(body).into_owned();
        Ok((body.len() >= length).then(|| Answer { status, text: text() }))
    }
}
