//! Use case of the history of an agent.

use greenroom_actors::Runtime;
use greenroom_actors::agent::AgentDefinition;
use greenroom_actors::ports::store::{GenerationPage, PageTooLarge, ReadError};

use crate::api::caller::Caller;
use crate::api::error::ApiError;
use crate::api::query::{Pairs, digits, read, read_limit, refuse_unknown, value_of};

/// Default number of entries of a page.
const LIMIT_DEFAULT: u32 = 10;
const LIMIT_MAX: u32 = 100;

/// Requested page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HistoryQuery {
    /// Starts at 0.
    pub page: u32,
    pub limit: u32,
    /// The client names no limit.
    pub takes_any_limit: bool,
}

impl HistoryQuery {
    /// Parses the query.
    pub fn parse(pairs: &Pairs) -> Result<Self, ApiError> {
        refuse_unknown(pairs, &["page", "limit"])?;
        let page = read(pairs, "page", "must be a number of at least 0", digits)?;
        let limit = read_limit(pairs, LIMIT_DEFAULT, LIMIT_MAX)?;
        let takes_any_limit = value_of(pairs, "limit").is_none();
        Ok(Self { page: page.unwrap_or(0), limit, takes_any_limit })
    }
}

/// Returns a page of the generations of an agent that the caller sees, newest first, with its limit.
/// Without a limit, the first page has as many as fit, and pages behind a shorter one are refused.
pub async fn page(
    runtime: &Runtime,
    agent: &AgentDefinition,
    query: HistoryQuery,
    caller: &Caller,
) -> Result<(GenerationPage, u32), ApiError> {
    let HistoryQuery { page, limit, takes_any_limit } = query;
    let visibility = caller.visibility();
    let offset = u64::from(page) * u64::from(limit);
    let read = async |offset: u64, limit: u32| {
        let records = usize::try_from(limit).unwrap_or(usize::MAX);
        runtime.history(&agent.id, &visibility, offset, records).await
    };
    if page > 0
        && takes_any_limit
        && let Err(ReadError::TooLarge(PageTooLarge { fits })) = read(0, limit).await
    {
        // this page would not begin where the first one ended
        let what = format!(
            "must be named behind the first page, which has {fits} of {limit} records: more have too \
             many bytes for one page"
        );
        return Err(ApiError::InvalidQuery { name: "limit".to_owned(), what });
    }
    match read(offset, limit).await {
        Err(ReadError::TooLarge(PageTooLarge { fits })) => {
            let (smaller, place) = page_at(offset, fits);
            match (page, takes_any_limit) {
                (0, true) => Ok((read(offset, smaller).await?, smaller)),
                (0, false) => Err(ApiError::page_too_large(fits)),
                (_, _) => {
                    let what = format!(
                        "must be at most {smaller} here, with page={place}: the records have too \
                         many bytes for one page"
                    );
                    Err(ApiError::InvalidQuery { name: "limit".to_owned(), what })
                }
            }
        }
        found => Ok((found?, limit)),
    }
}

/// Returns the largest limit, up to `fits`, whose pages begin at an offset as well, and the number of
/// the one that does.
fn page_at(offset: u64, fits: usize) -> (u32, u64) {
    let fits = u32::try_from(fits).unwrap_or(LIMIT_MAX).clamp(1, LIMIT_MAX);
    let begins = |limit: &u32| offset.is_multiple_of(u64::from(*limit));
    let limit = (1..=fits).rev().find(begins).unwrap_or(1);
    (limit, offset / u64::from(limit))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::query::assert_refused;

    fn parse(name: &str, value: &str) -> Result<HistoryQuery, ApiError> {
        HistoryQuery::parse(&[(name.to_owned(), value.to_owned())])
    }

    #[test]
    fn page_and_limit_are_validated() {
        let query = |page, limit, takes_any_limit| HistoryQuery { page, limit, takes_any_limit };
        assert_eq!(HistoryQuery::parse(&[]), Ok(query(0, 10, true)));
        assert_eq!(parse("page", "3"), Ok(query(3, 10, true)));
        assert_eq!(parse("limit", "100"), Ok(query(0, 100, false)));
        let rows = [
            ("page", "-1"),
            ("page", "one"),
            ("page", ""),
            ("page", "4294967296"),
            ("limit", "0"),
            ("limit", "101"),
            ("limit", "1.5"),
        ];
        assert_refused(&rows, "must be a number ", parse);
    }

    #[test]
    fn smaller_pages_begin_at_the_same_place() {
        for (offset, fits, expected) in [
            (0, 3, (3, 0)),
            (125, 3, (1, 125)),
            (125, 7, (5, 25)),
            (20, 6, (5, 4)),
            (20, 4, (4, 5)),
            (20, 200, (20, 1)),
            (u64::from(u32::MAX) * 100, 100, (100, u64::from(u32::MAX))),
        ] {
            assert_eq!(page_at(offset, fits), expected, "{fits} from {offset} on");
        }
    }
}
