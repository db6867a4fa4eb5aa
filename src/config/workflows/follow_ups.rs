//! Problems of compiled workflows that follow from a key which is there and was refused.

use greenroom_actors::domain::plan::Problem;

use super::places::Places;
use crate::config::source::Findings;

/// Returns true if a problem is about a key that is missing only because its value was refused.
pub(super) fn is_follow_up(problem: &Problem, places: &Places<'_>, findings: &Findings) -> bool {
    let (place, _) = places.workflow();
    let file = &*place.source.file;
    let keys: Vec<_> = problem.place.iter().map(String::as_str).collect();
    let cause = match keys.as_slice() {
        ["compensate_on_cancel"] => {
            return findings.refuses(file, |key| {
                let inside = key.strip_prefix(&*place.path);
                inside.is_some_and(|inside| {
                    inside.starts_with('.') && inside.split('.').any(|part| part == "compensate")
                })
            });
        }
        [.., "suspend", "on_timeout"] => "deadline",
        [.., "suspend", "escalate"] => "to",
        _ => return false,
    };
    let mut keys = problem.place.clone();
    keys.pop();
    keys.push(cause.to_owned());
    let cause_key = places.spot(&keys).key;
    // a key that is not there has the place of the table around it
    cause_key.ends_with(&format!(".{cause}"))
        && findings.refuses(file, |key| {
            let inside = key.strip_prefix(&cause_key);
            inside.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
        })
}
