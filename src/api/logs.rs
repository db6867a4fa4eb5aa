//! Use cases of the log.

use greenroom_actors::Runtime;
use greenroom_actors::ports::store::{LogFilter, LogNumber, LogPage};
use greenroom_actors::visibility::Visibility;

use crate::api::error::ApiError;
use crate::api::query::{Pairs, read, refuse_unknown};
use crate::api::wire::log::{log_filter_of, log_limit_of, record_filter_of};
use crate::api::wire::state::number_of;

/// Requested page of log records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogQuery {
    pub filter: LogFilter,
    pub before: Option<LogNumber>,
    pub limit: usize,
}

/// Parameters of `/api/logs`.
const ENTRY_PARAMETERS: [&str; 9] = [
    "level",
    "agentId",
    "workflowId",
    "executionId",
    "conversationId",
    "since",
    "until",
    "limit",
    "cursor",
];
/// Parameters of `/observability/logs` and of the logs of traces and spans.
const RECORD_PARAMETERS: [&str; 8] = [
    "severityText",
    "severityNumber",
    "traceId",
    "spanId",
    "startTime",
    "endTime",
    "limit",
    "cursor",
];

impl LogQuery {
    /// Parses the query of `/api/logs`.
    pub fn of_entries(pairs: &Pairs, visibility: Visibility) -> Result<Self, ApiError> {
        refuse_unknown(pairs, &ENTRY_PARAMETERS)?;
        Self::of(log_filter_of(pairs, visibility)?, pairs)
    }

    /// Parses the query of `/observability/logs`.
    pub fn of_records(pairs: &Pairs, visibility: Visibility) -> Result<Self, ApiError> {
        refuse_unknown(pairs, &RECORD_PARAMETERS)?;
        Self::of(record_filter_of(pairs, visibility)?, pairs)
    }

    fn of(filter: LogFilter, pairs: &Pairs) -> Result<Self, ApiError> {
        let before = read(pairs, "cursor", "must be a nextCursor of this list", number_of)?;
        Ok(Self { filter, before, limit: log_limit_of(pairs)? })
    }
}

/// Returns a page of the log, newest last.
pub async fn page(runtime: &Runtime, query: &LogQuery) -> Result<LogPage, ApiError> {
    Ok(runtime.logs(&query.filter, query.before, query.limit).await?)
}

#[cfg(test)]
mod tests {
    use super::*;

    type Read = fn(&Pairs, Visibility) -> Result<LogQuery, ApiError>;

    const READERS: [Read; 2] = [LogQuery::of_entries, LogQuery::of_records];

    #[test]
    fn cursor_and_limit_select_a_page() {
        for read in READERS {
            let query = read(&[], Visibility::Everything).unwrap();
            assert_eq!((query.before, query.limit), (None, 100));
            let pairs = [("cursor", "000000000000000a"), ("limit", "1000")];
            let pairs = pairs.map(|(name, value)| (name.to_owned(), value.to_owned()));
            let query = read(&pairs, Visibility::Nothing).unwrap();
            assert_eq!((query.before, query.limit), (Some(10), 1000));
            assert_eq!(query.filter.visibility, Visibility::Nothing);
        }
    }

    #[test]
    fn wrong_values_are_refused_by_name() {
        let trace = "0AF7651916CD43DD8448EB211C80319C";
        let rows = [
            (READERS[0], "cursor", "a"),
            (READERS[0], "limit", "0"),
            (READERS[0], "level", "loud"),
            (READERS[1], "cursor", "-00000000000000a"),
            (READERS[1], "limit", "1001"),
            (READERS[1], "severityText", "warn"),
            (READERS[1], "traceId", trace),
            (READERS[1], "spanId", "0000000000000000"),
            (READERS[1], "startTime", "now"),
            (READERS[1], "endTime", ""),
        ];
        for (read, name, value) in rows {
            let pairs = [(name.to_owned(), value.to_owned())];
            let refusal = read(&pairs, Visibility::Everything).unwrap_err();
            let start = format!("Invalid query parameter {name}: must ");
            assert!(refusal.to_string().starts_with(&start), "{refusal}");
            assert_eq!(refusal.status(), 400);
        }
    }
}
