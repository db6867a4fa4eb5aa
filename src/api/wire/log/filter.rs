//! Filters of log records: those of the log routes, and those of OpenTelemetry.

use std::ops::RangeInclusive;

use greenroom_actors::domain::trace::is_trace_id;
use greenroom_actors::observe::log_record::LogLevel;
use greenroom_actors::ports::store::LogFilter;
use greenroom_actors::visibility::Visibility;

use crate::api::error::ApiError;
use crate::api::query::{Pairs, digits, read, read_limit, read_name, time_from, time_until};

/// Default number of records of a page.
const LIMIT_DEFAULT: usize = 100;
const LIMIT_MAX: usize = 1_000;

/// Levels in queries. The server logs nothing as `fatal`, so that this minimum matches no record.
pub const LEVEL_WORDS: [&str; 6] = ["trace", "debug", "info", "warn", "error", "fatal"];
/// Severity numbers of OpenTelemetry.
pub const SEVERITY_NUMBERS: RangeInclusive<u8> = 1..=24;
/// Severity texts of OpenTelemetry.
pub const SEVERITY_WORDS: [&str; 6] = ["TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL"];

/// Parses the filter of `/api/logs` and `/ws/logs`, limited to what the caller sees. Routes check
/// for unknown parameters themselves.
pub fn log_filter_of(pairs: &Pairs, visibility: Visibility) -> Result<LogFilter, ApiError> {
    let what = "must be trace, debug, info, warn, error or fatal";
    let minimum = read(pairs, "level", what, |word| minimum_of(word, LEVEL_WORDS))?;
    let (level, visibility) = bounded_by(minimum, visibility);
    Ok(LogFilter {
        level,
        agent_id: read_name(pairs, "agentId")?,
        workflow_id: read_name(pairs, "workflowId")?,
        execution_id: read_name(pairs, "executionId")?,
        conversation_id: read_name(pairs, "conversationId")?,
        since: time_from(pairs, "since")?,
        until: time_until(pairs, "until")?,
        visibility,
        ..LogFilter::default()
    })
}

/// Parses the filter of OpenTelemetry's records: `severityText` is an exact level, `severityNumber`
/// a minimum.
pub fn record_filter_of(pairs: &Pairs, visibility: Visibility) -> Result<LogFilter, ApiError> {
    let what = "must be TRACE, DEBUG, INFO, WARN, ERROR or FATAL";
    let exact = read(pairs, "severityText", what, |word| minimum_of(word, SEVERITY_WORDS))?;
    let what = "must be a number from 1 to 24";
    let minimum = read(pairs, "severityNumber", what, |text| {
        digits(text).filter(|number| SEVERITY_NUMBERS.contains(number)).map(minimum_by_number)
    })?;
    let (level_max, visibility) = bounded_by(exact, visibility);
    let (level, visibility) = bounded_by(minimum, visibility);
    let (trace, span) = (
        "must be 32 hexadecimal digits in lower case, not all zero",
        "must be 16 hexadecimal digits in lower case, not all zero",
    );
    Ok(LogFilter {
        // an exact level is both minimum and maximum
        level: level.max(level_max),
        level_max,
        trace_id: read(pairs, "traceId", trace, |id| is_trace_id(id).then(|| id.to_owned()))?,
        span_id: read(pairs, "spanId", span, |id| id.parse().ok())?,
        since: time_from(pairs, "startTime")?,
        until: time_until(pairs, "endTime")?,
        visibility,
        ..LogFilter::default()
    })
}

/// Returns the lowest level with at least this severity number.
fn minimum_by_number(number: u8) -> Minimum {
    let level = LogLevel::ALL.into_iter().find(|level| level.severity_number() >= number);
    level.map_or(Minimum::Fatal, Minimum::Level)
}

/// Parses the maximum number of records.
pub fn log_limit_of(pairs: &Pairs) -> Result<usize, ApiError> {
    read_limit(pairs, LIMIT_DEFAULT, LIMIT_MAX)
}

/// Minimum level of a filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Minimum {
    Level(LogLevel),
    /// Above all levels that are logged.
    Fatal,
}

/// Parses a level; `words` are the names of all levels in ascending order, then that of `fatal`.
fn minimum_of(word: &str, words: [&str; 6]) -> Option<Minimum> {
    let place = words.iter().position(|known| *known == word)?;
    Some(LogLevel::ALL.get(place).map_or(Minimum::Fatal, |level| Minimum::Level(*level)))
}

fn bounded_by(minimum: Option<Minimum>, visibility: Visibility) -> (Option<LogLevel>, Visibility) {
    match minimum {
        None => (None, visibility),
        Some(Minimum::Level(level)) => (Some(level), visibility),
        Some(Minimum::Fatal) => (None, Visibility::Nothing),
    }
}

#[cfg(test)]
mod tests {
    use greenroom_actors::observe::log_record::LogRecord;

    use super::*;
    use crate::api::wire::log::tests::record;

    fn filter(name: &str, value: &str) -> Result<LogFilter, ApiError> {
        log_filter_of(&[(name.to_owned(), value.to_owned())], Visibility::Everything)
    }

    #[test]
    fn a_level_is_a_minimum() {
        for (place, word) in LEVEL_WORDS.into_iter().enumerate() {
            let filter = filter("level", word).unwrap();
            assert_eq!(filter.level, LogLevel::ALL.get(place).copied(), "{word}");
            assert_eq!(filter.admits(&record()), place <= 3, "{word}");
        }
    }

    #[test]
    fn a_severity_text_is_exact_and_a_number_is_a_minimum() {
        let admitted = |query: &[(&str, &str)]| {
            let pairs: Vec<_> =
                query.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
            let filter = record_filter_of(&pairs, Visibility::Everything).unwrap();
            let of = |level| LogRecord { level, ..record() };
            let admitted = LogLevel::ALL.map(of).into_iter().filter(|it| filter.admits(it));
            admitted.map(|record| record.level.severity_text()).collect::<Vec<_>>().join(" ")
        };
        let all = "TRACE DEBUG INFO WARN ERROR";
        let rows: [(&[(&str, &str)], &str); 10] = [
            (&[], all),
            (&[("severityText", "INFO")], "INFO"),
            (&[("severityText", "FATAL")], ""),
            (&[("severityNumber", "1")], all),
            (&[("severityNumber", "9")], "INFO WARN ERROR"),
            (&[("severityNumber", "10")], "WARN ERROR"),
            (&[("severityNumber", "18")], ""),
            (&[("severityNumber", "24")], ""),
            (&[("severityText", "WARN"), ("severityNumber", "9")], "WARN"),
            (&[("severityText", "INFO"), ("severityNumber", "13")], ""),
        ];
        for (query, expected) in rows {
            assert_eq!(admitted(query), expected, "{query:?}");
        }
        for value in ["0", "25", "-1", "WARN", ""] {
            let pairs = [("severityNumber".to_owned(), value.to_owned())];
            let text = record_filter_of(&pairs, Visibility::Everything).unwrap_err().to_string();
            let expected = "Invalid query parameter severityNumber: must be a number from 1 to 24";
            assert_eq!(text, expected, "{value:?}");
        }
    }

    #[test]
    fn wrong_values_are_refused_by_name() {
        let rows = [
            ("level", "loud"),
            ("level", "WARN"),
            ("agentId", ""),
            ("workflowId", ""),
            ("executionId", ""),
            ("conversationId", ""),
            ("since", "yesterday"),
            ("until", ""),
        ];
        for (name, value) in rows {
            let text = filter(name, value).unwrap_err().to_string();
            assert!(text.starts_with(&format!("Invalid query parameter {name}: ")), "{text}");
        }
        for value in ["0", "1001", "-1", "ten", ""] {
            assert!(log_limit_of(&[("limit".to_owned(), value.to_owned())]).is_err(), "{value:?}");
        }
        assert_eq!(log_limit_of(&[]), Ok(100));
    }
}
