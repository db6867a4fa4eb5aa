//! Ids, deadlines and texts of asks.

use std::sync::Arc;
use std::time::Duration;

use crate::agent::ask::OnTimeout;
use crate::domain::hash::long_hash;
use crate::domain::time::Timestamp;
use crate::ports::store::ASK_PREFIX;

use super::{CallAnswer, DecidedBy};

/// Returns what the model reads about a refusal. One to repeat a call does not undo the attempt
/// before. The text stays in the turn and in conversations, so it does not name the user, who may be
/// forgotten; the answer of the ask does.
pub(super) fn refusal(is_repetition: bool, by: DecidedBy, reason: Option<&str>) -> String {
    let what = match is_repetition {
        true => {
            "a restart interrupted the call, which may or may not have had its effect; to repeat \
                 it was refused"
        }
        false => "refused",
    };
    let by = match by {
        DecidedBy::Person => " by a person",
        DecidedBy::Deadline => "",
    };
    match reason.map(str::trim).filter(|reason| !reason.is_empty()) {
        Some(reason) => format!("{what}{by}: {reason}"),
        None => format!("{what}{by}"),
    }
}

/// Returns the id of an ask: the same if the turn is repeated after a crash, another one for each
/// question of a call, and for a run that began anew under the id of one that had ended.
pub(in crate::agent::generation) fn ask_id(
    (generation_id, began): (&str, Timestamp),
    turn: usize,
    number: usize,
    ask: usize,
) -> Arc<str> {
    let place = [turn, number, ask].map(|place| place.to_string());
    let began = began.0.to_string();
    let hash = long_hash(&[generation_id, &began, &place[0], &place[1], &place[2]]);
    Arc::from(format!("{ASK_PREFIX}{hash}"))
}

/// Returns the answer that counts once the deadline has passed.
pub(crate) fn answer_of_timeout(on_timeout: OnTimeout) -> CallAnswer {
    match on_timeout {
        OnTimeout::Approve => CallAnswer::Approved { by: DecidedBy::Deadline, input: None },
        OnTimeout::Refuse => {
            let reason = Some("it was not answered in time".to_owned());
            CallAnswer::Refused { by: DecidedBy::Deadline, reason }
        }
    }
}

/// Returns the time at which an ask expires.
pub(in crate::agent::generation) fn deadline_of(
    opened_at: Timestamp,
    after: Option<Duration>,
) -> Option<Timestamp> {
    let after = i64::try_from(after?.as_millis()).unwrap_or(i64::MAX);
    Some(Timestamp(opened_at.0.saturating_add(after)))
}
