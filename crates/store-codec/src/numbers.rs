//! Numbers in columns, which are signed in every store.

use super::Damaged;

/// Converts to a signed integer. Numbers of events never reach the maximum.
pub fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Converts a stored number back.
pub fn unsigned(number: i64) -> Result<u64, Damaged> {
    u64::try_from(number).map_err(|_| Damaged::new(format_args!("{number} is negative")))
}

/// Converts a limit on rows. It is never negative, which means no limit in some stores.
pub fn limit_of(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}
