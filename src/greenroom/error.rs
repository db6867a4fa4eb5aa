//! Why a server does not start, as a program's `main` shows it.

use std::{fmt, io};

/// Everything that keeps the server from starting, a line each. As `Debug`, too: that is what a
/// `main` that returns it prints.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.join("\n"))]
pub struct Problems(pub Vec<String>);

impl fmt::Debug for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Why a server did not start, or did not go on. As `Debug`, it shows its lines like
/// [`Problems`].
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// What was configured or registered is refused.
    #[error(transparent)]
    Refused(#[from] Problems),
    /// The address, the store or something else of the machine.
    #[error("{0}")]
    Failed(#[source] io::Error),
    /// [`Greenroom::serve`](crate::Greenroom::serve) was called where a runtime is at work.
    #[error(
        "serve() starts a runtime of its own, and one is running here already (#[tokio::main]?): \
         call it from an ordinary `fn main()`, or from a thread of its own"
    )]
    InsideRuntime,
    /// [`Greenroom::build`](crate::Greenroom::build) was called where no system of actors runs.
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
    fn a_main_shows_lines() {
        let refused = ServeError::from(Problems(vec!["one".to_owned(), "two".to_owned()]));
        let boxed: Box<dyn std::error::Error> = Box::new(refused);
        assert_eq!(format!("Error: {boxed:?}"), "Error: one\ntwo");
        let failed = ServeError::from(io::Error::other("no disk"));
        assert_eq!(format!("{failed:?}"), "no disk");
        let io = io::Error::from(ServeError::InsideRuntime);
        assert!(io.to_string().starts_with("serve() starts a runtime of its own"), "{io}");
    }
}
