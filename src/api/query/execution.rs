//! Queries about one execution.

use super::{Pairs, digits, read, read_limit, refuse_misspelt, refuse_unknown};
use crate::api::error::ApiError;

/// Requested parts of a state.
#[derive(Debug, PartialEq, Eq)]
pub struct StateQuery {
    /// True if the answer has the input, the outputs and the like, which may be large.
    pub with_values: bool,
}

impl StateQuery {
    /// Parses the query. Unknown parameters are ignored, as they always were, but for those that
    /// look misspelt.
    pub fn parse(pairs: &Pairs) -> Result<Self, ApiError> {
        refuse_misspelt(pairs, &["values"])?;
        let with_values = read(pairs, "values", "must be true or false", |text| text.parse().ok())?;
        Ok(Self { with_values: with_values.unwrap_or(true) })
    }
}

/// Requested page of events.
#[derive(Debug, PartialEq, Eq)]
pub struct EventsQuery {
    /// Number of an event, which the page follows.
    pub after: u64,
    pub limit: usize,
}

/// Default number of events of a page.
const EVENTS_DEFAULT: usize = 100;
const EVENTS_MAX: usize = 1_000;

impl EventsQuery {
    /// Parses the query.
    pub fn parse(pairs: &Pairs) -> Result<Self, ApiError> {
        refuse_unknown(pairs, &["after", "limit"])?;
        let after = read(pairs, "after", "must be the number of an event", digits)?;
        let limit = read_limit(pairs, EVENTS_DEFAULT, EVENTS_MAX)?;
        Ok(Self { after: after.unwrap_or(0), limit })
    }
}
