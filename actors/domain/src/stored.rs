//! How facts and states are written.

/// Whether a count is left out, being none.
pub fn is_zero<N: Default + PartialEq>(count: &N) -> bool {
    *count == N::default()
}
