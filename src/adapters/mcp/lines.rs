//! Output of a program, watched while it is read: lines that are too long or too deep, too many lines,
//! and lines that are not JSON.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, ReadBuf};

use super::findings::{Findings, Shape};

/// An output whose lines are watched. It fails at a line that is too long or too deep, after too many
/// lines at once, and after too many lines that are not JSON.
#[derive(Debug)]
pub(super) struct Lines<R> {
    reader: R,
    line_bytes_max: usize,
    findings: Findings,
    line: Line,
}

/// The current line.
#[derive(Debug, Default)]
struct Line {
    bytes: usize,
    /// True if it is JSON; `None` before its first byte that is no space.
    is_json: Option<bool>,
    shape: Shape,
}

impl<R> Lines<R> {
    pub(super) fn of(reader: R, line_bytes_max: usize, findings: Findings) -> Self {
        Self { reader, line_bytes_max, findings, line: Line::default() }
    }

    /// Notes bytes that were read; the error is the reason to stop.
    fn note(&mut self, bytes: &[u8]) -> Result<(), String> {
        for &byte in bytes {
            if byte == b'\n' {
                self.line = Line::default();
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
            if self.line.is_json == Some(true) && self.line.shape.take(byte)? {
                self.findings.request()?;
            }
        }
        Ok(())
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
        let before = buffer.filled().len();
        ready!(Pin::new(&mut lines.reader).poll_read(context, buffer))?;
        if let Err(fault) = lines.note(&buffer.filled()[before..]) {
            lines.findings.fault(&fault);
            buffer.set_filled(before);
            return Poll::Ready(Err(io::Error::other(fault)));
        }
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt as _;

    use super::super::findings::FOREIGN_LINES_MAX;
    use super::*;

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
}
