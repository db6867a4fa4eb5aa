//! What may be an id: whatever is made under one can be named in a path.

/// Longest id, in characters.
pub const ID_CHARS_MAX: usize = 200;

/// Whether a text, decoded, may be an id in a path.
pub fn is_id(text: &str) -> bool {
    !text.is_empty()
        && text.chars().count() <= ID_CHARS_MAX
        && !text.chars().any(|c| c.is_control() || c == '/')
}
