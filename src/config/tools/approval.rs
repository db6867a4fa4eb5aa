//! `approval` of a tool: calls that wait for a person.

use greenroom_actors::agent::{Approval, OnTimeout, Remember};
use greenroom_actors::domain::assignment::{ASSIGNEES_MAX, Assignee};
use toml::de::DeValue;

use crate::config::asked::Assignment;
use crate::config::entry::Entry;
use crate::config::section::Section;
use crate::config::texts::TextScope;

/// Reads `true`, `false` or a table with conditions and contents; `None` if calls need no approval.
pub(super) fn read(entry: &Entry<'_>, scope: &TextScope) -> Option<Approval> {
    match entry.value {
        DeValue::Boolean(is_needed) => is_needed.then(Approval::always),
        DeValue::Table(_) => entry.section().and_then(|section| table(section, scope)),
        _ => entry.refuse("must be true, false or { when = ..., reason = ..., to = ... }"),
    }
}

fn table(section: Section<'_>, scope: &TextScope) -> Option<Approval> {
    let mut approval = match section.get("when") {
        None => Some(Approval::always()),
        Some(entry) => {
            scope.expression(&entry);
            // what is wrong with it is reported already
            entry.text().and_then(|source| Approval::when(&source).ok())
        }
    };
    if let Some(entry) = section.get("reason") {
        scope.template(&entry);
        let template = entry.filled_text();
        approval = approval.zip(template).and_then(|(it, template)| it.reason(&template).ok());
    }
    let to = section.get("to").map(|entry| assignees(&entry)).unwrap_or_default();
    let deadline = section.get("deadline").and_then(|entry| entry.duration());
    let on_timeout = section.get("on_timeout").and_then(|entry| {
        if deadline.is_none() {
            entry.place.refuse("needs a `deadline` beside it");
        }
        entry.one_of(&[("refuse", OnTimeout::Refuse), ("approve", OnTimeout::Approve)])
    });
    let is_editable = section.flag("edit", false);
    let remember = section
        .get("remember")
        .and_then(|entry| entry.one_of(&[("never", Remember::Never), ("chat", Remember::Chat)]));
    section.close();
    let mut approval = approval?.to(to).remember(remember.unwrap_or_default());
    if let Some(deadline) = deadline {
        approval = approval.deadline(deadline).on_timeout(on_timeout.unwrap_or_default());
    }
    Some(if is_editable { approval.edit() } else { approval })
}

fn assignees(entry: &Entry<'_>) -> Vec<Assignee> {
    Assignment::note(entry);
    let items = entry.items().unwrap_or_default();
    if items.len() > ASSIGNEES_MAX {
        entry.place.refuse(format!("has more than {ASSIGNEES_MAX} entries"));
    }
    let assignee = |item: &Entry<'_>| {
        let written = item.text()?;
        written.parse().map_or_else(|error| item.refuse(format!("{error}")), Some)
    };
    items.iter().filter_map(assignee).collect()
}
