//! Errors of expressions: one short line, without the data.

use std::fmt;

use minijinja::{Error, ErrorKind};

use super::closure::{ClosureError, Stated};
use super::raised::Raised;

const SOURCE_CHARS_SHOWN: usize = 80;
const MESSAGE_CHARS_MAX: usize = 240;

/// Error of an expression, a template or a mapping.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExpressionError {
    /// Key path of the failing part (`items[2].x`); empty for the whole.
    pub place: String,
    /// Problem and source, on one line.
    pub message: String,
    /// True if the cause is an undefined value.
    pub is_undefined: bool,
    /// True if the evaluation exceeded its budget; it is not retried.
    pub is_too_costly: bool,
    /// True if `fail` raised it: its message is that of the definition, and it is not retried.
    pub is_raised: bool,
    /// Statements of the closure that failed; boxed, because most errors have none.
    pub stated: Option<Box<Stated>>,
}

impl fmt::Display for ExpressionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.place.is_empty() {
            write!(f, "{}: ", self.place)?;
        }
        f.write_str(&self.message)
    }
}

impl std::error::Error for ExpressionError {}

impl ExpressionError {
    /// Creates an error of our own about `source`.
    pub(super) fn refused(source: &str, message: &str) -> Self {
        let message = shortened(message, MESSAGE_CHARS_MAX);
        let source = shortened(source.trim(), SOURCE_CHARS_SHOWN);
        let message = format!("{message} in `{source}`");
        Self { message, ..Self::default() }
    }

    /// Creates the error of a closure.
    pub(super) fn closure(source: &str, error: &ClosureError) -> Self {
        let stated = Some(Box::new(error.stated));
        Self { stated, ..Self::refused(source, &error.message) }
    }

    /// Creates an error of the engine about `source`.
    pub(super) fn engine(source: &str, error: &Error) -> Self {
        if let Some(Raised(message)) = Raised::cause_of(error) {
            return Self { message: message.clone(), is_raised: true, ..Self::default() };
        }
        let mut message = match (error.kind(), error.detail()) {
            (ErrorKind::UndefinedError | ErrorKind::InvalidOperation, Some(detail)) => {
                detail.to_owned()
            }
            (kind, Some(detail)) => format!("{kind}: {detail}"),
            (kind, None) => kind.to_string(),
        };
        if let Some(cause) = std::error::Error::source(error) {
            message.push_str(&format!(": {cause}"));
        }
        if let Some(line) = error.line().filter(|_| source.trim().contains('\n')) {
            message.push_str(&format!(" (line {line})"));
        }
        Self { is_undefined: is_undefined(error), ..Self::refused(source, &message) }
    }

    /// Creates the error of an evaluation that exceeded its budget.
    pub(super) fn too_costly(source: &str, excess: &str) -> Self {
        Self { is_too_costly: true, ..Self::refused(source, excess) }
    }

    /// Prefixes the place with a step of the path. What `fail` raised has none.
    pub(super) fn inside(mut self, step: &str) -> Self {
        if !self.is_raised {
            self.place = joined(step, &self.place);
        }
        self
    }
}

/// Returns true if the cause is an undefined value, also inside a filter.
fn is_undefined(error: &Error) -> bool {
    let cause = std::error::Error::source(error).and_then(|cause| cause.downcast_ref());
    error.kind() == ErrorKind::UndefinedError || cause.is_some_and(is_undefined)
}

/// Reason why a value cannot be a result, without its source.
#[derive(Debug)]
pub(super) struct Refusal {
    pub(super) place: String,
    pub(super) message: String,
    /// True if it concerns the whole value, independent of the place.
    is_of_whole: bool,
    pub(super) is_undefined: bool,
}

impl Refusal {
    pub(super) fn new(message: impl Into<String>) -> Self {
        let message = message.into();
        Self { place: String::new(), message, is_of_whole: false, is_undefined: false }
    }

    /// Creates the refusal of an undefined value.
    pub(super) fn undefined() -> Self {
        Self { is_undefined: true, ..Self::new("undefined value") }
    }

    pub(super) fn of_whole(message: impl Into<String>) -> Self {
        Self { is_of_whole: true, ..Self::new(message) }
    }

    pub(super) fn inside(mut self, step: &str) -> Self {
        if !self.is_of_whole {
            self.place = joined(step, &self.place);
        }
        self
    }

    pub(super) fn about(self, source: &str) -> ExpressionError {
        let Self { place, message, is_undefined, .. } = self;
        ExpressionError { place, is_undefined, ..ExpressionError::refused(source, &message) }
    }
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        let message = match refusal.place.as_str() {
            "" => refusal.message,
            place => format!("{}: {}", place, refusal.message),
        };
        let kind = match refusal.is_undefined {
            true => ErrorKind::UndefinedError,
            false => ErrorKind::InvalidOperation,
        };
        Self::new(kind, message)
    }
}

/// Formats a key as a step of a path: `name`, `['my-key']`.
pub(crate) fn key_step(key: &str) -> String {
    let mut characters = key.chars();
    let plain = characters.next().is_some_and(|first| first.is_alphabetic() || first == '_')
        && characters.all(|next| next.is_alphanumeric() || next == '_');
    if plain { key.to_owned() } else { format!("['{}']", shortened(key, SOURCE_CHARS_SHOWN)) }
}

/// Formats an index as a step of a path: `[2]`.
pub(crate) fn index_step(index: usize) -> String {
    format!("[{index}]")
}

/// Joins a step and the rest of a path.
pub(crate) fn joined(step: &str, rest: &str) -> String {
    let dot = if rest.is_empty() || rest.starts_with('[') { "" } else { "." };
    format!("{step}{dot}{rest}")
}

/// Truncates a text to `characters_max` characters on one line.
pub(crate) fn shortened(text: &str, characters_max: usize) -> String {
    let mut line: String = text
        .chars()
        .take(characters_max)
        .map(|character| if character.is_control() { ' ' } else { character })
        .collect();
    if text.chars().nth(characters_max).is_some() {
        line.push('…');
    }
    line
}
