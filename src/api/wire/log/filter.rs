//! Which log records are wanted, in the words of two dialects.

use std::ops::RangeInclusive;

use greenroom_actors::domain::trace::is_trace_id;
use greenroom_actors::observe::log_record::LogLevel;
use greenroom_actors::ports::store::LogFilter;
use greenroom_actors::visibility::Visibility;

use crate::api::error::ApiError;
use crate::api::query::{Pairs, digits, read, time_from, time_until};

/// Records of an answer when the caller names no number.
const LIMIT_DEFAULT: usize = 100;
const LIMIT_MAX: usize = 1_000;

/// Words for a level in queries. Nothing that the server outlives is fatal: nothing is logged
/// there, and as a minimum the word admits nothing.
pub const LEVEL_WORDS: [&str; 6] = ["trace", "debug", "info", "warn", "error", "fatal"];
/// OpenTelemetry's numbers for how grave a record is.
pub const SEVERITY_NUMBERS: RangeInclusive<u8> = 1..=24;
/// The same words as OpenTelemetry writes them.
pub const SEVERITY_WORDS: [&str; 6] = ["TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL"];

/// Reads which records are wanted, in the words of `/api/logs` and `/ws/logs`, of those that the
/// caller sees. Wrong values are refused; which other parameters there may be, each
/// route says.
pub fn log_filter_of(pairs: &Pairs, visibility: Visibility) -> Result<LogFilter, ApiError> {
    let what = "must be trace, debug, info, warn, error or fatal";
    let minimum = read(pairs, "level", what, |word| minimum_of(word, LEVEL_WORDS))?;
    let (level, visibility) = bounded_by(minimum, visibility);
    Ok(LogFilter {
        level,
        agent_id: name(pairs, "agentId")?,
        workflow_id: name(pairs, "workflowId")?,
        execution_id: name(pairs, "executionId")?,
        conversation_id: name(pairs, "conversationId")?,
        since: time_from(pairs, "since")?,
        until: time_until(pairs, "until")?,
        visibility,
        ..LogFilter::default()
    })
}

/// The same in the words of OpenTelemetry: `severityText` means that level alone,
/// `severityNumber` is a minimum.
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
        // the word means that level alone
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

/// The least grave level with this number of OpenTelemetry or a greater one.
fn minimum_by_number(number: u8) -> Minimum {
    let level = LogLevel::ALL.into_iter().find(|level| level.severity_number() >= number);
    level.map_or(Minimum::Fatal, Minimum::Level)
}

/// Reads how many records are wanted at most.
pub fn log_limit_of(pairs: &Pairs) -> Result<usize, ApiError> {
    let limit = read(pairs, "limit", "must be a number from 1 to 1000", |text| {
        digits(text).filter(|limit| (1..=LIMIT_MAX).contains(limit))
    })?;
    Ok(limit.unwrap_or(LIMIT_DEFAULT))
}

/// The least grave level that is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Minimum {
    Level(LogLevel),
    /// Graver than anything that is logged.
    Fatal,
}

/// `words`: one for each level, from the least grave on, then the one for what is fatal.
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

fn name(pairs: &Pairs, key: &str) -> Result<Option<String>, ApiError> {
    read(pairs, key, "must not be empty", |text| (!text.is_empty()).then(|| text.to_owned()))
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
    fn a_level_is_the_least_that_is_wanted() {
        for (place, word) in LEVEL_WORDS.into_iter().enumerate() {
            let filter = filter("level", word).unwrap();
            assert_eq!(filter.level, LogLevel::ALL.get(place).copied(), "{word}");
            assert_eq!(filter.admits(&record()), place <= 3, "{word}");
        }
    }

    #[test]
    fn a_severity_is_a_level_alone_by_word_and_a_minimum_by_number() {
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
