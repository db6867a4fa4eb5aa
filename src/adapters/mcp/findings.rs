//! Findings about a connection: the reason why it has to end, and text that is no message.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Lines without JSON after which a program that has printed nothing else is given up.
pub(super) const FOREIGN_LINES_MAX: usize = 100;
/// Maximum number of messages within [`FLOOD_WINDOW`]. Each request of a server costs memory until its
/// answer is taken.
const MESSAGES_MAX: usize = 10_000;
/// Time in which messages are counted.
const FLOOD_WINDOW: Duration = Duration::from_secs(10);
/// Deepest message. Deeper ones could not be read, and their requests would never end.
const DEPTH_MAX: usize = 120;
/// First bytes of a foreign line that are shown.
const SHOWN_BYTES_MAX: usize = 200;

/// Findings about the messages of a server. Clones share them.
#[derive(Debug, Clone, Default)]
pub(super) struct Findings {
    found: Arc<Mutex<Found>>,
    /// Fires with the first fault.
    faulted: CancellationToken,
}

#[derive(Debug, Default)]
struct Found {
    /// The reason why reading ended.
    fault: Option<String>,
    /// Begin of the first line that is not JSON.
    foreign: Vec<u8>,
    foreign_lines: usize,
    /// True once a line of JSON was read.
    has_spoken: bool,
    /// Begin of the current window, and the messages in it.
    window: Option<(Instant, usize)>,
}

impl Findings {
    fn with<T>(&self, see: impl FnOnce(&mut Found) -> T) -> T {
        see(&mut self.found.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Ends the connection for this reason, unless there is one already.
    pub(super) fn fault(&self, why: &str) {
        self.with(|found| {
            found.fault.get_or_insert_with(|| why.to_owned());
        });
        self.faulted.cancel();
    }

    /// Waits for a fault.
    pub(super) async fn faulted(&self) {
        self.faulted.cancelled().await;
    }

    /// Counts a message of the server; the error is the reason to stop.
    pub(super) fn message(&self) -> Result<(), String> {
        self.with(|found| {
            found.has_spoken = true;
            let now = Instant::now();
            let (begin, count) = found.window.get_or_insert((now, 0));
            if now.duration_since(*begin) >= FLOOD_WINDOW {
                (*begin, *count) = (now, 0);
            }
            *count += 1;
            if *count <= MESSAGES_MAX {
                return Ok(());
            }
            let seconds = FLOOD_WINDOW.as_secs();
            Err(format!("it sent over {MESSAGES_MAX} messages within {seconds} seconds"))
        })
    }

    /// Notes the begin of a line that is no message; the error is the reason to stop.
    pub(super) fn foreign_line(&self, first: u8) -> Result<(), String> {
        self.with(|found| {
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

    /// Notes another byte of such a line. The first line is shown.
    pub(super) fn foreign_byte(&self, byte: u8) {
        self.with(|found| {
            if found.foreign_lines == 1 && found.foreign.len() < SHOWN_BYTES_MAX {
                found.foreign.push(byte);
            }
        });
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

/// Nesting of a message while its bytes arrive.
#[derive(Debug, Default)]
pub(super) struct Nesting {
    depth: usize,
    in_string: bool,
    is_escaped: bool,
}

impl Nesting {
    /// Takes the next byte; the error is the reason to stop.
    pub(super) fn take(&mut self, byte: u8) -> Result<(), String> {
        match byte {
            _ if self.is_escaped => self.is_escaped = false,
            b'\\' => self.is_escaped = self.in_string,
            b'"' => self.in_string = !self.in_string,
            b'{' | b'[' if !self.in_string => self.depth += 1,
            b'}' | b']' if !self.in_string => self.depth = self.depth.saturating_sub(1),
            _ => {}
        }
        if self.depth <= DEPTH_MAX {
            return Ok(());
        }
        Err(format!("it sent a message that is nested deeper than {DEPTH_MAX} levels"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn messages_are_bounded_within_a_time() {
        let findings = Findings::default();
        let many = |findings: &Findings| (0..MESSAGES_MAX).try_for_each(|_| findings.message());
        assert_eq!(many(&findings), Ok(()));
        tokio::time::advance(FLOOD_WINDOW).await;
        assert_eq!(many(&findings.clone()), Ok(()), "another window");
        let refused = findings.message().unwrap_err();
        assert_eq!(refused, "it sent over 10000 messages within 10 seconds");
    }

    #[tokio::test]
    async fn the_first_fault_is_the_reason() {
        let findings = Findings::default();
        assert_eq!(findings.explain("closed".to_owned()), "closed");
        findings.fault("first");
        findings.fault("second");
        findings.faulted().await;
        assert_eq!(findings.explain("closed".to_owned()), "first");
    }

    #[test]
    fn nesting_is_counted_outside_of_strings() {
        let nested = |text: &str| {
            let mut nesting = Nesting::default();
            text.bytes().try_for_each(|byte| nesting.take(byte))
        };
        let (most, deeper) = ("[".repeat(DEPTH_MAX), "{\"a\":".repeat(DEPTH_MAX + 1));
        assert_eq!(nested(&most), Ok(()));
        assert_eq!(nested(&format!("[\"\\\"{deeper}\"]")), Ok(()), "in a string");
        assert_eq!(nested(&"[{}]".repeat(1000)), Ok(()), "one behind the other");
        let why = nested(&deeper).unwrap_err();
        assert_eq!(why, "it sent a message that is nested deeper than 120 levels");
    }
}
