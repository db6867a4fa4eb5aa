//! Failures of tools.

use std::error::Error;
use std::fmt::{Debug, Display, Formatter};

use crate::agent::ask::{CallApproval, ToolAsk};
use crate::causes::with_causes;
use crate::domain::failure::{AttemptFailure, ErrorKind};

/// Failure of a tool. Any error converts into it by `?`, with the messages of all its causes. The
/// message goes to the model and to callers; the retry of a step reads its class.
///
/// ```
/// use greenroom_actors::agent::tool::ToolError;
///
/// fn order(text: &str) -> Result<u32, ToolError> {
///     match text.parse()? {
///         7 => Ok(7),
///         order => Err(format!("there is no order {order}").into()),
///     }
/// }
///
/// assert_eq!(order("seven").unwrap_err().to_string(), "invalid digit found in string");
/// assert_eq!(order("8").unwrap_err().to_string(), "there is no order 8");
/// ```
///
/// Like the errors of `anyhow`, it is no [`std::error::Error`] itself.
#[derive(Clone, PartialEq)]
#[non_exhaustive]
pub enum ToolError {
    Failed(AttemptFailure),
    /// The result of [`ToolContext::ask`](super::ToolContext::ask) without an answer.
    Waits(Box<ToolAsk>),
    /// A person has to approve the call, which is made again then; calls of agents alone can wait.
    NeedsApproval(Box<CallApproval>),
}

impl ToolError {
    /// Creates a failure from a text or an error.
    pub fn new(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        let message = with_causes(&*error.into());
        Self::Failed(AttemptFailure::new(ErrorKind::Tool, message))
    }

    /// Returns the message, causes included.
    pub fn message(&self) -> &str {
        match self {
            Self::Failed(failure) => &failure.message,
            Self::Waits(_) => "waits for an answer",
            Self::NeedsApproval(_) => "waits for an approval",
        }
    }
}

impl<E: Into<Box<dyn Error + Send + Sync>>> From<E> for ToolError {
    fn from(error: E) -> Self {
        Self::new(error)
    }
}

impl Display for ToolError {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.message())
    }
}

/// Writes the message, as `unwrap` shows it.
impl Debug for ToolError {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.message())
    }
}
