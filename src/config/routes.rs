//! `[[routes]]`: added paths that lead to a workflow, an agent or files.

mod coded;
mod path;

use std::path::{Path, PathBuf};

pub(crate) use self::coded::Destination;
pub(crate) use self::path::path_problem;

use super::entry::{Entry, only_one_of};
use super::features::UI;
use super::names::{NameKind, Reference};
use super::problem::{ConfigProblem, Spot};
use super::section::Section;

/// Keys of targets; each route has one of them.
const TARGETS: [&str; 3] = ["workflow", "agent", "static"];

/// Settings of a route.
#[derive(Debug, Clone)]
pub struct RouteConfig {
    /// Fixed segments; the last one is `*` if the target is a folder.
    pub path: String,
    /// The target.
    pub target: RouteTarget,
    /// A line for the API document.
    pub summary: Option<String>,
    /// The place of the path, for checks that need all routes.
    spot: Spot,
}

/// The target of a configured route.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum RouteTarget {
    /// Runs this workflow.
    Workflow { id: String, answer: WorkflowAnswer, body: WorkflowBody },
    /// Calls this agent.
    Agent { id: String, answer: AgentAnswer },
    /// Serves one file.
    File(PathBuf),
    /// Serves the files of a folder.
    Folder(PathBuf),
}

/// The answer of a route of a workflow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum WorkflowAnswer {
    /// The answer of `POST /workflows/:id/execute`.
    Result,
    /// The answer of `POST /workflows/:id/stream`.
    Stream,
}

/// The meaning of the body of a route of a workflow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum WorkflowBody {
    /// `input` and `options`, as for `POST /workflows/:id/execute`.
    Request,
    /// The input alone, for webhooks.
    Input,
}

/// The answer of a route of an agent, like that of the built-in route of the same name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum AgentAnswer {
    Text,
    Stream,
    Chat,
    Object,
    StreamObject,
}

impl RouteConfig {
    /// Returns the reference to the definition that it leads to.
    pub(crate) fn reference(&self) -> Option<Reference> {
        let (kind, key, id) = match &self.target {
            RouteTarget::Workflow { id, .. } => (NameKind::Workflow, "workflow", id),
            RouteTarget::Agent { id, .. } => (NameKind::Agent, "agent", id),
            RouteTarget::File(_) | RouteTarget::Folder(_) => return None,
        };
        Some(Reference::new(kind, id, Spot { key: key.to_owned(), ..self.spot.clone() }))
    }

    /// Returns an error about the path.
    pub(crate) fn refuse(&self, message: impl Into<String>) -> ConfigProblem {
        self.spot.error(message)
    }
}

/// Reads a route; names that it refers to are looked up later. Files are relative to `base`.
pub(crate) fn read(
    section: Section<'_>,
    base: &Path,
    references: &mut Vec<Reference>,
) -> Option<RouteConfig> {
    let path = section.required("path").and_then(|entry| {
        let path = entry.text()?;
        match path_problem(&path) {
            Some(problem) => entry.refuse(problem),
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
    segment_problems(&path, &target).for_each(|problem| entry.place.refuse(problem));
    Some(RouteConfig { path, target, summary, spot: entry.place.spot() })
}

/// Returns the key of the route's target.
fn target_of(section: &Section<'_>) -> Option<&'static str> {
    let written: Vec<_> = TARGETS.into_iter().filter(|key| section.has(key)).collect();
    match written.as_slice() {
        [one] => Some(one),
        [] => {
            section.place.refuse("needs one of `workflow`, `agent`, `static`");
            None
        }
        [one, other, ..] => {
            section.key_place(other).refuse(only_one_of(one));
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

/// Returns the problems of segments: no target reads variable ones, except the `*` of a folder.
fn segment_problems(path: &str, target: &RouteTarget) -> impl Iterator<Item = &'static str> {
    let variable =
        path.contains("/:").then_some("must not have `:name` segments: no target reads them");
    let is_folder_path = path.ends_with("/*");
    let tail = match target {
        RouteTarget::Workflow { .. } | RouteTarget::Agent { .. } if is_folder_path => {
            Some("may end in `/*` only if `static` is a folder")
        }
        RouteTarget::File(_) if is_folder_path => Some("ends in `/*`, but `static` is a file"),
        RouteTarget::Folder(_) if !is_folder_path => Some("must end in `/*`: `static` is a folder"),
        RouteTarget::Workflow { .. }
        | RouteTarget::Agent { .. }
        | RouteTarget::File(_)
        | RouteTarget::Folder(_) => None,
    };
    variable.into_iter().chain(tail)
}

fn workflow(section: &Section<'_>, references: &mut Vec<Reference>) -> Option<RouteTarget> {
    let id = section.get("workflow")?.reference(NameKind::Workflow, references);
    let answers = [("result", WorkflowAnswer::Result), ("stream", WorkflowAnswer::Stream)];
    let answer = one_of(section, "answer", answers);
    let bodies = [("request", WorkflowBody::Request), ("input", WorkflowBody::Input)];
    let body = one_of(section, "body", bodies);
    Some(RouteTarget::Workflow { id: id?, answer: answer?, body: body? })
}

fn agent(section: &Section<'_>, references: &mut Vec<Reference>) -> Option<RouteTarget> {
    let id = section.get("agent")?.reference(NameKind::Agent, references);
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
    if let Some(refusal) = without_files() {
        return entry.refuse(refusal);
    }
    let written = entry.filled_text()?;
    let place = base.join(&written);
    let file = entry.place.spot().file;
    if let Some(problem) = exposed(&place, base, Path::new(&*file)) {
        entry.place.refuse(problem);
    }
    if let Some(target) = files_at(place) {
        return Some(target);
    }
    let expected = expected_at(path.unwrap_or_default());
    entry.refuse(format!("there is no {expected} {written:?} relative to this file"))
}

/// Returns the refusal of a program that serves no files.
fn without_files() -> Option<String> {
    UI.lacking("serve files; remove the route, or build the program with the feature")
}

/// Returns the target at a place; `None` if there is nothing.
fn files_at(place: PathBuf) -> Option<RouteTarget> {
    if place.is_dir() {
        return Some(RouteTarget::Folder(place));
    }
    place.is_file().then_some(RouteTarget::File(place))
}

/// Returns the reason if a route to this place would show the configuration, which is this file in
/// the folder `base`.
fn exposed(place: &Path, base: &Path, file: &Path) -> Option<&'static str> {
    if place.is_dir() {
        let contains = contains(place, base);
        return contains.then_some("contains the configuration, which would become public");
    }
    let is_shown = place.is_file() && contains(place, file);
    is_shown.then_some("is the configuration, which would become public")
}

/// Returns what a route of this path can show.
fn expected_at(path: &str) -> &'static str {
    if path.ends_with("/*") { "folder" } else { "file" }
}

/// Returns true if a folder contains the other path, or both are the same.
fn contains(folder: &Path, other: &Path) -> bool {
    let other = if other.as_os_str().is_empty() { Path::new(".") } else { other };
    match (folder.canonicalize(), other.canonicalize()) {
        (Ok(folder), Ok(other)) => other.starts_with(folder),
        _ => false,
    }
}

/// Reads one of these words and returns its value; defaults to the first one.
fn one_of<T: Copy, const N: usize>(
    section: &Section<'_>,
    key: &'static str,
    words: [(&'static str, T); N],
) -> Option<T> {
    section.get(key).map_or(Some(words[0].1), |entry| entry.one_of(&words))
}
