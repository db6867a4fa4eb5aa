//! How facts and states are written.

/// Whether a count is left out, being none.
pub(crate) fn is_zero<N: Default + PartialEq>(count: &N) -> bool {
    *count == N::default()
}
