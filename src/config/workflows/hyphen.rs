//! The trap `steps.my-step`, which is a subtraction; the author meant `steps['my-step']`.

use toml::de::{DeTable, DeValue};

use super::places::Places;
use crate::config::section::{Place, in_order};

/// Keys whose strings are neither expressions nor templates.
const LITERAL: [&str; 12] = [
    "id", "name", "purpose", "type", "agent", "workflow", "run", "block", "blocks", "steps",
    "duration", "default",
];

/// Refuses the trap in every step and in the workflow's result.
pub(super) fn check(places: &Places<'_>) {
    let (workflow, table) = places.workflow();
    for (place, table) in places.steps().chain([&(workflow.clone(), *table)]) {
        check_table(place, table, places, true);
    }
}

fn check_table<'a>(place: &Place<'a>, table: &'a DeTable<'a>, places: &Places<'_>, is_top: bool) {
    for (key, _, value) in in_order(table) {
        let is_literal = is_top && (LITERAL.contains(&key) || key.ends_with("schema"));
        if !is_literal {
            check_value(&place.inner(key, value.span()), value.get_ref(), places);
        }
    }
}

fn check_value<'a>(place: &Place<'a>, value: &'a DeValue<'a>, places: &Places<'_>) {
    match value {
        DeValue::String(text) => {
            if let Some(id) = trapped(text, |id| places.is_step(id)) {
                let problem = place.spot().error(format!("`steps.{id}` is a subtraction"));
                place.findings.report(problem.meant(Some(format!("steps['{id}']"))));
            }
        }
        DeValue::Table(table) => check_table(place, table, places, false),
        DeValue::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                check_value(&place.item(index, item.span()), item.get_ref(), places);
            }
        }
        DeValue::Integer(_) | DeValue::Float(_) | DeValue::Boolean(_) | DeValue::Datetime(_) => {}
    }
}

/// Returns the first step id with a hyphen that is written as an attribute.
fn trapped(text: &str, is_step: impl Fn(&str) -> bool) -> Option<&str> {
    const PREFIX: &str = "steps.";
    let is_id_char = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    text.match_indices(PREFIX).find_map(|(at, _)| {
        let is_inner = text[..at].ends_with(|c: char| is_id_char(c) || c == '.');
        let rest = &text[at + PREFIX.len()..];
        let id = &rest[..rest.find(|c| !is_id_char(c)).unwrap_or(rest.len())];
        (!is_inner && id.contains('-') && is_step(id)).then_some(id)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_ids_of_steps_are_refused() {
        let is_step = |id: &str| matches!(id, "my-step" | "total");
        assert_eq!(trapped("1 + steps.my-step.n", is_step), Some("my-step"));
        assert_eq!(trapped("{{ steps.my-step }}", is_step), Some("my-step"));
        assert_eq!(trapped("steps.total-1", is_step), None);
        assert_eq!(trapped("steps['my-step'].n", is_step), None);
        assert_eq!(trapped("data.steps.my-step", is_step), None);
    }
}
