//! Failures of functions.

use std::error::Error;
use std::fmt::{Debug, Display, Formatter};
use std::time::Duration;

use crate::causes::with_causes;
use crate::domain::failure::{AttemptFailure, ErrorClass, ErrorKind, ErrorName};

/// Failure of a function. Any error converts into it by `?`, with the messages of all its causes.
/// The message is shown to callers of the execution.
///
/// The retry policy of the step decides whether another attempt follows, unless the failure is
/// [`terminal`](Self::terminal).
///
/// ```
/// use std::time::Duration;
///
/// use greenroom_actors::function::StepError;
///
/// fn price(item: &str, each: &str) -> Result<u32, StepError> {
///     match item {
///         "lamp" => Ok(each.parse::<u32>()?),
///         "sofa" => Err(StepError::new("out of stock").retry_after(Duration::from_secs(60))),
///         other => {
///             let error = StepError::terminal(format!("{other} is not for sale"));
///             Err(error.kind("unknown_item"))
///         }
///     }
/// }
///
/// let error = price("lamp", "4o").unwrap_err();
/// assert_eq!(error.to_string(), "invalid digit found in string");
/// assert_eq!(price("sofa", "900").unwrap_err().requested_delay(), Some(Duration::from_secs(60)));
/// let error = price("ship", "1").unwrap_err();
/// assert_eq!(error.message(), "ship is not for sale");
/// assert_eq!((error.is_terminal(), error.named_kind()), (true, Some("unknown_item")));
/// ```
///
/// Like the errors of `anyhow`, it is no [`std::error::Error`] itself.
#[derive(Clone, PartialEq, Eq)]
pub struct StepError {
    message: String,
    is_terminal: bool,
    name: Option<ErrorName>,
    delay: Option<Duration>,
}

impl StepError {
    /// Creates a failure from a text or an error.
    pub fn new(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        let message = with_causes(&*error.into());
        Self { message, is_terminal: false, name: None, delay: None }
    }

    /// Creates a failure that no retry policy repeats, from a text or an error:
    ///
    /// ```
    /// use greenroom_actors::function::StepError;
    ///
    /// fn count(text: &str) -> Result<u32, StepError> {
    ///     text.parse().map_err(StepError::terminal)
    /// }
    ///
    /// assert!(count("many").unwrap_err().is_terminal());
    /// ```
    pub fn terminal(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { is_terminal: true, ..Self::new(error) }
    }

    /// Asks the retry policy to wait at least this long before the next attempt. The policy's
    /// `max_delay` is the limit, or an hour if it has none.
    #[must_use]
    pub fn retry_after(self, delay: Duration) -> Self {
        Self { delay: Some(delay), ..self }
    }

    /// Sets `error.kind` of the expressions in `retry` and `on_error`, in place of `function`. At
    /// most 31 bytes are kept.
    #[must_use]
    pub fn kind(self, name: &str) -> Self {
        Self { name: ErrorName::new(name), ..self }
    }

    /// Returns the message, causes included.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Returns true if no retry policy repeats the attempt.
    pub fn is_terminal(&self) -> bool {
        self.is_terminal
    }

    /// Returns the name that [`kind`](Self::kind) set.
    pub fn named_kind(&self) -> Option<&str> {
        self.name.as_ref().map(ErrorName::as_str)
    }

    /// Returns the delay that [`retry_after`](Self::retry_after) set.
    pub fn requested_delay(&self) -> Option<Duration> {
        self.delay
    }
}

impl<E: Into<Box<dyn Error + Send + Sync>>> From<E> for StepError {
    fn from(error: E) -> Self {
        Self::new(error)
    }
}

impl Display for StepError {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

/// Writes the message, as `unwrap` shows it, and what was set beside it.
impl Debug for StepError {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)?;
        if self.is_terminal {
            f.write_str(" (terminal)")?;
        }
        if let Some(name) = &self.name {
            write!(f, " (kind {})", name.as_str())?;
        }
        if let Some(delay) = self.delay {
            write!(f, " (retry after {delay:?})")?;
        }
        Ok(())
    }
}

impl From<StepError> for AttemptFailure {
    fn from(error: StepError) -> Self {
        let StepError { message, is_terminal, name, delay } = error;
        let class = Some(ErrorClass { name, is_terminal, ..ErrorClass::of(ErrorKind::Function) });
        let delay_ms = |delay: Duration| u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
        let retry_after_ms = delay.map(delay_ms);
        Self { class, retry_after_ms, ..Self::new(ErrorKind::Function, message) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_error_converts() {
        fn boxed() -> Result<(), StepError> {
            let error: Box<dyn Error + Send + Sync> = "boxed".into();
            Err(error)?
        }
        fn read() -> Result<(), StepError> {
            Err(std::io::Error::other("broken"))?
        }
        fn text() -> Result<(), StepError> {
            Err("short")?
        }
        fn passed_on() -> Result<(), StepError> {
            Err(StepError::terminal("final").kind("declined"))?
        }
        let shown =
            [boxed(), read(), text(), passed_on()].map(|it| format!("{:?}", it.unwrap_err()));
        assert_eq!(shown, ["boxed", "broken", "short", "final (terminal) (kind declined)"]);
    }

    #[test]
    fn a_failure_keeps_what_the_error_says() {
        let error = StepError::terminal("no").kind("declined").retry_after(Duration::from_secs(2));
        let failure = AttemptFailure::from(error);
        let class = failure.class.unwrap();
        assert!(class.is_never_retried());
        assert_eq!(class.name, ErrorName::new("declined"));
        assert_eq!(failure.retry_after_ms, Some(2000));
    }
}
