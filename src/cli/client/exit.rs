//! Exit codes of client commands, and what ends them early.

use std::fmt::{self, Write as _};
use std::io;
use std::process::ExitCode;

use serde_json::json;

use super::text::{addressed, compact, plain, shortened};

/// Most characters of a message that are shown: a server may send any text.
const MESSAGE_CHARS_MAX: usize = 4_000;

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
    /// Ctrl-C, or another signal that asks a program to end.
    Interrupted,
    Terminated,
    HungUp,
    /// The reader of the output has closed it; the code of programs that SIGPIPE ends.
    Closed,
}

impl Exit {
    /// Returns the number that the process exits with.
    pub(super) fn code(self) -> u8 {
        match self {
            Self::Ok => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::NotFound => 3,
            Self::Auth => 4,
            Self::Suspended => 5,
            Self::Timeout => 124,
            Self::HungUp => 129,
            Self::Interrupted => 130,
            Self::Closed => 141,
            Self::Terminated => 143,
        }
    }

    /// Returns true after a signal that asks a command to end.
    pub(super) fn is_signal(self) -> bool {
        matches!(self, Self::Interrupted | Self::Terminated | Self::HungUp)
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

/// Reason why a command ends, with what to do next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Failure {
    pub(super) exit: Exit,
    message: String,
    advice: Vec<String>,
    refusal: Option<Refusal>,
    request_id: Option<String>,
    is_transient: bool,
}

/// Status and code of a server's refusal, for programs.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Refusal {
    status: u16,
    code: String,
}

impl Failure {
    /// Creates a failure; the message may have any text of a server.
    pub(super) fn new(exit: Exit, message: impl Into<String>) -> Self {
        let message = shortened(&message.into(), MESSAGE_CHARS_MAX).into_owned();
        let (advice, is_transient) = (Vec::new(), false);
        Self { exit, message, advice, refusal: None, request_id: None, is_transient }
    }

    /// Creates a failure of the command line.
    pub(super) fn usage(message: impl Into<String>) -> Self {
        Self::new(Exit::Usage, message)
    }

    /// Adds a line that says what to do next.
    #[must_use]
    pub(super) fn advise(mut self, advice: impl Into<String>) -> Self {
        self.advice.push(shortened(&advice.into(), MESSAGE_CHARS_MAX).into_owned());
        self
    }

    /// Adds the status and the code of a server's refusal.
    #[must_use]
    pub(super) fn of_refusal(self, status: u16, code: &str) -> Self {
        Self { refusal: Some(Refusal { status, code: code.to_owned() }), ..self }
    }

    /// Adds the id by which the log of the server names the request.
    #[must_use]
    pub(super) fn of_request(self, request_id: Option<String>) -> Self {
        Self { request_id, ..self }
    }

    /// Adds options to the commands of the advice.
    #[must_use]
    pub(super) fn addressed(mut self, options: &str) -> Self {
        for advice in &mut self.advice {
            *advice = addressed(advice, options).into_owned();
        }
        self
    }

    /// Marks a failure that the same request may not have a moment later.
    #[must_use]
    pub(super) fn transient(self, is_transient: bool) -> Self {
        Self { is_transient, ..self }
    }

    pub(super) fn is_transient(&self) -> bool {
        self.is_transient
    }

    /// Returns true if the message has this text.
    pub(super) fn says(&self, part: &str) -> bool {
        self.message.contains(part)
    }

    /// Returns true if a server has refused the request with this code.
    pub(super) fn is_refused_as(&self, code: &str) -> bool {
        self.refusal.as_ref().is_some_and(|refusal| refusal.code == code)
    }

    /// Returns the failure as JSON in one line.
    pub(super) fn to_json(&self) -> String {
        let Self { exit, message, advice, refusal, request_id, is_transient: _ } = self;
        let mut error = json!({ "message": message });
        if let Some(Refusal { status, code }) = refusal {
            error["code"] = json!(code);
            error["status"] = json!(status);
        }
        if let Some(id) = request_id {
            error["requestId"] = json!(id);
        }
        error["advice"] = json!(advice);
        error["exitCode"] = json!(exit.code());
        compact(&json!({ "error": error }))
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
    fn a_failure_is_json_for_programs() {
        let failure = Failure::new(Exit::NotFound, "Workflow a\u{1b} not found")
            .advise("did you mean noop3?")
            .of_refusal(404, "workflow_not_found")
            .of_request(Some("r-1".to_owned()));
        let expected = r#"{"error":{"message":"Workflow a\u001b not found","code":"workflow_not_found","status":404,"requestId":"r-1","advice":["did you mean noop3?"],"exitCode":3}}"#;
        assert_eq!(failure.to_json(), expected);
        let expected = r#"{"error":{"message":"no","advice":[],"exitCode":2}}"#;
        assert_eq!(Failure::usage("no").to_json(), expected);
    }

    #[test]
    fn a_long_message_is_cut() {
        let shown = Failure::usage("x".repeat(5_000)).to_string();
        assert!(shown.ends_with("xx… (1000 more characters)"), "{shown}");
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
