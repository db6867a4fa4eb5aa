//! `approval` of a tool: calls that wait for a person.

use greenroom_actors::agent::{Approval, OnTimeout, Remember};
use greenroom_actors::domain::assignment::Assignee;
use toml::de::DeValue;

use super::parts::Parts;
use crate::config::asked::Assignment;
use crate::config::entry::Entry;
use crate::config::section::Section;

/// Reads `true`, `false` or a table with conditions and contents; `None` if calls need no approval.
pub(super) fn read(entry: &Entry<'_>, parts: &Parts<'_>) -> Option<Approval> {
    match entry.value {
        DeValue::Boolean(is_needed) => is_needed.then(Approval::always),
        DeValue::Table(_) => read_table(entry.section()?, parts),
        _ => entry.refuse("must be true, false or { when = ..., reason = ..., to = ... }"),
    }
}

/// Reads a table, and closes it.
pub(in crate::config) fn read_table(section: Section<'_>, parts: &Parts<'_>) -> Option<Approval> {
    let approval = table(section)?;
    parts.approval(&approval);
    Some(approval)
}

fn table(section: Section<'_>) -> Option<Approval> {
    let when = section.get("when").map(|entry| {
        let compiled = Approval::when(&entry.text()?);
        compiled.map_or_else(|error| entry.refuse(error.to_string()), Some)
    });
    let mut approval = when.unwrap_or_else(|| Some(Approval::always()));
    if let Some(entry) = section.get("reason") {
        approval = approval.zip(entry.text()).and_then(|(approval, template)| {
            let compiled = approval.reason(&template);
            compiled.map_or_else(|error| entry.refuse(error.to_string()), Some)
        });
    }
    let to = section.get("to").map(|entry| assignees(&entry)).unwrap_or_default();
    let deadline = section.get("deadline").map(|entry| entry.duration());
    let on_timeout = section.get("on_timeout").and_then(|entry| {
        entry.one_of(&[("refuse", OnTimeout::Refuse), ("approve", OnTimeout::Approve)])
    });
    let is_editable = section.flag("edit", false);
    let remember = section
        .get("remember")
        .and_then(|entry| entry.one_of(&[("never", Remember::Never), ("chat", Remember::Chat)]));
    section.close();
    let mut approval = approval?.to(to).remember(remember.unwrap_or_default());
    if let Some(deadline) = deadline {
        approval = approval.deadline(deadline?);
    }
    if let Some(on_timeout) = on_timeout {
        approval = approval.on_timeout(on_timeout);
    }
    Some(if is_editable { approval.edit() } else { approval })
}

/// Reads who may answer.
pub(in crate::config) fn assignees(entry: &Entry<'_>) -> Vec<Assignee> {
    Assignment::note(entry);
    let items = entry.items().unwrap_or_default();
    let assignee = |item: &Entry<'_>| {
        let written = item.text()?;
        written.parse().map_or_else(|error| item.refuse(format!("{error}")), Some)
    };
    items.iter().filter_map(assignee).collect()
}
