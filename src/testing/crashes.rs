//! Runs of a case that are killed at each point.

use std::collections::BTreeMap;

use super::case::Case;
use super::expectation::shown;
use super::mock::MockCall;
use super::play::Played;
use crate::Greenroom;
use crate::greenroom::Problems;

/// Problems of killed runs after which no further one is made: the rest is probably the same.
const PROBLEMS_MAX: usize = 5;

/// Calls of one mock with one key.
#[derive(Debug, Default)]
struct Effect {
    attempts: Vec<u32>,
    is_repeatable: bool,
}

type Effects = BTreeMap<(String, String), Effect>;

/// Repeats a case once for each change of the store, killed instead of the next one, and compares
/// each run with the one that was not killed. Returns the number of runs.
pub(super) async fn everywhere(
    case: &Case,
    server: &impl Fn() -> Greenroom,
    plain: &Played,
) -> Result<u64, Problems> {
    let expected = effects(&plain.calls);
    let mut problems = Vec::new();
    for change in 0..plain.changes {
        let found = match case.run_once(server, Some(change)).await {
            Ok((_, played)) => differences(plain, &expected, &played),
            Err(Problems(problems)) => problems,
        };
        let place = format!("killed before change {} of {}", change + 1, plain.changes);
        problems.extend(found.into_iter().map(|problem| format!("{place}: {problem}")));
        if problems.len() >= PROBLEMS_MAX {
            break;
        }
    }
    if problems.is_empty() { Ok(plain.changes) } else { Err(Problems(problems)) }
}

fn effects(calls: &[(MockCall, bool)]) -> Effects {
    let mut effects = Effects::new();
    for (call, is_repeatable) in calls {
        let effect = effects.entry((call.name.to_string(), call.key.clone())).or_default();
        effect.is_repeatable = *is_repeatable;
        effect.attempts.push(call.attempt);
    }
    effects
}

/// Returns how a killed run differs from the plain one.
fn differences(plain: &Played, expected: &Effects, played: &Played) -> Vec<String> {
    let mut differences = Vec::new();
    let (before, after) = (plain.outcome(), played.outcome());
    if before.status != after.status || before.error != after.error {
        let end = after.error.as_deref().unwrap_or_else(|| after.status.as_str());
        let usual = before.error.as_deref().unwrap_or_else(|| before.status.as_str());
        differences.push(format!("it ends with {end}, otherwise with {usual}"));
    } else if before.result != after.result {
        differences.push(format!(
            "its result is {}, otherwise {}",
            shown(&after.result),
            shown(&before.result)
        ));
    }
    let actual = effects(&played.calls);
    let keys = |effects: &Effects, of: &str| effects.keys().filter(|(name, _)| name == of).count();
    for ((name, key), Effect { attempts, is_repeatable }) in &actual {
        let usual = expected.get(&(name.clone(), key.clone()));
        match usual {
            // a child that a crash has forgotten before it began has another id, and so other keys
            None if keys(&actual, name) > keys(expected, name) => differences.push(format!(
                "{name} is called with {} keys, among them {key}, without a crash with {}: one \
                 that recognizes keys acts too often",
                keys(&actual, name),
                keys(expected, name)
            )),
            None => {}
            Some(usual) if !is_repeatable && attempts.len() > usual.attempts.len() => {
                differences.push(format!(
                    "{name} is called {} times with the key {key}, without a crash {}: it does not \
                     recognize keys, and acts again",
                    attempts.len(),
                    usual.attempts.len()
                ));
            }
            Some(_) => {}
        }
    }
    differences
}
