//! Exit codes of client commands, and what ends them early.

use std::fmt::{self, Write as _};
use std::io;
use std::process::ExitCode;

use super::text::plain;

/// Exit codes. Scripts compare them: a number never changes its meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Exit {
    /// Done.
    Ok,
    /// The execution, the agent or the request failed.
    Failed,
    /// The command line, or data that it names, is wrong; nothing was changed.
    Usage,
    NotFound,
    /// The server asks for a token, or for another one.
    Auth,
    /// The execution or the agent waits for a person.
    Suspended,
    /// The time of `--timeout` is over, or the server does not answer.
    Timeout,
    /// Ctrl-C.
    Interrupted,
    /// The reader of the output has closed it; the code of programs that SIGPIPE ends.
    Closed,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Ok => 0,
            Exit::Failed => 1,
            Exit::Usage => 2,
            Exit::NotFound => 3,
            Exit::Auth => 4,
            Exit::Suspended => 5,
            Exit::Timeout => 124,
            Exit::Interrupted => 130,
            Exit::Closed => 141,
        })
    }
}

/// Reason why a command ends, with what to do next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Failure {
    pub(super) exit: Exit,
    message: String,
    advice: Vec<String>,
    request_id: Option<String>,
    is_transient: bool,
}

impl Failure {
    /// Creates a failure; the message may have any text of a server.
    pub(super) fn new(exit: Exit, message: impl Into<String>) -> Self {
        let (message, advice, request_id) = (message.into(), Vec::new(), None);
        Self { exit, message, advice, request_id, is_transient: false }
    }

    /// Creates a failure of the command line.
    pub(super) fn usage(message: impl Into<String>) -> Self {
        Self::new(Exit::Usage, message)
    }

    /// Adds a line that says what to do next.
    #[must_use]
    pub(super) fn advise(mut self, advice: impl Into<String>) -> Self {
        self.advice.push(advice.into());
        self
    }

    /// Adds the id by which the log of the server names the request.
    #[must_use]
    pub(super) fn of_request(self, request_id: Option<String>) -> Self {
        Self { request_id, ..self }
    }

    /// Marks a failure that the same request may not have a moment later.
    #[must_use]
    pub(super) fn transient(self, is_transient: bool) -> Self {
        Self { is_transient, ..self }
    }

    pub(super) fn is_transient(&self) -> bool {
        self.is_transient
    }

    /// Returns true if nothing is to be printed.
    pub(super) fn is_silent(&self) -> bool {
        self.exit == Exit::Closed
    }
}

/// An output that cannot be written. A closed one is no failure.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self::new(Exit::Closed, "");
        }
        Self::new(Exit::Failed, format!("the output cannot be written: {error}"))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "greenroom: {}", plain(&self.message))?;
        for advice in &self.advice {
            write!(f, "\n  {}", plain(advice))?;
        }
        match &self.request_id {
            Some(id) => write!(f, "\n  request {}", plain(id)),
            None => f.write_str(""),
        }
    }
}

/// Returns a word as a shell reads it as one argument.
pub(in crate::cli) fn quoted(word: &str) -> String {
    let is_bare = |c: char| c.is_ascii_alphanumeric() || "-_.,:/@%+=".contains(c);
    if !word.is_empty() && word.chars().all(is_bare) {
        return word.to_owned();
    }
    let mut quoted = String::new();
    // writes to a string cannot fail
    let _ = write!(quoted, "'{}'", word.replace('\'', "'\\''"));
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_says_what_to_do_and_names_the_request() {
        let failure = Failure::new(Exit::NotFound, "Workflow a\u{1b}[2Jb not found")
            .advise("did you mean noop3?")
            .of_request(Some("r-1".to_owned()));
        let expected = "greenroom: Workflow a\\u{1b}[2Jb not found\n  did you mean noop3?\n  \
                        request r-1";
        assert_eq!(failure.to_string(), expected);
    }

    #[test]
    fn a_closed_output_is_silent() {
        let closed = Failure::from(io::Error::from(io::ErrorKind::BrokenPipe));
        assert!(closed.is_silent());
        assert!(!Failure::from(io::Error::from(io::ErrorKind::StorageFull)).is_silent());
    }

    #[test]
    fn words_are_quoted_for_a_shell() {
        for (word, expected) in [
            ("exp-1", "exp-1"),
            ("", "''"),
            ("a b", "'a b'"),
            ("it's", "'it'\\''s'"),
            ("$x", "'$x'"),
        ] {
            assert_eq!(quoted(word), expected);
        }
    }
}
