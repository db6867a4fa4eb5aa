//! Periods of outcomes.

use greenroom_actors::domain::time::Timestamp;
use greenroom_actors::runtime::OutcomesRequest;

use super::{DAY_MS, Pairs, digits, read, read_name, refuse_unknown, time_from, time_until};
use crate::api::error::ApiError;

/// Period, and filter of the executions that ended within it.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct OutcomesQuery {
    pub workflow_id: Option<String>,
    pub user_id: Option<String>,
    pub from: Option<Timestamp>,
    pub to: Option<Timestamp>,
    /// Number of parts of the period.
    pub parts: Option<u8>,
}

/// Default number of parts of a period.
pub(crate) const PARTS_DEFAULT: u8 = 24;
pub(crate) const PARTS_MAX: u8 = 200;

impl OutcomesQuery {
    /// Parses the query.
    pub fn parse(pairs: &Pairs) -> Result<Self, ApiError> {
        refuse_unknown(pairs, &["workflowId", "userId", "from", "to", "parts"])?;
        let what = format!("must be a number from 1 to {PARTS_MAX}");
        let parts = |text: &str| digits(text).filter(|parts| (1..=PARTS_MAX).contains(parts));
        Ok(Self {
            workflow_id: read_name(pairs, "workflowId")?,
            user_id: read_name(pairs, "userId")?,
            from: time_from(pairs, "from")?,
            to: time_until(pairs, "to")?,
            parts: read(pairs, "parts", &what, parts)?,
        })
    }

    /// Returns the request for the day before `now`, or for the period of the query. A period
    /// without its end ends `now`; without its begin, it has a day. One that begins at its end or
    /// later is empty, as in lists.
    pub fn request(self, now: Timestamp) -> OutcomesRequest {
        let Self { workflow_id, user_id, from, to, parts } = self;
        let to = to.unwrap_or(now);
        let from = from.unwrap_or_else(|| Timestamp(to.0.saturating_sub(DAY_MS)));
        let parts = parts.unwrap_or(PARTS_DEFAULT).into();
        OutcomesRequest { period: from..to, parts, workflow_id, user_id }
    }
}
