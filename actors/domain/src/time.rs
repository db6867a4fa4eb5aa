//! Timestamps of facts.

use serde::{Deserialize, Serialize};
use serde_json::{Number, Value};

/// Longest time from 1970, in milliseconds, that a fraction may say: 100 million days.
const MS_MAX: f64 = 8.64e15;

/// Milliseconds since 1970-01-01T00:00:00Z.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// Adds milliseconds; saturates.
    pub fn plus_ms(self, ms: u64) -> Self {
        Self(self.0.saturating_add(i64::try_from(ms).unwrap_or(i64::MAX)))
    }

    /// Returns the milliseconds since `earlier`; 0 if this is not later.
    pub fn ms_since(self, earlier: Self) -> u64 {
        u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0)
    }

    /// Formats as ISO 8601 in UTC with milliseconds and `Z`, the only form of time on the wire.
    pub fn to_iso(self) -> String {
        chrono::DateTime::from_timestamp_millis(self.0)
            .unwrap_or(chrono::DateTime::UNIX_EPOCH)
            .to_rfc3339_opts(chrono::SecondsFormat::Millis, true)
    }

    /// Parses an ISO 8601 time with a zone.
    pub fn from_iso(text: &str) -> Option<Self> {
        let parsed = chrono::DateTime::parse_from_rfc3339(text).ok()?;
        Some(Self(parsed.timestamp_millis()))
    }

    /// Reads a time that a definition gives: ISO 8601 text with a zone, or milliseconds
    /// since 1970, of which fractions are cut.
    pub fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::String(text) => Self::from_iso(text.trim()),
            Value::Number(ms) => ms_of(ms).map(Self).filter(|time| time.is_in_range()),
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
        }
    }

    /// Returns true if the time can be written as ISO 8601.
    fn is_in_range(self) -> bool {
        chrono::DateTime::from_timestamp_millis(self.0).is_some()
    }
}

/// Returns whole milliseconds. A quotient in an expression is a fraction, even if it is whole.
fn ms_of(number: &Number) -> Option<i64> {
    let whole = || number.as_f64().map(f64::trunc).filter(|ms| ms.abs() <= MS_MAX);
    #[expect(clippy::cast_possible_truncation, reason = "within the range")]
    number.as_i64().or_else(|| whole().map(|ms| ms as i64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn iso_form_has_milliseconds_and_z() {
        let time = Timestamp(1_700_000_000_123);
        assert_eq!(time.to_iso(), "2023-11-14T22:13:20.123Z");
        assert_eq!(Timestamp::from_iso("2023-11-14T22:13:20.123Z"), Some(time));
        assert_eq!(Timestamp::from_iso("2023-11-14T23:13:20.123+01:00"), Some(time));
        assert_eq!(Timestamp::from_iso("yesterday"), None);
    }
}
