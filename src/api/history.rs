//! Use case of the history of an agent.

use greenroom_actors::Runtime;
use greenroom_actors::agent::AgentDefinition;
use greenroom_actors::ports::store::GenerationPage;

use crate::api::caller::Caller;
use crate::api::error::ApiError;
use crate::api::query::{Pairs, digits, read, read_limit, refuse_unknown};

/// Default number of entries of a page.
const LIMIT_DEFAULT: u32 = 10;
const LIMIT_MAX: u32 = 100;

/// Requested page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HistoryQuery {
    /// Starts at 0.
    pub page: u32,
    pub limit: u32,
}

impl HistoryQuery {
    /// Parses the query.
    pub fn parse(pairs: &Pairs) -> Result<Self, ApiError> {
        refuse_unknown(pairs, &["page", "limit"])?;
        let page = read(pairs, "page", "must be a number of at least 0", digits)?;
        let limit = read_limit(pairs, LIMIT_DEFAULT, LIMIT_MAX)?;
        Ok(Self { page: page.unwrap_or(0), limit })
    }
}

/// Returns a page of the generations of an agent that the caller sees, newest first.
pub async fn page(
    runtime: &Runtime,
    agent: &AgentDefinition,
    query: HistoryQuery,
    caller: &Caller,
) -> Result<GenerationPage, ApiError> {
    let HistoryQuery { page, limit } = query;
    let offset = u64::from(page) * u64::from(limit);
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    Ok(runtime.history(&agent.id, &caller.visibility(), offset, limit).await?)
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
        assert_eq!(HistoryQuery::parse(&[]), Ok(HistoryQuery { page: 0, limit: 10 }));
        assert_eq!(parse("page", "3"), Ok(HistoryQuery { page: 3, limit: 10 }));
        assert_eq!(parse("limit", "100"), Ok(HistoryQuery { page: 0, limit: 100 }));
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
}
