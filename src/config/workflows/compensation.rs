//! Compensations of steps.

use greenroom_actors::domain::definition::{Compensation, StepKind};

use super::step::workflow;
use super::{body, policy};
use crate::config::entry::only_one_of;
use crate::config::names::Reference;
use crate::config::section::Section;
use crate::nearest::nearest;

/// Keys of what compensates a step, of which a compensation has exactly one.
const WORKS: [&str; 6] = ["run", "http", "command", "tool", "workflow", "map"];

/// Keys of a compensation.
const KEYS: [&str; 9] =
    ["run", "http", "command", "tool", "args", "workflow", "input", "retry", "timeout"];

/// Reads `compensate`. Refused parts are reported.
pub(super) fn read(section: &Section<'_>, references: &mut Vec<Reference>) -> Option<Compensation> {
    let kind = kind(section, references);
    let retry = section.get("retry").and_then(|entry| policy::table_of_retry(&entry));
    let timeout_ms = section.get("timeout").and_then(|entry| entry.milliseconds());
    close(section);
    let compensation = Compensation::new(kind?);
    let retry = retry.unwrap_or_else(|| compensation.retry.clone());
    Some(Compensation { retry, timeout_ms, ..compensation })
}

/// Refuses the remaining keys.
fn close(section: &Section<'_>) {
    for key in section.leftovers() {
        let spot = section.key_place(key).spot();
        let problem = match key {
            "input" => spot.error("is only valid beside `workflow`"),
            _ => spot.error("unknown key").meant(nearest(key, KEYS)),
        };
        section.place.findings.report(problem);
    }
}

fn kind(section: &Section<'_>, references: &mut Vec<Reference>) -> Option<StepKind> {
    if !WORKS.into_iter().any(|key| section.has(key)) {
        let works = WORKS.into_iter().filter(|key| *key != "map");
        let works: Vec<_> = works.map(|key| format!("`{key}`")).collect();
        section.place.refuse(format!("needs one of {}", works.join(", ")));
        return None;
    }
    if !section.has("workflow") {
        let body = body::read(section, references)?;
        return Some(StepKind::Then { body });
    }
    let kind = workflow(section, references);
    let others = WORKS.into_iter().filter(|key| *key != "workflow" && section.has(key));
    let others: Vec<_> = others.filter_map(|key| section.get(key)).collect();
    for entry in &others {
        entry.place.refuse(only_one_of("workflow"));
    }
    kind.filter(|_| others.is_empty())
}
