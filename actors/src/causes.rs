//! Texts of errors with their causes.

use std::error::Error;
use std::iter::successors;

/// Most causes in a text.
const CAUSES_MAX: usize = 32;

/// Returns the message of an error and of its causes, separated by colons. A cause that its error
/// has quoted already is not repeated.
pub fn with_causes(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    for cause in successors(error.source(), |cause| (*cause).source()).take(CAUSES_MAX) {
        let cause = cause.to_string();
        if !text.ends_with(&cause) {
            text.push_str(": ");
            text.push_str(&cause);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use std::num::ParseIntError;

    use super::*;

    #[derive(Debug, thiserror::Error)]
    enum Refused {
        #[error("no price")]
        Price(#[source] ParseIntError),
        #[error("no price: {0}")]
        Quoted(#[source] ParseIntError),
    }

    #[test]
    fn causes_follow_their_error_once() {
        let cause = || "x".parse::<u8>().unwrap_err();
        let expected = "no price: invalid digit found in string";
        for error in [Refused::Price(cause()), Refused::Quoted(cause())] {
            assert_eq!(with_causes(&error), expected);
        }
    }
}
