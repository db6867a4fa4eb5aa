//! Errors that prevent the start of a server, formatted for a program's `main`.

use std::{fmt, io};

/// All problems that prevent the start, a line each. `Debug` prints the same, because a `main` that
/// returns an error prints that.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.join("\n"))]
pub struct Problems(pub Vec<String>);

impl fmt::Debug for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Error of a server that did not start, or stopped. `Debug` prints lines, as for [`Problems`].
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The configuration or the registered code is refused.
    #[error(transparent)]
    Refused(#[from] Problems),
    /// The address, the store or another resource of the machine failed.
    #[error("{0}")]
    Failed(#[source] io::Error),
    /// [`Greenroom::serve`](crate::Greenroom::serve) was called inside a runtime.
    #[error(
        "serve() starts a runtime, but one is already running here (#[tokio::main]?): call it \
         from an ordinary `fn main()`, or from a separate thread"
    )]
    InsideRuntime,
    /// [`Greenroom::build`](crate::Greenroom::build) was called outside of an actix system.
    #[error(
        "build() needs a running actix system, which #[tokio::main] does not start: use \
         #[greenroom::actix_web::main], or serve() from an ordinary `fn main()`"
    )]
    OutsideSystem,
}

impl fmt::Debug for ServeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl From<io::Error> for ServeError {
    fn from(error: io::Error) -> Self {
        Self::Failed(error)
    }
}

impl From<ServeError> for io::Error {
    fn from(error: ServeError) -> Self {
        match error {
            ServeError::Failed(error) => error,
            ServeError::Refused(_) | ServeError::InsideRuntime | ServeError::OutsideSystem => {
                Self::other(error)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_prints_lines_without_escapes() {
        let refused = ServeError::from(Problems(vec!["one".to_owned(), "two".to_owned()]));
        let boxed: Box<dyn std::error::Error> = Box::new(refused);
        assert_eq!(format!("Error: {boxed:?}"), "Error: one\ntwo");
        let failed = ServeError::from(io::Error::other("no disk"));
        assert_eq!(format!("{failed:?}"), "no disk");
        let io = io::Error::from(ServeError::InsideRuntime);
        assert!(io.to_string().starts_with("serve() starts a runtime"), "{io}");
    }
}
