//! `[[routes]]`: paths of one's own that lead to a workflow, to an agent or to files.

mod path;

use std::path::{Path, PathBuf};

pub(crate) use self::path::path_problem;

use super::entry::Entry;
use super::names::{NameKind, Reference};
use super::problem::{ConfigProblem, Spot};
use super::section::Section;
use crate::nearest::nearest;

/// Keys of targets: each route has one of them.
const TARGETS: [&str; 3] = ["workflow", "agent", "static"];

/// A route as configured.
#[derive(Debug, Clone)]
pub struct RouteConfig {
    /// Fixed segments; of a folder, `*` is the last one.
    pub path: String,
    /// The target.
    pub target: RouteTarget,
    /// A line for the documentation.
    pub summary: Option<String>,
    /// The place of the path, for checks that need all routes.
    spot: Spot,
}

/// The target of a configured route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RouteTarget {
    /// Runs this workflow.
    Workflow { id: String, answer: WorkflowAnswer, body: WorkflowBody },
    /// Asks this agent.
    Agent { id: String, answer: AgentAnswer },
    /// Shows one file.
    File(PathBuf),
    /// Shows the files of a folder.
    Folder(PathBuf),
}

/// The answer of a route of a workflow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkflowAnswer {
    /// The answer of `POST /workflows/:id/execute`.
    Result,
    /// The answer of `POST /workflows/:id/stream`.
    Stream,
}

/// The meaning of the body of a route of a workflow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkflowBody {
    /// `input` and `options`, as for `POST /workflows/:id/execute`.
    Request,
    /// The input alone: what others send to a webhook.
    Input,
}

/// Which route of an agent a route answers like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AgentAnswer {
    Text,
    Stream,
    Chat,
    Object,
    StreamObject,
}

impl RouteConfig {
    /// A problem with the path.
    pub(crate) fn refuse(&self, message: impl Into<String>) -> ConfigProblem {
        self.spot.error(message)
    }
}

/// Reads a route; what it refers to is looked up later. Files count from the folder `base`.
pub(crate) fn read(
    section: Section<'_>,
    base: &Path,
    references: &mut Vec<Reference>,
) -> Option<RouteConfig> {
    let path = section.required("path").and_then(|entry| {
        let path = entry.text()?;
        match path_problem(&path) {
            Some(problem) => {
                entry.place.refuse(problem);
                None
            }
            None => Some((path, entry)),
        }
    });
    let summary = section.get("summary").and_then(|entry| entry.filled_text());
    let method = section.get("method");
    let target = target_of(&section)?;
    if let Some(entry) = method {
        check_method(&entry, target);
    }
    let target = match target {
        "workflow" => workflow(&section, references),
        "agent" => agent(&section, references),
        _ => files(&section, base, path.as_ref().map(|(path, _)| path.as_str())),
    };
    section.close();
    let (path, entry) = path?;
    let target = target?;
    check_segments(&path, &entry, &target);
    Some(RouteConfig { path, target, summary, spot: entry.place.spot() })
}

/// The one key that says what the route leads to.
fn target_of(section: &Section<'_>) -> Option<&'static str> {
    let written: Vec<_> = TARGETS.into_iter().filter(|key| section.has(key)).collect();
    match written.as_slice() {
        [one] => Some(one),
        [] => {
            section.place.refuse("leads nowhere: one of `workflow`, `agent`, `static` is missing");
            None
        }
        [one, other, ..] => {
            section.key_place(other).refuse(format!("leads to `{one}` already"));
            None
        }
    }
}

fn check_method(entry: &Entry<'_>, target: &str) {
    let expected = if target == "static" { "GET" } else { "POST" };
    if let Some(method) = entry.text()
        && method != expected
    {
        entry.place.refuse(format!("must be \"{expected}\", as `{target}` needs it"));
    }
}

/// Nothing reads what varies in a path but the files of a folder.
fn check_segments(path: &str, entry: &Entry<'_>, target: &RouteTarget) {
    if path.contains("/:") {
        entry.place.refuse("may not have `:name` segments: nothing would read them");
    }
    let is_folder_path = path.ends_with("/*");
    match target {
        RouteTarget::Workflow { .. } | RouteTarget::Agent { .. } if is_folder_path => {
            entry.place.refuse("may end in `/*` only where `static` is a folder");
        }
        RouteTarget::File(_) if is_folder_path => {
            entry.place.refuse("ends in `/*`, but `static` is a file and not a folder");
        }
        RouteTarget::Folder(_) if !is_folder_path => {
            entry.place.refuse("must end in `/*`: `static` is a folder");
        }
        RouteTarget::Workflow { .. }
        | RouteTarget::Agent { .. }
        | RouteTarget::File(_)
        | RouteTarget::Folder(_) => {}
    }
}

fn workflow(section: &Section<'_>, references: &mut Vec<Reference>) -> Option<RouteTarget> {
    let id = named(section, "workflow", NameKind::Workflow, references);
    let answers = [("result", WorkflowAnswer::Result), ("stream", WorkflowAnswer::Stream)];
    let answer = one_of(section, "answer", answers);
    let bodies = [("request", WorkflowBody::Request), ("input", WorkflowBody::Input)];
    let body = one_of(section, "body", bodies);
    Some(RouteTarget::Workflow { id: id?, answer: answer?, body: body? })
}

fn agent(section: &Section<'_>, references: &mut Vec<Reference>) -> Option<RouteTarget> {
    let id = named(section, "agent", NameKind::Agent, references);
    let answers = [
        ("text", AgentAnswer::Text),
        ("stream", AgentAnswer::Stream),
        ("chat", AgentAnswer::Chat),
        ("object", AgentAnswer::Object),
        ("stream-object", AgentAnswer::StreamObject),
    ];
    let answer = one_of(section, "answer", answers);
    Some(RouteTarget::Agent { id: id?, answer: answer? })
}

fn files(section: &Section<'_>, base: &Path, path: Option<&str>) -> Option<RouteTarget> {
    let entry = section.get("static")?;
    let written = entry.filled_text()?;
    let place = base.join(&written);
    if place.is_dir() {
        if holds(&place, base) {
            entry.place.refuse("holds the configuration: everybody could read it");
        }
        return Some(RouteTarget::Folder(place));
    }
    if place.is_file() {
        if holds(&place, Path::new(&*entry.place.spot().file)) {
            entry.place.refuse("is the configuration: everybody could read it");
        }
        return Some(RouteTarget::File(place));
    }
    let expected = if path.is_some_and(|path| path.ends_with("/*")) { "folder" } else { "file" };
    entry.place.refuse(format!("there is no {expected} {written:?}, seen from this file"));
    None
}

/// Whether a folder, or a file, is the other one or above it.
fn holds(folder: &Path, other: &Path) -> bool {
    let other = if other.as_os_str().is_empty() { Path::new(".") } else { other };
    match (folder.canonicalize(), other.canonicalize()) {
        (Ok(folder), Ok(other)) => other.starts_with(folder),
        _ => false,
    }
}

fn named(
    section: &Section<'_>,
    key: &'static str,
    kind: NameKind,
    references: &mut Vec<Reference>,
) -> Option<String> {
    let entry = section.get(key)?;
    let name = entry.filled_text()?;
    references.push(Reference::new(kind, &name, entry.place.spot()));
    Some(name)
}

/// The value of a word; the first one's where none is written.
fn one_of<T: Copy, const N: usize>(
    section: &Section<'_>,
    key: &'static str,
    words: [(&'static str, T); N],
) -> Option<T> {
    let Some(entry) = section.get(key) else { return Some(words[0].1) };
    let written = entry.text()?;
    let found = words.iter().find(|(word, _)| *word == written);
    if found.is_none() {
        let known = words.map(|(word, _)| word);
        let problem = entry.place.spot().error(format!("must be one of {}", known.join(", ")));
        entry.place.findings.report(problem.meant(nearest(&written, known)));
    }
    found.map(|(_, value)| *value)
}
