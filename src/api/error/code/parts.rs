//! Parts of the rows of the table.

use std::fmt;

use super::ErrorCode;

impl ErrorCode {
    /// Returns the code, as in `x-error-code`.
    pub const fn as_str(self) -> &'static str {
        self.row().code
    }

    /// Returns the HTTP status.
    pub const fn status(self) -> u16 {
        self.row().status
    }

    /// Returns seconds for `Retry-After`, if retrying can help.
    pub const fn retry_after_s(self) -> Option<u32> {
        self.row().retry_after_s
    }

    /// Returns a short title, the same for every refusal with this code.
    pub const fn title(self) -> &'static str {
        self.row().title
    }

    /// Returns the cause, in Markdown.
    pub const fn cause(self) -> &'static str {
        self.row().cause
    }

    /// Returns the advice for the caller, in Markdown.
    pub const fn cure(self) -> &'static str {
        self.row().cure
    }

    /// Returns the `type` of a problem: a URN, not an address.
    pub fn uri(self) -> String {
        format!("urn:greenroom:error:{self}")
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
