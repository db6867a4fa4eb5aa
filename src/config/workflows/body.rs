//! Bodies of andThen and andTap.

use greenroom_actors::domain::definition::Body;

use super::kind::{ARGS_ALONE, BODIES};
use crate::config::calls;
use crate::config::entry::only_one_of;
use crate::config::names::{NameKind, Reference};
use crate::config::section::Section;

/// Reads the body of a step, which must have exactly one.
pub(super) fn read(section: &Section<'_>, references: &mut Vec<Reference>) -> Option<Body> {
    let found: Vec<_> = BODIES.iter().copied().filter(|key| section.has(key)).collect();
    let (first, others) =
        found.split_first().map_or((None, &[][..]), |(it, rest)| (Some(*it), rest));
    let body = first.and_then(|key| body(key, section, references));
    if let Some(args) = section.get("args").filter(|_| first != Some("tool")) {
        args.place.refuse(ARGS_ALONE);
    }
    for other in others {
        if let (Some(first), Some(entry)) = (first, section.get(other)) {
            entry.place.refuse(only_one_of(first));
        }
    }
    if first.is_none() {
        let bodies = BODIES.map(|key| format!("`{key}`")).join(", ");
        section.place.refuse(format!("needs one of {bodies}"));
    }
    body.filter(|_| others.is_empty())
}

fn body(key: &'static str, section: &Section<'_>, references: &mut Vec<Reference>) -> Option<Body> {
    let mut named = |kind| section.get(key)?.reference(kind, references);
    match key {
        "map" => section.get(key)?.projection().map(Body::Map),
        "run" => Some(Body::Run { function: named(NameKind::Function)?, version: None }),
        "tool" => {
            let tool = named(NameKind::Tool);
            let args = section.get("args").map(|entry| entry.projection());
            Some(Body::Tool {
                tool: tool?,
                args: match args {
                    Some(args) => Some(args?),
                    None => None,
                },
            })
        }
        "http" => {
            let inner = section.section(key)?;
            let call = calls::http(&inner);
            inner.close();
            call.map(Body::Http)
        }
        _ => {
            let inner = section.section(key)?;
            let run = calls::command(&inner);
            inner.close();
            run.map(Body::Command)
        }
    }
}
