//! `[[faces.mcp]]`: workflows and agents as tools of MCP.

use std::time::Duration;

use url::Url;

use super::{Offered, offered};
use crate::auth::SealKey;
use crate::config::entry::{Entry, web_address};
use crate::config::inbox::LinkSecret;
use crate::config::keys::{Takes, Value as _};
use crate::config::names::{NameKind, Reference};
use crate::config::problem::ConfigProblem;
use crate::config::section::{Place, Section};

/// Longest name of a face.
const NAME_CHARS_MAX: usize = 64;

/// Maximum number of faces for MCP.
const FACES_MAX: usize = 32;

/// Default of [`McpFace::task_after`].
const TASK_AFTER: Duration = Duration::from_secs(5);

/// Settings of a face for clients of MCP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpFace {
    /// `None` at `/mcp`; a name at `/mcp/:name/mcp`.
    pub name: Option<String>,
    /// Workflows that are tools.
    pub workflows: Offered,
    /// Agents that are tools.
    pub agents: Offered,
    /// True if executions are resources.
    pub has_resources: bool,
    /// Address of the face, as clients reach it.
    pub url: Option<Url>,
    /// Time after which a call becomes a task, for clients that follow tasks.
    pub task_after: Duration,
    /// The variable whose secret seals what clients keep.
    pub(in crate::config) secret: Option<LinkSecret>,
}

impl McpFace {
    /// Returns the key that seals what clients keep: from the environment, else a random one.
    pub fn key(
        &self,
        environment: impl Fn(&str) -> Option<String>,
    ) -> Result<SealKey, ConfigProblem> {
        let Some(LinkSecret { variable, spot }) = &self.secret else {
            let refusal =
                |what| ConfigProblem::of_file("faces.mcp", format!("cannot make a key: {what}"));
            return SealKey::random().map_err(refusal);
        };
        let secret = environment(variable).unwrap_or_default();
        let of_variable =
            |problem| spot.error(format!("the environment variable {variable} {problem}"));
        SealKey::new(secret.as_bytes()).map_err(of_variable)
    }
}

/// Reads the faces. No two have one address.
pub(super) fn read_all(
    sections: Vec<Section<'_>>,
    references: &mut Vec<Reference>,
) -> Vec<McpFace> {
    let mut faces: Vec<McpFace> = Vec::new();
    for section in sections {
        let place = section.place.clone();
        let face = read(section, references);
        if faces.len() == FACES_MAX {
            place.refuse(format!("there are more than {FACES_MAX} faces"));
            break;
        }
        if faces.iter().any(|other| other.name == face.name) {
            refuse_twin(&place, face.name.as_deref());
        }
        faces.push(face);
    }
    faces
}

fn refuse_twin(place: &Place<'_>, name: Option<&str>) {
    place.refuse(match name {
        Some(name) => format!("another face has the name {name}"),
        None => "another face has no `name` either, and both would be at /mcp".to_owned(),
    });
}

fn read(section: Section<'_>, references: &mut Vec<Reference>) -> McpFace {
    let name = section.get("name").and_then(|entry| name(&entry));
    let workflows = offered(&section, "workflows", NameKind::Workflow, references);
    let agents = offered(&section, "agents", NameKind::Agent, references);
    if !section.has("workflows") && !section.has("agents") {
        section.place.refuse("offers nothing: name `workflows` or `agents`, or set one to \"*\"");
    }
    let has_resources = section.flag("resources", false);
    let url = section.get("url").and_then(|entry| url(&entry));
    let task_after = section.get("task_after").and_then(|entry| entry.duration());
    let secret = section.get("secret").and_then(|entry| LinkSecret::read(&entry, &Takes::Secret));
    section.close();
    McpFace {
        name,
        workflows: workflows.unwrap_or_else(nothing),
        agents: agents.unwrap_or_else(nothing),
        has_resources,
        url,
        task_after: task_after.unwrap_or(TASK_AFTER),
        secret,
    }
}

fn nothing() -> Offered {
    Offered::Only(Vec::new())
}

/// Reads an address, which clients compare with the one that they have.
fn url(entry: &Entry<'_>) -> Option<Url> {
    let url = match web_address(&entry.filled_text()?) {
        Ok(url) => url,
        Err(problem) => return entry.refuse(problem),
    };
    if url.query().is_some() || url.fragment().is_some() {
        return entry.refuse("must end with the path, before ? and #");
    }
    Some(url)
}

/// Reads a name, which is a part of an address.
fn name(entry: &Entry<'_>) -> Option<String> {
    let name = entry.text()?;
    let is_word = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
    if name.is_empty() || name.len() > NAME_CHARS_MAX || !is_word {
        return entry.refuse(format!("must be 1 to {NAME_CHARS_MAX} letters, digits, `-` or `_`"));
    }
    Some(name)
}
