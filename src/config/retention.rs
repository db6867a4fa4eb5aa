//! `[retention]`, and `retention` of a workflow: for how long what is over is kept.

use std::time::Duration;

use greenroom_actors::RetentionRules;

use super::entry::Entry;
use super::section::Section;

/// What keeps everything.
const FOREVER: &str = "forever";

/// Rules without those of workflows, which stand with the workflows.
pub(super) fn read(section: Section<'_>) -> RetentionRules {
    let default = RetentionRules::default();
    let keep = |key| section.get(key).and_then(|entry| read_keep(&entry)).flatten();
    let rules = RetentionRules {
        executions: keep("executions"),
        workflows: default.workflows,
        generations: keep("generations"),
        every: section.duration("every", default.every),
        batch: section.integer("batch", 1..=10_000, default.batch),
    };
    section.misplaced("logs", "is said by `keep` under [logs]");
    section.close();
    rules
}

/// A duration, or nothing for ever; none where it is neither.
#[expect(clippy::option_option, reason = "one is for what is refused, one for ever")]
pub(super) fn read_keep(entry: &Entry<'_>) -> Option<Option<Duration>> {
    match entry.text()?.as_str() {
        FOREVER => Some(None),
        text if text.starts_with(|c: char| c.is_ascii_digit()) => entry.duration().map(Some),
        _ => {
            entry.place.refuse("must be a duration such as \"30d\", or \"forever\"");
            None
        }
    }
}
