//! Policies of a step: suspension, retry and handling of failures.

use greenroom_actors::domain::definition::{
    EscalateRule, OnError, OnTimeout, RetryPolicy, SuspendRule,
};
use toml::de::DeValue;

use crate::config::asked::Assignment;
use crate::config::entry::{Entry, milliseconds};
use crate::config::section::Section;
use crate::nearest::nearest;

pub(super) fn suspend(section: Section<'_>) -> SuspendRule {
    let deadline = section.get("deadline");
    let on_timeout = section.get("on_timeout");
    match (&deadline, &on_timeout) {
        (None, None) => section.place.warn("has no deadline"),
        (None, Some(entry)) => entry.place.refuse("needs a `deadline` beside it"),
        (Some(_), _) => {}
    }
    let rule = SuspendRule {
        when: section.get("when").and_then(|entry| entry.expression()),
        reason: section.text("reason"),
        payload: section.get("payload").and_then(|entry| entry.mapping()),
        deadline_ms: deadline.and_then(|entry| entry.milliseconds()),
        on_timeout: on_timeout.and_then(|entry| timeout_action(&entry)).unwrap_or_default(),
        to: section.get("to").and_then(|entry| assigned(&entry)).unwrap_or_default(),
        remind_ms: section.get("remind").map(|entry| durations(&entry)).unwrap_or_default(),
        escalate: section.section("escalate").and_then(escalate),
    };
    section.close();
    rule
}

fn durations(entry: &Entry<'_>) -> Vec<u64> {
    let items = entry.items().unwrap_or_default();
    items.iter().filter_map(Entry::milliseconds).collect()
}

fn escalate(section: Section<'_>) -> Option<EscalateRule> {
    let after_ms = section.required("after").and_then(|entry| entry.milliseconds());
    let to = section.required("to").and_then(|entry| assigned(&entry));
    section.close();
    Some(EscalateRule { after_ms: after_ms?, to: to? })
}

fn assigned(entry: &Entry<'_>) -> Option<Vec<String>> {
    Assignment::note(entry);
    entry.texts()
}

fn timeout_action(entry: &Entry<'_>) -> Option<OnTimeout> {
    match entry.value {
        DeValue::String(text) if text == "fail" => Some(OnTimeout::Fail),
        DeValue::Table(_) => {
            let section = entry.section()?;
            let resume = section.required("resume").and_then(|value| value.mapping());
            section.close();
            resume.map(OnTimeout::Resume)
        }
        _ => refuse(entry, "must be \"fail\" or { resume = ... }", &["fail"]),
    }
}

fn refuse<T>(entry: &Entry<'_>, message: &str, words: &[&str]) -> Option<T> {
    let meant = match entry.value {
        DeValue::String(text) => nearest(text, words.iter().copied()),
        _ => None,
    };
    entry.place.findings.report(entry.place.spot().error(message).meant(meant));
    None
}

pub(super) fn on_error(entry: &Entry<'_>) -> Option<OnError> {
    let expected = "must be \"fail\", \"ignore\" or { value = ... }";
    let refused = || refuse(entry, expected, &["fail", "ignore"]);
    match entry.value {
        DeValue::String(text) => match text.as_ref() {
            "fail" => Some(OnError::Fail),
            "ignore" => Some(OnError::Ignore),
            _ => refused(),
        },
        DeValue::Table(_) => {
            let section = entry.section()?;
            let value = section.required("value").and_then(|value| value.mapping());
            section.close();
            value.map(OnError::Value)
        }
        _ => refused(),
    }
}

/// Reads `retry`. A number of attempts alone is refused with the table to write.
pub(super) fn table_of_retry(entry: &Entry<'_>) -> Option<RetryPolicy> {
    if let DeValue::Integer(attempts) = entry.value {
        let table = format!("{{ attempts = {attempts} }}");
        return entry.refuse(format!("must be a table, not an integer: {table}"));
    }
    entry.section().map(retry)
}

fn retry(section: Section<'_>) -> RetryPolicy {
    let default = RetryPolicy::default();
    let pause = |key| section.get(key)?.pause().map(milliseconds);
    let policy = RetryPolicy {
        attempts: section.integer("attempts", 1..=1000, default.attempts),
        delay_ms: pause("delay").unwrap_or(default.delay_ms),
        factor: section
            .get("factor")
            .and_then(|entry| entry.number(1.0..=100.0))
            .unwrap_or(default.factor),
        max_delay_ms: pause("max_delay").or(default.max_delay_ms),
        jitter: section.flag("jitter", default.jitter),
        on: section.get("on").and_then(|entry| entry.expression()),
        never: section.get("never").and_then(|entry| entry.expression()),
    };
    section.close();
    policy
}
