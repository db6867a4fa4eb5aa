//! Length of the messages of failures.

/// Maximum length of the message of an earlier failed attempt.
pub const ATTEMPT_ERROR_BYTES_MAX: usize = 1024;

/// Truncates a text to at most `bytes_max` bytes, at a character boundary.
pub fn shortened(text: &str, bytes_max: usize) -> &str {
    &text[..text.floor_char_boundary(bytes_max)]
}
