//! Ids of suspensions.

use std::sync::Arc;

use crate::hash::short_hash;
use crate::ids::ExecutionId;

/// Returns the id of the n-th suspension of a node, or of the n-th pause, whose path is empty. If the
/// id of the execution is a UUID v7, it begins with its time, so that neighbours share pages of the
/// store's index of asks.
pub(crate) fn suspension_id(execution: &ExecutionId, path: &str, count: u32) -> Arc<str> {
    let hash = hashed_suspension_id(execution, path, count);
    match creation_of(execution.as_str()) {
        Some((high, low)) => Arc::from(format!("{high}{low}{hash}")),
        None => hash,
    }
}

/// Returns the id of a suspension whose fact has none: older versions recorded no ids.
pub(crate) fn hashed_suspension_id(execution: &ExecutionId, path: &str, count: u32) -> Arc<str> {
    Arc::from(short_hash(&[execution.as_str(), path, "suspension", &count.to_string()]))
}

/// Returns the two parts of the time in a UUID v7: 48 bits, in hex digits. `None` for another id.
fn creation_of(id: &str) -> Option<(&str, &str)> {
    let (high, rest) = id.split_at_checked(8)?;
    let (low, version) = rest.strip_prefix('-')?.split_at_checked(4)?;
    let is_hex = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_time = id.len() == 36 && version.starts_with("-7") && is_hex(high) && is_hex(low);
    is_time.then_some((high, low))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_begin_with_the_time_in_the_id_of_the_execution() {
        let id = |execution: &str, path: &str| {
            suspension_id(&ExecutionId::trusted(execution), path, 1).to_string()
        };
        let timed = "01a22a22-efb6-770f-9c16-ebea1dc0085f";
        assert!(id(timed, "a").starts_with("01a22a22efb6"), "{}", id(timed, "a"));
        assert_ne!(id(timed, "a"), id(timed, "b"));
        let others = [
            "order-7",
            "",
            "ééééééééé",
            "01a22a22-efb6-470f-9c16-ebea1dc0085f",
            "01a22a22-efb6-770f-9c16-ebea1dc0085",
            "01a22a2x-efb6-770f-9c16-ebea1dc0085f",
            "01a22a22-efb6-7",
        ];
        for other in others {
            let execution = ExecutionId::trusted(other);
            assert_eq!(*id(other, "a"), *hashed_suspension_id(&execution, "a", 1), "{other}");
        }
    }
}
