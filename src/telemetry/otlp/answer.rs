//! Responses of a collector, and retries. Pure.

use std::time::Duration;

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceResponse;
use prost::Message as _;

/// Retry policy of one request.
#[derive(Debug, Clone, Copy)]
pub(super) struct Retry {
    /// Maximum number of attempts, including the first.
    pub(super) attempts: u32,
    /// Pause after the first attempt; it doubles after each further one.
    pub(super) delay: Duration,
    /// Maximum pause, even if the collector asks for a longer one.
    pub(super) delay_max: Duration,
}

impl Default for Retry {
    fn default() -> Self {
        Self { attempts: 5, delay: Duration::from_secs(1), delay_max: Duration::from_secs(30) }
    }
}

impl Retry {
    /// Returns the pause after so many failed attempts; `None` if there is no further attempt.
    /// `spread`, from 0 to 1, shortens it by up to half, so that many servers do not retry at once.
    /// A pause that the collector asks for is not shortened.
    pub(super) fn pause(
        &self,
        failed: u32,
        asked: Option<Duration>,
        spread: f64,
    ) -> Option<Duration> {
        if failed >= self.attempts {
            return None;
        }
        let factor = 2_u32.saturating_pow(failed.saturating_sub(1));
        let grown = self.delay.saturating_mul(factor).min(self.delay_max);
        let grown = grown.mul_f64(1.0 - 0.5 * spread.clamp(0.0, 1.0));
        Some(grown.max(asked.unwrap_or_default().min(self.delay_max)))
    }
}

/// Outcome of a request.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// Accepted, except for so many of its items; with the message of the collector.
    Taken { rejected: u64, message: String },
    /// Failed, may be retried after this time.
    Later { why: String, after: Option<Duration> },
    /// Failed, not to be retried.
    Refused { why: String },
}

impl Answer {
    /// Interprets the status, the header `Retry-After` and the body of a response.
    pub(super) fn read(status: u16, retry_after: Option<&str>, body: &[u8]) -> Self {
        let why = format!("it responded with status {status}");
        match status {
            200..=299 => {
                // the responses of the three signals have the same fields; without one in the body,
                // the status counts alone
                let answer = ExportTraceServiceResponse::decode(body).unwrap_or_default();
                let partial = answer.partial_success.unwrap_or_default();
                let rejected = u64::try_from(partial.rejected_spans).unwrap_or_default();
                Self::Taken { rejected, message: partial.error_message }
            }
            429 | 502 | 503 | 504 => {
                let seconds = retry_after.and_then(|text| text.trim().parse().ok());
                Self::Later { why, after: seconds.map(Duration::from_secs) }
            }
            _ => Self::Refused { why },
        }
    }
}

#[cfg(test)]
mod tests {
    use opentelemetry_proto::tonic::collector::logs::v1::{
        ExportLogsPartialSuccess, ExportLogsServiceResponse,
    };

    use super::*;

    #[test]
    fn the_status_decides_whether_to_retry() {
        let later = |after: Option<u64>, status| Answer::Later {
            why: format!("it responded with status {status}"),
            after: after.map(Duration::from_secs),
        };
        let taken = || Answer::Taken { rejected: 0, message: String::new() };
        let refused =
            |status| Answer::Refused { why: format!("it responded with status {status}") };
        let rows = [
            (200, None, taken()),
            (204, None, taken()),
            (429, Some("7"), later(Some(7), 429)),
            (429, Some("Wed, 21 Oct 2026 07:28:00 GMT"), later(None, 429)),
            (503, None, later(None, 503)),
            (502, Some("-1"), later(None, 502)),
            (504, Some("0"), later(Some(0), 504)),
            (400, None, refused(400)),
            (404, Some("1"), refused(404)),
            (500, None, refused(500)),
            (301, None, refused(301)),
        ];
        for (status, retry_after, expected) in rows {
            assert_eq!(Answer::read(status, retry_after, b""), expected, "{status}");
        }
    }

    #[test]
    fn rejected_items_of_a_partial_success_are_counted() {
        let partial = ExportLogsPartialSuccess {
            rejected_log_records: 3,
            error_message: "too old".to_owned(),
        };
        let body = ExportLogsServiceResponse { partial_success: Some(partial) }.encode_to_vec();
        let expected = Answer::Taken { rejected: 3, message: "too old".to_owned() };
        assert_eq!(Answer::read(200, None, &body), expected);
        let garbage = Answer::read(200, None, b"<html>\xff");
        assert_eq!(garbage, Answer::Taken { rejected: 0, message: String::new() });
    }

    #[test]
    fn pauses_double_and_respect_retry_after() {
        let retry = Retry::default();
        // failed, asked for, spread, expected; in milliseconds
        let rows = [
            (1, None, 0.0, Some(1_000)),
            (1, None, 1.0, Some(500)),
            (3, None, 0.0, Some(4_000)),
            (4, None, 9.0, Some(4_000)),
            (1, Some(3_000), 1.0, Some(3_000)),
            (1, Some(900_000), 0.0, Some(30_000)),
            (5, None, 0.0, None),
            (u32::MAX, Some(1), 0.0, None),
        ];
        for (failed, asked, spread, expected) in rows {
            let pause = retry.pause(failed, asked.map(Duration::from_millis), spread);
            assert_eq!(pause, expected.map(Duration::from_millis), "{failed} {asked:?}");
        }
        let patient = Retry { attempts: u32::MAX, ..retry };
        assert_eq!(patient.pause(1_000, None, 0.0), Some(retry.delay_max));
    }
}
