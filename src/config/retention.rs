//! `[retention]`, and `retention` of a workflow: storage time of ended executions and generations.

use std::time::Duration;

use greenroom_actors::RetentionRules;

use super::entry::Entry;
use super::keys::{Keys as _, Takes, Value as _, section};
use super::section::Section;

section! {
    impl RetentionRules {
        /// Time that executions are stored after their end, for workflows without `retention`; at
        /// least `limits.idempotency_ttl`.
        executions: executions, Takes::DurationOrForever;
        /// Time that the history of generations is stored.
        generations: generations, Takes::DurationOrForever;
        /// Interval between searches for expired executions and generations.
        every: every, Takes::Duration;
        /// Executions or generations that are examined and deleted at once.
        batch: batch, Takes::Integer(1..=10_000);
    }
}

/// Reads the section; the rules of workflows are read with the workflows.
pub(super) fn read(section: Section<'_>, idempotency_ttl: Duration) -> RetentionRules {
    section.misplaced("logs", "is set with `retention` under [logs]");
    let rules = RetentionRules::read_keys(&section);
    if let Some(entry) = section.get("executions") {
        warn_if_short(&entry, rules.executions, idempotency_ttl);
    }
    section.close();
    rules
}

/// Reads the retention of a workflow: a duration, or `None` for `"forever"`.
#[expect(clippy::option_option, reason = "outer: refused; inner: forever")]
pub(super) fn read_of_workflow(
    entry: &Entry<'_>,
    idempotency_ttl: Duration,
) -> Option<Option<Duration>> {
    let keep = Option::read(entry, &Takes::DurationOrForever)?;
    warn_if_short(entry, keep, idempotency_ttl);
    Some(keep)
}

fn warn_if_short(entry: &Entry<'_>, keep: Option<Duration>, idempotency_ttl: Duration) {
    if keep.is_some_and(|keep| keep < idempotency_ttl) {
        entry.place.warn(
            "is shorter than limits.idempotency_ttl; executions are stored at least that long, so \
             that idempotency keys find them",
        );
    }
}
