//! Bodies of andThen and andTap.

use greenroom_actors::domain::definition::Body;

use super::kind::ARGS_ALONE;
use crate::config::calls;
use crate::config::entry::only_one_of;
use crate::config::names::{NameKind, Reference};
use crate::config::section::Section;

type ReadBody = fn(&Section<'_>, &mut Vec<Reference>) -> Option<Body>;

/// Keys of bodies with their readers. A step has exactly one of the keys.
const BODIES: [(&str, ReadBody); 5] =
    [("map", map), ("run", run), ("http", http), ("command", command), ("tool", tool)];

/// Reads the body of a step, which must have exactly one.
pub(super) fn read(section: &Section<'_>, references: &mut Vec<Reference>) -> Option<Body> {
    let found: Vec<_> = BODIES.into_iter().filter(|(key, _)| section.has(key)).collect();
    let (first, others) =
        found.split_first().map_or((None, &[][..]), |(it, rest)| (Some(*it), rest));
    let body = first.and_then(|(_, read)| read(section, references));
    let first = first.map(|(key, _)| key);
    if let Some(args) = section.get("args").filter(|_| first != Some("tool")) {
        args.place.refuse(ARGS_ALONE);
    }
    for (other, _) in others {
        if let (Some(first), Some(entry)) = (first, section.get(other)) {
            entry.place.refuse(only_one_of(first));
        }
    }
    if first.is_none() {
        let bodies = BODIES.map(|(key, _)| format!("`{key}`")).join(", ");
        section.place.refuse(format!("needs one of {bodies}"));
    }
    body.filter(|_| others.is_empty())
}

fn map(section: &Section<'_>, _: &mut Vec<Reference>) -> Option<Body> {
    section.get("map")?.mapping().map(Body::Map)
}

fn run(section: &Section<'_>, references: &mut Vec<Reference>) -> Option<Body> {
    let function = section.get("run")?.reference(NameKind::Function, references)?;
    Some(Body::Run { function, version: None })
}

fn http(section: &Section<'_>, _: &mut Vec<Reference>) -> Option<Body> {
    let inner = section.get("http")?.section_as("{ url = \"…\" }")?;
    let call = calls::http(&inner);
    refuse_keys_beside(&inner, "http");
    inner.close();
    call.map(Body::Http)
}

fn command(section: &Section<'_>, _: &mut Vec<Reference>) -> Option<Body> {
    let inner = section.get("command")?.section_as("{ argv = [\"…\"] }")?;
    let run = calls::command(&inner);
    refuse_keys_beside(&inner, "command");
    inner.close();
    run.map(Body::Command)
}

/// Refuses keys of the step in the table of a call.
fn refuse_keys_beside(inner: &Section<'_>, call: &str) {
    const KEYS: [&str; 5] = ["timeout", "retry", "on_error", "suspend", "compensate"];
    for key in KEYS {
        inner.misplaced(key, &format!("is a key of the step: write it beside `{call}`"));
    }
}

fn tool(section: &Section<'_>, references: &mut Vec<Reference>) -> Option<Body> {
    let tool = section.get("tool").and_then(|entry| {
        let name = entry.filled_text()?;
        references.push(Reference::new(NameKind::Tool, &name, entry.place.spot()).of_step());
        Some(name)
    });
    let args = section.get("args").map(|entry| entry.mapping());
    Some(Body::Tool {
        tool: tool?,
        args: match args {
            Some(args) => Some(args?),
            None => None,
        },
    })
}
