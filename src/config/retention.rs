//! `[retention]`, and `retention` of a workflow: for how long what is over is kept.

use std::time::Duration;

use greenroom_actors::RetentionRules;

use super::entry::Entry;
use super::section::Section;

/// What keeps everything.
const FOREVER: &str = "forever";

/// Rules without those of workflows, which stand with the workflows.
pub(super) fn read(section: Section<'_>, idempotency_ttl: Duration) -> RetentionRules {
    let default = RetentionRules::default();
    let generations = section.get("generations").and_then(|entry| read_keep(&entry));
    let executions = section.get("executions");
    let rules = RetentionRules {
        executions: executions
            .and_then(|it| read_keep_of_executions(&it, idempotency_ttl))
            .flatten(),
        workflows: default.workflows,
        generations: generations.flatten(),
        every: section.duration("every", default.every),
        batch: section.integer("batch", 1..=10_000, default.batch),
    };
    section.misplaced("logs", "is said by `keep` under [logs]");
    section.close();
    rules
}

/// The same of executions, which are kept as long as an idempotency key leads to them.
#[expect(clippy::option_option, reason = "one is for what is refused, one for ever")]
pub(super) fn read_keep_of_executions(
    entry: &Entry<'_>,
    idempotency_ttl: Duration,
) -> Option<Option<Duration>> {
    let keep = read_keep(entry)?;
    if keep.is_some_and(|keep| keep < idempotency_ttl) {
        entry.place.warn(
            "is shorter than limits.idempotency_ttl: executions are kept for as long as that, so \
             that idempotency keys find them",
        );
    }
    Some(keep)
}

/// A duration, or nothing for ever; none where it is neither.
#[expect(clippy::option_option, reason = "one is for what is refused, one for ever")]
fn read_keep(entry: &Entry<'_>) -> Option<Option<Duration>> {
    match entry.text()?.as_str() {
        FOREVER => Some(None),
        text if text.starts_with(|c: char| c.is_ascii_digit()) => entry.duration().map(Some),
        _ => {
            entry.place.refuse("must be a duration such as \"30d\", or \"forever\"");
            None
        }
    }
}
