//! Runs of a case that are killed at each point.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::case::{Case, Outcome};
use super::expectation::shown;
use super::mock::MockCall;
use super::play::Played;
use super::world::ID;
use crate::Greenroom;
use crate::greenroom::error::Problems;

/// Problems of killed runs after which no further one is made: the rest is probably the same.
const PROBLEMS_MAX: usize = 5;

/// Least number of digits of an id that the world's clock makes.
const ID_DIGITS: usize = 4;

/// Numbers of digits of the hashes in ids.
const HASH_DIGITS: [usize; 2] = [16, 32];

/// A call of a mock, and whether it may be repeated.
type Call = (MockCall, bool);

/// Calls of one mock with one key.
#[derive(Debug, Default)]
struct Effect {
    inputs: Vec<Arc<Value>>,
    is_repeatable: bool,
}

/// By name and key.
type Effects = BTreeMap<(String, String), Effect>;

/// Repeats a case once for each change of the store, killed instead of the next one, and compares
/// each run with the one that was not killed. Returns the number of runs.
pub(super) async fn everywhere(
    case: &Case,
    server: &impl Fn() -> Greenroom,
    plain: &Played,
) -> Result<u64, Problems> {
    let mut problems = Vec::new();
    for change in 0..plain.changes {
        let found = match case.run_once(server, Some(change)).await {
            Ok((_, played)) => differences(plain, &played),
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

fn effects(calls: &[Call]) -> Effects {
    let mut effects = Effects::new();
    for (call, is_repeatable) in calls {
        let effect = effects.entry((call.name.to_string(), call.key.clone())).or_default();
        effect.is_repeatable = *is_repeatable;
        effect.inputs.push(Arc::clone(&call.input));
    }
    effects
}

/// Returns how a killed run differs from the plain one.
fn differences(plain: &Played, played: &Played) -> Vec<String> {
    let mut differences = Vec::new();
    let (before, after) = (plain.outcome(), played.outcome());
    let (error, result) = (
        |outcome: &Outcome| outcome.error.as_deref().map(with_ids_renamed),
        |outcome: &Outcome| with_ids_renamed(&outcome.result.to_string()),
    );
    if before.status != after.status || error(&before) != error(&after) {
        let end = after.error.as_deref().unwrap_or_else(|| after.status.as_str());
        let usual = before.error.as_deref().unwrap_or_else(|| before.status.as_str());
        differences.push(format!("it ends with {end}, otherwise with {usual}"));
    } else if result(&before) != result(&after) {
        differences.push(format!(
            "its result is {}, otherwise {}",
            shown(&after.result),
            shown(&before.result)
        ));
    }
    differences.extend(called_again(&plain.calls, &played.calls));
    differences
}

/// Returns a text with the ids of the world's clock numbered as they occur: a child that a crash has
/// forgotten before it began has another id, which its errors and keys name.
fn with_ids_renamed(text: &str) -> String {
    let (mut renamed, mut known, mut rest) = (String::new(), Vec::new(), text);
    while let Some((before, from)) = rest.find(ID).map(|at| rest.split_at(at)) {
        let digits = from[ID.len()..].bytes().take_while(u8::is_ascii_digit).count();
        let (id, after) = from.split_at(ID.len() + digits);
        renamed.push_str(before);
        if digits < ID_DIGITS {
            renamed.push_str(id);
        } else {
            let place = known.iter().position(|other| *other == id).unwrap_or_else(|| {
                known.push(id);
                known.len() - 1
            });
            renamed.push_str(&format!("<id {place}>"));
        }
        rest = after;
    }
    renamed + rest
}

/// Returns a key without what differs where a child has another id: ids, and hashes, which generations
/// of agents and calls of models are named by.
fn form_of(key: &str) -> String {
    let named = with_ids_renamed(key);
    let (mut form, mut rest) = (String::new(), named.as_str());
    while let Some(first) = rest.chars().next() {
        let digits = rest.bytes().take_while(|it| matches!(it, b'0'..=b'9' | b'a'..=b'f')).count();
        let (run, after) = rest.split_at(digits.max(first.len_utf8()));
        form.push_str(if HASH_DIGITS.contains(&digits) { "<hash>" } else { run });
        rest = after;
    }
    form
}

/// Returns the mocks that act more often after a kill than without one, or for other keys.
fn called_again(plain: &[Call], played: &[Call]) -> Vec<String> {
    let (expected, actual) = (effects(plain), effects(played));
    let keys = |effects: &Effects, of: &str, form: Option<&str>| {
        let is_one = |key: &str| form.is_none_or(|form| form_of(key) == form);
        effects.keys().filter(|(name, key)| name == of && is_one(key)).count()
    };
    let mut problems = Vec::new();
    for ((name, key), Effect { inputs, is_repeatable }) in &actual {
        let known = expected.get(&(name.clone(), key.clone()));
        let (after, before) = (keys(&actual, name, None), keys(&expected, name, None));
        // looks at the forms of all keys, and so only for a new one
        let is_other = || {
            let form = form_of(key);
            keys(&actual, name, Some(&form)) > keys(&expected, name, Some(&form))
        };
        match known {
            None if after > before => problems.push(format!(
                "{name} is called with {after} keys, among them {key}, without a crash with \
                 {before}: one that recognizes keys acts too often"
            )),
            // a child that a crash has forgotten before it began has another id, and so another key of
            // the same form
            None if is_other() => problems.push(format!(
                "{name} is called with the key {key}, without a crash never: one that recognizes keys \
                 takes it for another call"
            )),
            None if !is_repeatable => {
                if let Some((before, after)) = repeated(name, inputs, plain, played) {
                    problems.push(format!(
                        "{name} is called {after} times, also with the key {key}, without a crash \
                         {before}: it does not recognize keys, and acts again"
                    ));
                }
            }
            None => {}
            Some(usual) if !is_repeatable && inputs.len() > usual.inputs.len() => {
                problems.push(format!(
                    "{name} is called {} times with the key {key}, without a crash {}: it does not \
                     recognize keys, and acts again",
                    inputs.len(),
                    usual.inputs.len()
                ));
            }
            Some(_) => {}
        }
    }
    problems
}

/// Returns how often a mock that does not recognize keys is called before and after a kill, if that is
/// more often: with one of these inputs, which stay the same where keys do not, or with any.
fn repeated(
    name: &str,
    inputs: &[Arc<Value>],
    plain: &[Call],
    played: &[Call],
) -> Option<(usize, usize)> {
    let count = |calls: &[Call], input: Option<&Arc<Value>>| {
        let is_one = |(call, is_repeatable): &&Call| {
            *call.name == *name && !is_repeatable && input.is_none_or(|input| call.input == *input)
        };
        calls.iter().filter(is_one).count()
    };
    let counts = |input| (count(plain, input), count(played, input));
    let of_one = inputs.iter().map(|input| counts(Some(input)));
    let mut of_one = of_one.filter(|(before, _)| *before > 0);
    let more = |(before, after): &(usize, usize)| after > before;
    of_one.find(more).or_else(|| Some(counts(None)).filter(more))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Returns calls of an unrepeatable mock, each with its key and input.
    fn calls(calls: &[(&str, u32)]) -> Vec<Call> {
        let call = |(key, input): &(&str, u32)| {
            let (key, input) = ((*key).to_owned(), Arc::new(json!(input)));
            (MockCall { name: Arc::from("pay"), key, attempt: 1, input }, false)
        };
        calls.iter().map(call).collect()
    }

    #[test]
    fn ids_count_by_their_order() {
        for (text, expected) in [
            ("", ""),
            ("closed (execution test-id-0002)", "closed (execution <id 0>)"),
            ("test-id-0007/a, test-id-0003/b, test-id-0007/c", "<id 0>/a, <id 1>/b, <id 0>/c"),
            ("test-id-12345", "<id 0>"),
            ("test-id-12, test-id-é, test-id-", "test-id-12, test-id-é, test-id-"),
            ("paid-1000, id-2000", "paid-1000, id-2000"),
        ] {
            assert_eq!(with_ids_renamed(text), expected);
        }
    }

    #[test]
    fn a_key_in_place_of_another_one_is_found() {
        let plain = calls(&[("test-id-0001/c1", 1), ("test-id-0001/c2", 2)]);
        let wrong = called_again(&plain, &calls(&[("test-id-0001/c1", 1), ("test-id-0001/c3", 2)]));
        let said = "pay is called with the key test-id-0001/c3, without a crash never: one that recognizes \
                    keys takes it for another call";
        assert_eq!(wrong, [said]);
        // the second call was never made
        assert_eq!(called_again(&plain, &calls(&[("test-id-0001/c1", 1)])), [""; 0]);
    }

    #[test]
    fn a_call_that_is_made_again_is_found_whatever_its_key() {
        type Calls = &'static [(&'static str, u32)];
        let again = |text: &str| {
            format!("pay is called {text}: it does not recognize keys, and acts again")
        };
        let rows: [(Calls, Calls, Vec<String>); 8] = [
            (&[("a", 1)], &[("a", 1)], vec![]),
            // another id and no more: a child that was forgotten before it began
            (&[("a", 1), ("test-id-0001/a", 2)], &[("a", 1), ("test-id-0002/a", 2)], vec![]),
            (
                &[("test-id-0001", 1), ("test-id-0001", 1)],
                &[("test-id-0002", 1), ("test-id-0002", 1)],
                vec![],
            ),
            (
                &[("step:0123456789abcdef/c1", 1)],
                &[("step:00000000000000000000000000000000/c1", 1)],
                vec![],
            ),
            (
                &[("a", 1)],
                &[("a", 1), ("a", 1)],
                vec![again("2 times with the key a, without a crash 1")],
            ),
            // one call was made under its key and again under another, a second one never
            (
                &[("test-id-0001", 1), ("test-id-0002", 2)],
                &[("test-id-0001", 1), ("test-id-0003", 1)],
                vec![again("2 times, also with the key test-id-0003, without a crash 1")],
            ),
            (
                &[("test-id-0001", 1)],
                &[("test-id-0002", 1), ("test-id-0002", 1)],
                vec![again("2 times, also with the key test-id-0002, without a crash 1")],
            ),
            (
                &[("test-id-0001", 1)],
                &[("test-id-0002", 2), ("test-id-0002", 3)],
                vec![again("2 times, also with the key test-id-0002, without a crash 1")],
            ),
        ];
        for (plain, played, expected) in rows {
            assert_eq!(called_again(&calls(plain), &calls(played)), expected, "{played:?}");
        }
        let more = called_again(&calls(&[("a", 1)]), &calls(&[("a", 1), ("b", 1)]));
        assert!(more[0].contains("with 2 keys, among them b"), "{more:?}");
        let mut repeatable = calls(&[("test-id-0002", 1), ("test-id-0002", 1)]);
        repeatable.iter_mut().for_each(|(_, is_repeatable)| *is_repeatable = true);
        assert_eq!(called_again(&calls(&[("test-id-0001", 1)]), &repeatable), [""; 0]);
    }
}
