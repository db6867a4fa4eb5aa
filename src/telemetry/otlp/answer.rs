//! What an answer of a collector means, and when to ask again. Pure.

use std::time::Duration;

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceResponse;
use prost::Message as _;

/// How often one request is sent, and after what pauses.
#[derive(Debug, Clone, Copy)]
pub(super) struct Retry {
    /// In all, the first one included.
    pub(super) attempts: u32,
    /// The pause after the first; each is twice the one before it.
    pub(super) delay: Duration,
    /// The longest pause, also where the collector asks for a longer one.
    pub(super) delay_max: Duration,
}

impl Default for Retry {
    fn default() -> Self {
        Self { attempts: 5, delay: Duration::from_secs(1), delay_max: Duration::from_secs(30) }
    }
}

impl Retry {
    /// The pause after so many failed attempts; none where another is one too many. `spread`, from
    /// 0 to 1, shortens it to as little as its half, so that many servers do not come back at
    /// once. What the collector asks for is not shortened.
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

/// What became of a request.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// It was taken, but for so many of its parts; with what the collector says about it.
    Taken { rejected: u64, message: String },
    /// It may be taken later, not before this time where one is named.
    Later { why: String, after: Option<Duration> },
    /// It will never be taken.
    Refused { why: String },
}

impl Answer {
    /// What an answer means by its status, its `Retry-After` and its body.
    pub(super) fn read(status: u16, retry_after: Option<&str>, body: &[u8]) -> Self {
        let why = format!("it answers with status {status}");
        match status {
            200..=299 => {
                // The three signals have messages of their own with the same fields. Of what is
                // no such message the status alone counts.
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
    fn an_answer_says_whether_to_come_again() {
        let later = |after: Option<u64>, status| Answer::Later {
            why: format!("it answers with status {status}"),
            after: after.map(Duration::from_secs),
        };
        let taken = || Answer::Taken { rejected: 0, message: String::new() };
        let refused = |status| Answer::Refused { why: format!("it answers with status {status}") };
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
    fn a_collector_may_take_a_part() {
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
    fn pauses_grow_and_respect_the_collector() {
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
