//! Parsing and validation of query parameters.

mod execution;
mod outcomes;
mod permission;
mod via;

use std::fmt::Display;
use std::str::FromStr;

use greenroom_actors::domain::time::Timestamp;
use greenroom_actors::ports::store::{Cursor, ExecutionFilter, Status};

use crate::api::error::ApiError;
use crate::api::wire::state::list_cursor_of;
use crate::nearest::nearest;

pub use execution::{EventsQuery, StateQuery};
pub use outcomes::OutcomesQuery;
pub(crate) use outcomes::{PARTS_DEFAULT, PARTS_MAX};
pub(crate) use permission::PERMISSIONS_MAX;
pub use permission::{PermissionQuery, Question};

/// Default number of rows of a page.
pub(crate) const LIMIT_DEFAULT: usize = 50;
pub(crate) const LIMIT_MAX: usize = 200;

/// Decoded parameters in their order.
pub type Pairs = [(String, String)];

/// Requested page of executions.
#[derive(Debug)]
pub struct ExecutionQuery {
    pub filter: ExecutionFilter,
    pub after: Option<Cursor>,
    pub limit: usize,
}

const NAMES: [&str; 14] = [
    "status",
    "userId",
    "from",
    "to",
    "endedFrom",
    "endedTo",
    "replayOf",
    "parentExecutionId",
    "idPrefix",
    "error",
    "definitionHash",
    "via",
    "limit",
    "cursor",
];

impl ExecutionQuery {
    /// Parses the query.
    pub fn parse(pairs: &Pairs) -> Result<Self, ApiError> {
        refuse_unknown(pairs, &NAMES)?;
        let filter = filter_of(pairs)?;
        let place = |text: &str| list_cursor_of(text, filter.is_of_ends());
        let after = read(pairs, "cursor", "must be a nextCursor of this list", place)?;
        Ok(Self { filter, after, limit: read_limit(pairs, LIMIT_DEFAULT, LIMIT_MAX)? })
    }
}

/// Parses the filter of a bulk operation: that of lists, and the workflow.
pub fn execution_filter(pairs: &Pairs) -> Result<ExecutionFilter, ApiError> {
    let filters = NAMES.into_iter().filter(|name| !["limit", "cursor"].contains(name));
    let names: Vec<_> = ["workflowId"].into_iter().chain(filters).collect();
    refuse_unknown(pairs, &names)?;
    let workflow_id = read_name(pairs, "workflowId")?;
    Ok(ExecutionFilter { workflow_id, ..filter_of(pairs)? })
}

fn filter_of(pairs: &Pairs) -> Result<ExecutionFilter, ApiError> {
    Ok(ExecutionFilter {
        workflow_id: None,
        status: status(pairs)?,
        user_id: read_name(pairs, "userId")?,
        from: time_from(pairs, "from")?,
        to: time_until(pairs, "to")?,
        ended_from: time_from(pairs, "endedFrom")?,
        ended_to: time_until(pairs, "endedTo")?,
        replay_of: read_name(pairs, "replayOf")?,
        parent_id: read_name(pairs, "parentExecutionId")?,
        id_prefix: read_name(pairs, "idPrefix")?,
        is_exhaustive: false,
        error: read_name(pairs, "error")?,
        definition_hash: read_name(pairs, "definitionHash")?,
        via: via::read(pairs)?,
    })
}

/// Filter of counted executions.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct CountQuery {
    pub workflow_id: Option<String>,
    pub user_id: Option<String>,
}

impl CountQuery {
    /// Parses the query.
    pub fn parse(pairs: &Pairs) -> Result<Self, ApiError> {
        refuse_unknown(pairs, &["workflowId", "userId"])?;
        let workflow_id = read_name(pairs, "workflowId")?;
        Ok(Self { workflow_id, user_id: read_name(pairs, "userId")? })
    }
}

/// Filter of counted versions.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct VersionsQuery {
    pub user_id: Option<String>,
}

impl VersionsQuery {
    /// Parses the query.
    pub fn parse(pairs: &Pairs) -> Result<Self, ApiError> {
        refuse_unknown(pairs, &["userId"])?;
        Ok(Self { user_id: read_name(pairs, "userId")? })
    }
}

/// Names of statuses in other products, for suggestions.
const OTHER_WORDS: [(&str, Status); 12] = [
    ("active", Status::Running),
    ("working", Status::Running),
    ("waiting", Status::Suspended),
    ("paused", Status::Suspended),
    ("pending", Status::Suspended),
    ("done", Status::Completed),
    ("finished", Status::Completed),
    ("succeeded", Status::Completed),
    ("success", Status::Completed),
    ("failed", Status::Error),
    ("failure", Status::Error),
    ("aborted", Status::Cancelled),
];

fn status(pairs: &Pairs) -> Result<Option<Status>, ApiError> {
    const NAME: &str = "status";
    let Some(text) = value_of(pairs, NAME) else { return Ok(None) };
    Status::parse(text).map(Some).ok_or_else(|| {
        let words = Status::ALL.map(Status::as_str);
        let other = OTHER_WORDS.iter().find(|(word, _)| text.eq_ignore_ascii_case(word));
        let meant = other.map(|(_, status)| status.as_str().to_owned());
        let meant = meant.or_else(|| nearest(text, words));
        let meant = meant.map_or_else(String::new, |meant| format!("; did you mean {meant}?"));
        let what = format!("must be one of {}{meant}", words.join(", "));
        ApiError::InvalidQuery { name: NAME.to_owned(), what }
    })
}

/// Length of a day, in milliseconds.
const DAY_MS: i64 = 24 * 3_600_000;

/// Rule for times.
const TIME: &str = "must be an ISO 8601 time, as 2026-11-22T08:15:30Z, or a date, as 2026-11-22";

/// Reads the start of a period; a date means its beginning (UTC).
pub(crate) fn time_from(pairs: &Pairs, name: &str) -> Result<Option<Timestamp>, ApiError> {
    read(pairs, name, TIME, |text| Timestamp::from_iso(text).or_else(|| day_of(text)))
}

/// Reads the end of a period; a date is included (UTC).
pub(crate) fn time_until(pairs: &Pairs, name: &str) -> Result<Option<Timestamp>, ApiError> {
    read(pairs, name, TIME, |text| Timestamp::from_iso(text).or_else(|| end_of_day(text)))
}

/// Parses a date as the end of its day: the beginning of the next one, but for the last one that a
/// time of four digits for the year can name.
fn end_of_day(text: &str) -> Option<Timestamp> {
    let next = day_of(text)?.plus_ms(DAY_MS.unsigned_abs());
    Timestamp::from_iso("9999-12-31T23:59:59.999Z").map(|last| next.min(last))
}

/// Parses a date as the beginning of its day.
fn day_of(text: &str) -> Option<Timestamp> {
    // a longer text is not a date, but could become a valid time with the suffix
    (text.len() == "2026-11-22".len()).then(|| Timestamp::from_iso(&format!("{text}T00:00:00Z")))?
}

/// Reads the position from which a stream continues. The header of a reconnect overrides the query,
/// where `lastEventId` (sent by clients that cannot set headers) overrides `fromSequence`. Invalid
/// numbers are refused in each. Unknown parameters are ignored, since such clients add some; names
/// that look misspelt are refused, since the stream would start over.
pub fn read_position(last_event_id: Option<&str>, pairs: &Pairs) -> Result<u64, ApiError> {
    let what = "must be the number of an event";
    const NAMES: [&str; 2] = ["lastEventId", "fromSequence"];
    refuse_misspelt(pairs, &NAMES)?;
    let [reconnect, opened] = NAMES.map(|name| read(pairs, name, what, digits));
    let in_address = reconnect?.or(opened?).unwrap_or(0);
    let Some(text) = last_event_id else { return Ok(in_address) };
    let refusal = || ApiError::InvalidHeader { name: "Last-Event-ID", what: what.to_owned() };
    digits(text).ok_or_else(refusal)
}

/// Refuses unknown and repeated parameters: ignoring a filter would show too much.
pub(crate) fn refuse_unknown(pairs: &Pairs, known: &[&str]) -> Result<(), ApiError> {
    refuse_misnamed(pairs, known)?;
    let repeated = pairs
        .iter()
        .enumerate()
        .find(|(place, (name, _))| pairs.iter().take(*place).any(|(before, _)| before == name));
    repeated.map_or(Ok(()), |(_, (name, _))| {
        let what = "is given more than once".to_owned();
        Err(ApiError::InvalidQuery { name: name.clone(), what })
    })
}

/// Refuses only names that look misspelt, for routes whose clients add parameters of their own.
pub(crate) fn refuse_misspelt(pairs: &Pairs, known: &[&str]) -> Result<(), ApiError> {
    let is_similar = |name: &str| nearest(name, known.iter().copied()).is_some();
    let similar = pairs.iter().filter(|(name, _)| is_similar(name)).cloned();
    refuse_misnamed(&similar.collect::<Vec<_>>(), known)
}

/// Refuses unknown names, with a suggestion.
fn refuse_misnamed(pairs: &Pairs, known: &[&str]) -> Result<(), ApiError> {
    let Some((name, _)) = pairs.iter().find(|(name, _)| !known.contains(&name.as_str())) else {
        return Ok(());
    };
    let what = match nearest(name, known.iter().copied()) {
        Some(meant) => format!("unknown; did you mean {meant}?"),
        None => format!("unknown; known parameters: {}", known.join(", ")),
    };
    Err(ApiError::InvalidQuery { name: name.clone(), what })
}

/// Returns the value of a parameter; the last one if it is repeated.
pub fn value_of<'a>(pairs: &'a Pairs, name: &str) -> Option<&'a str> {
    pairs.iter().rfind(|(key, _)| key == name).map(|(_, value)| value.as_str())
}

/// Parses a parameter; `what` is the rule for the refusal.
pub(crate) fn read<T>(
    pairs: &Pairs,
    name: &str,
    what: &str,
    parse: impl FnOnce(&str) -> Option<T>,
) -> Result<Option<T>, ApiError> {
    let Some(text) = value_of(pairs, name) else { return Ok(None) };
    let refusal = || ApiError::InvalidQuery { name: name.to_owned(), what: what.to_owned() };
    parse(text).map(Some).ok_or_else(refusal)
}

/// Reads a name, which must not be empty.
pub(crate) fn read_name(pairs: &Pairs, name: &str) -> Result<Option<String>, ApiError> {
    read(pairs, name, "must not be empty", |text| (!text.is_empty()).then(|| text.to_owned()))
}

/// Reads `limit`, the maximum number of rows of a page.
pub(crate) fn read_limit<T>(pairs: &Pairs, default: T, max: T) -> Result<T, ApiError>
where
    T: Display + From<u8> + FromStr + PartialOrd,
{
    let what = format!("must be a number from 1 to {max}");
    let is_valid = |limit: &T| (T::from(1)..=max).contains(limit);
    Ok(read(pairs, "limit", &what, |text| digits(text).filter(is_valid))?.unwrap_or(default))
}

/// Parses a number without sign or spaces.
pub(super) fn digits<T: FromStr>(text: &str) -> Option<T> {
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    text.parse().ok()
}

/// Asserts that each parameter (name, value) is refused with a text that starts so.
#[cfg(test)]
pub(super) fn assert_refused<T: std::fmt::Debug>(
    rows: &[(&str, &str)],
    start: &str,
    parse: impl Fn(&str, &str) -> Result<T, ApiError>,
) {
    for (name, value) in rows {
        let refusal = parse(name, value).unwrap_err();
        let start = format!("Invalid query parameter {name}: {start}");
        assert!(refusal.to_string().starts_with(&start), "{name}={value}: {refusal}");
        assert_eq!(refusal.status(), 400);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(list: &[(&str, &str)]) -> Vec<(String, String)> {
        list.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn a_query_has_defaults() {
        let query = ExecutionQuery::parse(&[]).unwrap();
        assert_eq!((query.limit, query.after, query.filter.status), (50, None, None));
        let pairs =
            pairs(&[("status", "error"), ("limit", "200"), ("from", "2023-11-14T22:13:20Z")]);
        let query = ExecutionQuery::parse(&pairs).unwrap();
        assert_eq!((query.limit, query.filter.status), (200, Some(Status::Error)));
        assert_eq!(query.filter.from, Some(Timestamp(1_700_000_000_000)));
    }

    #[test]
    fn unknown_parameters_are_refused_with_the_nearest() {
        let list = "known parameters: status, userId, from, to, endedFrom, endedTo, replayOf, \
                    parentExecutionId, idPrefix, error, definitionHash, via, limit, cursor";
        let rows = [
            ("stauts", "did you mean status?"),
            ("user_id", "did you mean userId?"),
            ("Limit", "did you mean limit?"),
            ("sort", list),
            ("", list),
        ];
        for (name, what) in rows {
            let error = ExecutionQuery::parse(&pairs(&[("limit", "5"), (name, "x")])).unwrap_err();
            assert_eq!(
                error.to_string(),
                format!("Invalid query parameter {name}: unknown; {what}")
            );
        }
    }

    #[test]
    fn a_parameter_that_is_given_twice_is_refused() {
        let twice = pairs(&[("status", "error"), ("limit", "5"), ("status", "cancelled")]);
        let refusal = ExecutionQuery::parse(&twice).unwrap_err();
        assert_eq!(refusal.to_string(), "Invalid query parameter status: is given more than once");
        // Reconnecting clients append their position to an address that has one.
        let again = pairs(&[("lastEventId", "3"), ("lastEventId", "5")]);
        assert_eq!(read_position(None, &again), Ok(5));
    }

    #[test]
    fn wrong_values_are_refused_by_name() {
        let rows = [
            ("status", "done"),
            ("limit", "0"),
            ("limit", "201"),
            ("limit", "+5"),
            ("limit", "ten"),
            ("from", "yesterday"),
            ("to", ""),
            ("endedFrom", "today"),
            ("endedTo", "1"),
            ("replayOf", ""),
            ("parentExecutionId", ""),
            ("idPrefix", ""),
            ("error", ""),
            ("definitionHash", ""),
            ("via", ""),
            ("cursor", "zz"),
            ("userId", ""),
        ];
        for (name, value) in rows {
            let error = ExecutionQuery::parse(&pairs(&[(name, value)])).unwrap_err();
            let text = error.to_string();
            assert!(text.starts_with(&format!("Invalid query parameter {name}: ")), "{text}");
            assert_eq!(error.status(), 400);
        }
    }

    #[test]
    fn an_unknown_status_is_refused_with_the_known_ones() {
        let rows = [
            ("failed", "; did you mean error?"),
            ("Canceled", "; did you mean cancelled?"),
            ("suspend", "; did you mean suspended?"),
            ("purple", ""),
            ("", ""),
        ];
        for (value, meant) in rows {
            let error = ExecutionQuery::parse(&pairs(&[("status", value)])).unwrap_err();
            let expected = format!(
                "Invalid query parameter status: must be one of running, suspended, completed, \
                 error, cancelled{meant}"
            );
            assert_eq!(error.to_string(), expected);
        }
    }

    #[test]
    fn a_cursor_is_valid_only_for_the_list_it_came_from() {
        let of_starts = "0".repeat(31) + "1";
        let of_ends = format!("e{of_starts}");
        let query = |cursor: &str, ends: bool| {
            let ends = ends.then_some(("endedTo", "2023-11-14"));
            let all: Vec<_> = [("cursor", cursor)].into_iter().chain(ends).collect();
            ExecutionQuery::parse(&pairs(&all)).map(|query| query.after)
        };
        let place = Some(Cursor { at: Timestamp(0), row: 1 });
        assert_eq!((query(&of_starts, false), query(&of_ends, true)), (Ok(place), Ok(place)));
        for (cursor, ends) in [(of_starts, true), (of_ends, false)] {
            let refusal = query(&cursor, ends).unwrap_err().to_string();
            assert!(refusal.ends_with("must be a nextCursor of this list"), "{refusal}");
        }
    }

    #[test]
    fn a_date_means_the_whole_day() {
        let query = |from, to| ExecutionQuery::parse(&pairs(&[("from", from), ("to", to)]));
        let day = query("2023-11-14", "2023-11-14").unwrap().filter;
        assert_eq!(day.from, Timestamp::from_iso("2023-11-14T00:00:00Z"));
        assert_eq!(day.to, Timestamp::from_iso("2023-11-15T00:00:00Z"), "the whole day");
        let last = query("2023-11-14", "9999-12-31").unwrap().filter;
        assert_eq!(last.to, Timestamp::from_iso("9999-12-31T23:59:59.999Z"), "the last day");
        let exact = query("2023-11-14T00:00:00+01:00", "2023-11-14T12:00:00Z").unwrap().filter;
        assert_eq!(exact.from, Timestamp::from_iso("2023-11-13T23:00:00Z"));
        assert_eq!(exact.to, Timestamp::from_iso("2023-11-14T12:00:00Z"));
        for bad in ["2023-11-31", "14.11.2023", "2023-1-14", "2023-11", "20231114"] {
            assert!(query(bad, "2023-11-14").is_err(), "{bad}");
            assert!(query("2023-11-14", bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn the_header_of_a_reconnect_overrides_the_query() {
        let address = pairs(&[("fromSequence", "2")]);
        assert_eq!(read_position(Some("7"), &address), Ok(7));
        assert_eq!(read_position(None, &address), Ok(2));
        assert_eq!(read_position(None, &[]), Ok(0));
        let polyfill = pairs(&[("fromSequence", "2"), ("lastEventId", "5"), ("_", "17321")]);
        assert_eq!(read_position(None, &polyfill), Ok(5));
        assert_eq!(read_position(Some("7"), &polyfill), Ok(7));
        for (misspelt, meant) in [("fromSeqence", "fromSequence"), ("last_event_id", "lastEventId")]
        {
            let error = read_position(Some("7"), &pairs(&[(misspelt, "2")])).unwrap_err();
            let expected = format!("{misspelt}: unknown; did you mean {meant}?");
            assert!(error.to_string().ends_with(&expected), "{error}");
        }
        for bad in ["", "-1", "x", "99999999999999999999"] {
            assert!(read_position(Some(bad), &[]).is_err(), "{bad:?} was accepted");
            let address = pairs(&[("fromSequence", bad)]);
            assert!(read_position(None, &address).is_err(), "{bad:?} was accepted");
            assert!(read_position(Some("7"), &address).is_err(), "{bad:?} was accepted");
            let address = pairs(&[("lastEventId", bad), ("fromSequence", "1")]);
            assert!(read_position(None, &address).is_err(), "{bad:?} was accepted");
        }
    }
}
