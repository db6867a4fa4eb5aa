//! Output of a program, watched while it is read: lines that are too long or too deep, too many lines,
//! and lines that are not JSON. Only lines of JSON are given out, each one whole.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, ReadBuf};
use tokio_util::bytes::BytesMut;

use crate::adapters::mcp::connection::faults::{Findings, Shape};
use crate::adapters::mcp::connection::invalid_answers::in_place_of;

/// Bytes that are read at once.
const READ_BYTES: usize = 8 << 10;

/// An output whose lines are watched. It fails at a line that is too long or too deep, after too many
/// lines at once, and after too many lines that are not JSON.
#[derive(Debug)]
pub(crate) struct Lines<R> {
    reader: R,
    line_bytes_max: usize,
    findings: Findings,
    line: Line,
    /// Bytes that were read and are given out next.
    ready: BytesMut,
}

/// The current line.
#[derive(Debug, Default)]
struct Line {
    /// A line of JSON so far.
    text: Vec<u8>,
    bytes: usize,
    /// True if it is JSON; `None` before its first byte that is no space.
    is_json: Option<bool>,
    shape: Shape,
}

impl<R> Lines<R> {
    pub(crate) fn of(reader: R, line_bytes_max: usize, findings: Findings) -> Self {
        Self { reader, line_bytes_max, findings, line: Line::default(), ready: BytesMut::new() }
    }

    /// Takes bytes that were read; the error is the reason to stop.
    fn take(&mut self, bytes: &[u8]) -> Result<(), String> {
        for &byte in bytes {
            if byte == b'\n' {
                self.end_line();
                continue;
            }
            self.line.bytes += 1;
            if self.line.bytes > self.line_bytes_max {
                return Err(format!("it sent a message of over {} bytes", self.line_bytes_max));
            }
            if self.line.is_json.is_none() && !byte.is_ascii_whitespace() {
                self.begin_line(byte)?;
            } else if self.line.is_json == Some(false) {
                self.findings.foreign_byte(byte);
            }
            if self.line.is_json == Some(true) {
                self.line.text.push(byte);
                if self.line.shape.take(byte)? {
                    self.findings.request()?;
                }
            }
        }
        Ok(())
    }

    /// Gives out a line of JSON, or what is read in its place; others are left out.
    fn end_line(&mut self) {
        let Line { text, .. } = std::mem::take(&mut self.line);
        if text.is_empty() {
            return;
        }
        match in_place_of(&text, &self.findings) {
            Some(read) => self.ready.extend_from_slice(read.as_bytes()),
            None => self.ready.extend_from_slice(&text),
        }
        self.ready.extend_from_slice(b"\n");
    }

    fn begin_line(&mut self, first: u8) -> Result<(), String> {
        let is_json = matches!(first, b'{' | b'[');
        self.line.is_json = Some(is_json);
        match is_json {
            true => self.findings.message(),
            false => self.findings.foreign_line(first),
        }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for Lines<R> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let lines = self.get_mut();
        let mut bytes = [0; READ_BYTES];
        while lines.ready.is_empty() {
            let mut read = ReadBuf::new(&mut bytes);
            ready!(Pin::new(&mut lines.reader).poll_read(context, &mut read))?;
            if read.filled().is_empty() {
                return Poll::Ready(Ok(()));
            }
            if let Err(fault) = lines.take(read.filled()) {
                lines.findings.fault(&fault);
                return Poll::Ready(Err(io::Error::other(fault)));
            }
        }
        let given = lines.ready.split_to(lines.ready.len().min(buffer.remaining()));
        buffer.put_slice(&given);
        if lines.ready.is_empty() {
            // it has the size of the largest line so far
            lines.ready = BytesMut::new();
        }
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt as _;

    use super::*;
    use crate::adapters::mcp::connection::faults::FOREIGN_LINES_MAX;

    /// Reads a text with lines of at most 20 bytes; returns what was read and the reason.
    async fn read(text: &str) -> (io::Result<usize>, String) {
        let findings = Findings::default();
        let mut lines = Lines::of(text.as_bytes(), 20, findings.clone());
        let mut all = Vec::new();
        (lines.read_to_end(&mut all).await, findings.explain("closed".to_owned()))
    }

    #[tokio::test]
    async fn long_lines_end_the_output() {
        let fits = format!("{{{}\n[1]\n", "1".repeat(19));
        let (ended, reason) = read(&fits).await;
        assert_eq!((ended.unwrap(), reason.as_str()), (25, "closed"));
        let (ended, reason) = read(&format!("{{{}", "1".repeat(20))).await;
        assert!(ended.is_err());
        assert_eq!(reason, "it sent a message of over 20 bytes");
    }

    #[tokio::test]
    async fn deep_lines_and_floods_end_the_output() {
        let findings = Findings::default();
        let (deep, many) = ("[".repeat(200), "{\"method\":\"ping\"}\n".repeat(20_000));
        for (text, part) in [(&deep, "nested deeper than"), (&many, "notifications within")] {
            let mut lines = Lines::of(text.as_bytes(), 1000, findings.clone());
            let ended = lines.read_to_end(&mut Vec::new()).await.unwrap_err().to_string();
            assert!(ended.contains(part), "{ended}");
        }
    }

    #[tokio::test]
    async fn lines_that_are_not_json_are_shown_unless_json_follows() {
        let (ended, reason) = read("  hello\nworld\n").await;
        assert!(ended.is_ok());
        assert_eq!(reason, "closed; it prints text that is not JSON: hello");
        assert_eq!(read("hello\n{}\n").await.1, "closed");
        assert!(read(&"a\n".repeat(FOREIGN_LINES_MAX)).await.0.is_ok());
        assert!(read(&"a\n".repeat(FOREIGN_LINES_MAX + 1)).await.0.is_err());
        let spoken = format!("{{}}\n{}", "a\n".repeat(FOREIGN_LINES_MAX + 1));
        assert!(read(&spoken).await.0.is_ok());
    }

    #[tokio::test]
    async fn lines_are_given_out_whole_and_mended() {
        let text = " {\"id\":1,\"result\":{}}\r\nlog\n\n{\"id\":2,\"result\":[]}\n{\"id\":3";
        let mut lines = Lines::of(text.as_bytes(), 1000, Findings::default());
        let mut all = String::new();
        lines.read_to_string(&mut all).await.unwrap();
        let read: Vec<_> = all.lines().collect();
        assert_eq!(read.len(), 2, "{all}");
        assert_eq!(read[0], "{\"id\":1,\"result\":{}}");
        assert!(read[1].contains("\"id\":2,\"error\":"), "{all}");
    }
}
