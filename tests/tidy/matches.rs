//! Rule for matches over the sets that grow: the compiler names each place that a new member needs.

use super::{Source, none, sources};

/// Sets that grow; `CONTRIBUTING.md` has the recipe for each.
const GROWING: &[&str] = &["Fact::", "ExecutionCommand::", "StepKind::", "Work::"];

fn indentation(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

fn names_growing(arm: &str) -> bool {
    let pattern = arm.trim_start().trim_start_matches("| ").trim_start_matches('&');
    GROWING.iter().any(|set| pattern.starts_with(set))
}

/// Returns the places of arms for all other members in matches over a set that grows.
fn catch_alls(source: &Source) -> Vec<String> {
    let lines: Vec<(usize, &str)> = source.code().collect();
    let is_catch_all = |line: &str| line.trim_start().starts_with("_ =>");
    let found = lines.iter().enumerate().filter(|(index, (_, line))| {
        let depth = indentation(line);
        is_catch_all(line)
            && lines[..*index]
                .iter()
                .rev()
                .take_while(|(_, before)| before.is_empty() || indentation(before) >= depth)
                .any(|(_, before)| indentation(before) == depth && names_growing(before))
    });
    found.map(|(_, (number, line))| format!("{}:{number}: {}", source.path, line.trim())).collect()
}

#[test]
fn matches_over_sets_that_grow_name_every_member() {
    let sources = sources();
    let ruled = sources.iter().filter(|source| !source.is_test() && !source.is_under(&["tests"]));
    none(ruled.flat_map(catch_alls), "name the other members: the compiler then finds this place");
}

#[test]
fn catch_alls_are_found() {
    let rows = [
        ("match fact {\n    Fact::A => 1,\n    _ => 0,\n}", 1),
        ("match fact {\n    Fact::A\n    | Fact::B => {\n        1\n    }\n    _ => 0,\n}", 1),
        ("match fact {\n    Fact::A => match b {\n        B => 1,\n        _ => 0,\n    },\n}", 0),
        ("match other {\n    Other::A => 1,\n    _ => 0,\n}", 0),
    ];
    for (text, count) in rows {
        let source = Source { path: "a.rs".to_owned(), text: text.to_owned() };
        assert_eq!(catch_alls(&source).len(), count, "{text}");
    }
}
