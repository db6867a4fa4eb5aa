//! Output of a program, watched while it is read: lines that are too long, too many lines, and lines
//! that are not JSON.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, ReadBuf};
use tokio::time::Instant;

/// Lines without JSON after which a program that has printed nothing else is given up.
const FOREIGN_LINES_MAX: usize = 100;
/// Maximum number of messages within [`FLOOD_WINDOW`]. Each request of a server costs memory until its
/// answer is taken.
const MESSAGES_MAX: usize = 50_000;
/// Time in which messages are counted.
const FLOOD_WINDOW: Duration = Duration::from_secs(10);
/// First bytes of a foreign line that are shown.
const SHOWN_BYTES_MAX: usize = 200;

/// Findings about what a program printed. Clones share them.
#[derive(Debug, Clone, Default)]
pub(super) struct Findings(Arc<Mutex<Found>>);

#[derive(Debug, Default)]
struct Found {
    /// The reason why reading ended.
    fault: Option<String>,
    /// Begin of the first line that is not JSON.
    foreign: Vec<u8>,
    foreign_lines: usize,
    /// True once a line of JSON was read.
    has_spoken: bool,
}

impl Findings {
    fn with<T>(&self, see: impl FnOnce(&mut Found) -> T) -> T {
        see(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns why a connection ended: the reason why reading ended, or else this one, with the text
    /// that was printed in place of JSON.
    pub(super) fn explain(&self, why: String) -> String {
        self.with(|found| match &found.fault {
            Some(fault) => fault.clone(),
            None if found.has_spoken || found.foreign_lines == 0 => why,
            None => format!("{why}; {}", found.foreign()),
        })
    }
}

impl Found {
    fn foreign(&self) -> String {
        let text = String::from_utf8_lossy(&self.foreign);
        format!("it prints text that is not JSON: {}", text.trim())
    }
}

/// An output whose lines are watched. It fails at a line that is too long, after too many lines at
/// once, and after too many lines that are not JSON.
#[derive(Debug)]
pub(super) struct Lines<R> {
    reader: R,
    line_bytes_max: usize,
    findings: Findings,
    /// Bytes of the current line.
    line_bytes: usize,
    /// True if the current line is JSON; `None` before its first byte that is no space.
    is_json: Option<bool>,
    /// Begin of the current window, and the messages in it.
    window: (Instant, usize),
}

impl<R> Lines<R> {
    pub(super) fn of(reader: R, line_bytes_max: usize, findings: Findings) -> Self {
        let window = (Instant::now(), 0);
        Self { reader, line_bytes_max, findings, line_bytes: 0, is_json: None, window }
    }

    /// Notes bytes that were read; the error is the reason to stop.
    fn note(&mut self, bytes: &[u8]) -> Result<(), String> {
        for &byte in bytes {
            if byte == b'\n' {
                (self.line_bytes, self.is_json) = (0, None);
                continue;
            }
            self.line_bytes += 1;
            if self.line_bytes > self.line_bytes_max {
                return Err(format!("it sent a message of over {} bytes", self.line_bytes_max));
            }
            match self.is_json {
                None if byte.is_ascii_whitespace() => {}
                None => self.begin_line(byte)?,
                Some(true) => {}
                Some(false) => self.findings.with(|found| {
                    if found.foreign_lines == 1 && found.foreign.len() < SHOWN_BYTES_MAX {
                        found.foreign.push(byte);
                    }
                }),
            }
        }
        Ok(())
    }

    fn begin_line(&mut self, first: u8) -> Result<(), String> {
        let is_json = matches!(first, b'{' | b'[');
        self.is_json = Some(is_json);
        if is_json {
            self.count()?;
        }
        self.findings.with(|found| {
            if is_json {
                found.has_spoken = true;
                return Ok(());
            }
            found.foreign_lines += 1;
            if found.foreign_lines == 1 {
                found.foreign.push(first);
            }
            if found.has_spoken || found.foreign_lines <= FOREIGN_LINES_MAX {
                return Ok(());
            }
            Err(found.foreign())
        })
    }
}

impl<R> Lines<R> {
    /// Counts a message.
    fn count(&mut self) -> Result<(), String> {
        let (begin, count) = &mut self.window;
        if begin.elapsed() >= FLOOD_WINDOW {
            (*begin, *count) = (Instant::now(), 0);
        }
        *count += 1;
        if *count <= MESSAGES_MAX {
            return Ok(());
        }
        let seconds = FLOOD_WINDOW.as_secs();
        Err(format!("it sent over {MESSAGES_MAX} messages within {seconds} seconds"))
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
            lines.findings.with(|found| found.fault = Some(fault.clone()));
            buffer.set_filled(before);
            return Poll::Ready(Err(io::Error::other(fault)));
        }
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt as _;

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
    async fn messages_are_bounded_within_a_time() {
        tokio::time::pause();
        let mut lines = Lines::of(&b""[..], 20, Findings::default());
        let all = b"{}\n".repeat(MESSAGES_MAX);
        assert_eq!(lines.note(&all), Ok(()));
        tokio::time::advance(FLOOD_WINDOW).await;
        assert_eq!(lines.note(&all), Ok(()), "another window");
        let refused = lines.note(b"{}\n").unwrap_err();
        assert_eq!(refused, "it sent over 50000 messages within 10 seconds");
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
