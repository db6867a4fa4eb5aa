//! Rules for matches over the sets that grow: the compiler names each place that a new member needs.

use super::{Source, none, sources};

/// Sets that grow; `CONTRIBUTING.md` has the recipe for each.
const GROWING: &[&str] = &[
    "Fact",
    "ExecutionCommand",
    "StepKind",
    "StepType",
    "Course",
    "Container",
    "Called",
    "Work",
    "WorkClass",
];

/// Sets with methods for every question about their members.
const ASKED: &[&str] = &["StepKind", "Work"];

/// Files with an arm for all other members that does the same with whatever it is, and why.
const ALIKE: &[(&str, &str)] = &[
    ("actors/src/execution/give_up.rs", "other commands are passed on"),
    ("actors/src/shard/supervisor.rs", "other commands wait until the execution is read"),
    ("actors/src/shard/supervisor/turns.rs", "other commands wait until the execution is read"),
];

fn indentation(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// Returns the name of the type that the last `impl` before a line is for.
fn implemented<'s>(before: &[(usize, &'s str)]) -> Option<&'s str> {
    let line = before.iter().rev().find_map(|(_, line)| line.strip_prefix("impl"))?;
    let named = line.trim_end_matches(" {").split_whitespace().next_back()?;
    named.split('<').next()
}

/// Variants that the members of a set may be in.
const WRAPPERS: &[&str] = &["Some", "Ok", "Err"];

/// Splits a pattern into what is around it, nothing or one of [`WRAPPERS`], and what is inside.
fn unwrapped(pattern: &str) -> (&str, &str) {
    let inside = WRAPPERS.iter().find_map(|wrapper| {
        let inside = pattern.strip_prefix(wrapper)?.strip_prefix('(')?;
        Some((*wrapper, inside))
    });
    inside.unwrap_or(("", pattern))
}

/// Returns what is around the member of a set that grows that an arm names; `None` if it names
/// none. `own`: what `Self` is there.
fn names_growing<'a>(arm: &'a str, own: Option<&str>) -> Option<&'a str> {
    let pattern = arm.trim_start().trim_start_matches("| ").trim_start_matches('&');
    let (around, pattern) = unwrapped(pattern);
    let (set, _) = pattern.split_once("::")?;
    let set = if set == "Self" { own.unwrap_or_default() } else { set };
    GROWING.contains(&set).then_some(around)
}

/// Returns true if an arm takes everything that is in `around`: `_` or a name, by itself or in it.
fn takes_all(line: &str, around: &str) -> bool {
    let Some((pattern, _)) = line.trim_start().split_once(" =>") else { return false };
    let is_name = |pattern: &str| {
        pattern.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
            && !["", "true", "false"].contains(&pattern)
    };
    pattern.trim_start_matches("| ").split(" | ").any(|pattern| match unwrapped(pattern) {
        ("", pattern) => is_name(pattern),
        (wrapper, inside) => wrapper == around && inside.strip_suffix(')').is_some_and(is_name),
    })
}

/// Returns the places of arms for all other members in matches over a set that grows.
fn catch_alls(source: &Source) -> Vec<String> {
    let lines: Vec<(usize, &str)> = source.code().collect();
    let found = lines.iter().enumerate().filter(|(index, (_, line))| {
        let depth = indentation(line);
        let before = &lines[..*index];
        let is_taken = |arm: &str| {
            let around = names_growing(arm, implemented(before));
            around.is_some_and(|around| takes_all(line, around))
        };
        line.contains(" =>")
            && before
                .iter()
                .rev()
                .take_while(|(_, before)| before.is_empty() || indentation(before) >= depth)
                .any(|(_, before)| indentation(before) == depth && is_taken(before))
    });
    found.map(|(_, (number, line))| format!("{}:{number}: {}", source.path, line.trim())).collect()
}

/// Returns the text of a macro call up to its last parenthesis.
fn call(text: &str) -> &str {
    let mut open = 0_usize;
    let end = text.find(|c: char| {
        open += usize::from(c == '(');
        open -= usize::from(c == ')' && open > 0);
        c == ')' && open == 0
    });
    &text[..end.unwrap_or(text.len())]
}

/// Returns the uses of `matches!` with members of a set that has methods instead.
fn hidden_questions(source: &Source) -> Vec<String> {
    let code: Vec<&str> = source.code().map(|(_, line)| line).collect();
    let code = code.join("\n");
    let calls = code.match_indices("matches!(").map(|(at, _)| call(&code[at..]));
    let is_about = |call: &&str| {
        let names = call.split(|c: char| !c.is_alphanumeric() && c != ':' && c != '_');
        names.filter_map(|name| name.split_once("::")).any(|(set, _)| ASKED.contains(&set))
    };
    calls.filter(is_about).map(|call| format!("{}: {call})", source.path)).collect()
}

fn ruled() -> Vec<Source> {
    let ruled = |source: &Source| !source.is_test() && !source.is_under(&["tests"]);
    sources().into_iter().filter(ruled).collect()
}

#[test]
fn matches_over_sets_that_grow_name_every_member() {
    let ruled = ruled();
    let strict = ruled.iter().filter(|source| !ALIKE.iter().any(|(path, _)| *path == source.path));
    none(strict.flat_map(catch_alls), "name the other members: the compiler then finds this place");
    for (path, why) in ALIKE {
        let is_needed = ruled.iter().any(|it| it.path == *path && !catch_alls(it).is_empty());
        assert!(is_needed, "{path} ({why}) needs no exception");
    }
}

#[test]
fn questions_about_kinds_of_steps_are_methods() {
    let found = ruled();
    none(
        found.iter().flat_map(hidden_questions),
        "ask a method of the kind or of its work: the compiler does not find `matches!`",
    );
}

#[test]
fn catch_alls_are_found() {
    let rows = [
        ("match fact {\n    Fact::A => 1,\n    _ => 0,\n}", 1),
        ("match fact {\n    Fact::A => 1,\n    other => 0,\n}", 1),
        ("match fact {\n    Fact::A => 1,\n    Fact::B => 0,\n}", 0),
        ("match fact {\n    Some(Fact::A) => 1,\n    _ => 0,\n}", 1),
        ("match fact {\n    Some(Fact::A) => 1,\n    Some(_) => 0,\n    None => 2,\n}", 1),
        ("match fact {\n    Some(Fact::A) => 1,\n    Some(other) => 0,\n    None => 2,\n}", 1),
        ("match fact {\n    Some(Fact::A) => 1,\n    Some(_) | None => 0,\n}", 1),
        ("match fact {\n    Some(Fact::A) => 1,\n    None | Some(_) => 0,\n}", 1),
        ("match fact {\n    Ok(Fact::A) => 1,\n    Ok(_) | Err(_) => 0,\n}", 1),
        ("match fact {\n    Ok(Fact::A) | Ok(Fact::B) => 1,\n    Err(_) => 0,\n}", 0),
        ("match fact {\n    Some(Fact::A) => 1,\n    None => 0,\n}", 0),
        ("match fact {\n    Some(Fact::A) => 1,\n    Some(_) if a => 0,\n    None => 2,\n}", 0),
        ("match fact {\n    Some(Other::A) => 1,\n    Some(_) | None => 0,\n}", 0),
        ("match fact {\n    Fact::A\n    | Fact::B => {\n        1\n    }\n    _ => 0,\n}", 1),
        ("match fact {\n    Fact::A => match b {\n        B => 1,\n        _ => 0,\n    },\n}", 0),
        ("match other {\n    Other::A => 1,\n    _ => 0,\n}", 0),
        ("impl Fact {\n    match self {\n        Self::A => 1,\n        _ => 0,\n    }\n}", 1),
        (
            "impl A for Fact {\n    match self {\n        Self::A => 1,\n        _ => 0,\n    }\n}",
            1,
        ),
        ("impl Other {\n    match self {\n        Self::A => 1,\n        _ => 0,\n    }\n}", 0),
    ];
    for (text, count) in rows {
        let source = Source { path: "a.rs".to_owned(), text: text.to_owned() };
        assert_eq!(catch_alls(&source).len(), count, "{text}");
    }
}

#[test]
fn hidden_questions_are_found() {
    let rows = [
        ("matches!(step.work, Work::All(_))", 1),
        ("matches!(\n    step.kind,\n    StepKind::All { .. }\n)", 1),
        ("matches!(span.work, SpanWork::Step { .. })", 0),
        ("matches!(a, B(_)) && c(Work::All(d))", 0),
    ];
    for (text, count) in rows {
        let source = Source { path: "a.rs".to_owned(), text: text.to_owned() };
        assert_eq!(hidden_questions(&source).len(), count, "{text}");
    }
}
