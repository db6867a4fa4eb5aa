//! `[[faces.mcp]]`: workflows and agents as tools of MCP.

use std::ops::RangeInclusive;
use std::time::Duration;

use greenroom_actors::agent::tool::ASK_USER;
use url::Url;

use super::{FACE_NAME_CHARS_MAX, Offered, is_face_name, offered};
use crate::auth::SealKey;
use crate::config::Config;
use crate::config::entry::{Entry, duration_problem, web_address};
use crate::config::inbox::LinkSecret;
use crate::config::keys::{Takes, Value as _};
use crate::config::names::{NameKind, Reference};
use crate::config::problem::{ConfigProblem, Spot};
use crate::config::secret::variable_problem;
use crate::config::section::{Place, Section};

/// Maximum number of faces for MCP.
const FACES_MAX: usize = 32;

/// Default of [`McpFace::task_after`].
const TASK_AFTER: Duration = Duration::from_secs(5);

/// Default and bounds of [`McpFace::subscriptions_max`].
const SUBSCRIPTIONS_MAX: usize = 100;
const SUBSCRIPTIONS: RangeInclusive<i64> = 0..=1000;

/// Settings of a face for clients of MCP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpFace {
    /// `None` at `/mcp`; a name at `/mcp/:name/mcp`.
    pub name: Option<String>,
    /// Workflows that are tools.
    pub workflows: Offered,
    /// Agents that are tools.
    pub agents: Offered,
    /// Registered tools that are offered under their names.
    pub tools: Vec<String>,
    /// True if executions are resources.
    pub has_resources: bool,
    /// Address of the face, as clients reach it.
    pub url: Option<Url>,
    /// Time after which a call becomes a task, for clients that follow tasks.
    pub task_after: Duration,
    /// Maximum number of resources and tasks that a client watches with one stream.
    pub subscriptions_max: usize,
    /// The variable whose secret seals what clients keep.
    pub(in crate::config) secret: Option<LinkSecret>,
}

impl Default for McpFace {
    fn default() -> Self {
        Self {
            name: None,
            workflows: nothing(),
            agents: nothing(),
            tools: Vec::new(),
            has_resources: false,
            url: None,
            task_after: TASK_AFTER,
            subscriptions_max: SUBSCRIPTIONS_MAX,
            secret: None,
        }
    }
}

impl Config {
    /// Checks a face of Rust code as the reader of `[[faces.mcp]]` does, and adds it. Names are
    /// looked up later.
    pub(crate) fn add_face(&mut self, face: McpFace) -> Vec<String> {
        let spot = Spot::nowhere(&face_text(face.name.as_deref()));
        let ids = |offered: &Offered| match offered {
            Offered::All => Vec::new(),
            Offered::Only(ids) => ids.clone(),
        };
        let named = [
            ("workflows", NameKind::Workflow, ids(&face.workflows)),
            ("agents", NameKind::Agent, ids(&face.agents)),
            ("tools", NameKind::Tool, face.tools.clone()),
        ];
        for (key, kind, names) in named {
            let spot = Spot { key: key.to_owned(), ..spot.clone() };
            let references = names.iter().map(|name| Reference::new(kind, name, spot.clone()));
            self.references.extend(references);
        }
        let mut problems = face.problems();
        if self.faces.mcp.iter().any(|other| other.name == face.name) {
            problems.push("there is another one of this name".to_owned());
        } else if self.faces.mcp.len() == FACES_MAX {
            problems.push(format!("there are more than {FACES_MAX} faces"));
        }
        let named = face_text(face.name.as_deref());
        if problems.is_empty() {
            self.coded_faces.push(face.clone());
            self.faces.mcp.push(face);
        }
        problems.into_iter().map(|problem| format!("{named}: {problem}")).collect()
    }
}

/// Names a face of Rust code in messages.
pub(crate) fn face_text(name: Option<&str>) -> String {
    match name {
        Some(name) => format!("face {name}"),
        None => "face without a name".to_owned(),
    }
}

impl McpFace {
    /// Returns the problems of a face of Rust code that the reader finds in its entries.
    fn problems(&self) -> Vec<String> {
        let offers_nothing = self.tools.is_empty()
            && [&self.workflows, &self.agents].into_iter().all(|offered| *offered == nothing());
        let nothing = offers_nothing.then(|| "offers nothing".to_owned());
        let tools = self.tools.iter().filter_map(|name| tool_problem(name));
        let tools = tools.map(|problem| format!("tools: {problem}"));
        let wait = duration_problem(self.task_after).map(|it| format!("task_after: {it}"));
        let count = i64::try_from(self.subscriptions_max);
        let is_allowed = count.is_ok_and(|count| SUBSCRIPTIONS.contains(&count));
        let subscriptions = (!is_allowed).then(|| {
            let (min, max) = (SUBSCRIPTIONS.start(), SUBSCRIPTIONS.end());
            format!("subscriptions_max: must be from {min} to {max}")
        });
        nothing.into_iter().chain(tools).chain(wait).chain(subscriptions).collect()
    }

    /// Sets the variable whose secret seals what clients keep.
    pub(crate) fn with_secret(self, variable: &str) -> Self {
        let spot = Spot::nowhere(&face_text(self.name.as_deref()));
        let secret = Some(LinkSecret { variable: variable.to_owned(), spot });
        Self { secret, ..self }
    }

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
        let refused = |problem| spot.error(variable_problem(variable, problem));
        SealKey::new(secret.as_bytes()).map_err(refused)
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
    let tools = section.get("tools").map(|entry| tools(&entry, references)).unwrap_or_default();
    if !["workflows", "agents", "tools"].into_iter().any(|key| section.has(key)) {
        section.place.refuse("offers nothing: name `workflows`, `agents` or `tools`");
    }
    let has_resources = section.flag("resources", false);
    let url = section.get("url").and_then(|entry| url(&entry));
    let task_after = section.get("task_after").and_then(|entry| entry.duration());
    let subscriptions_max = section.integer("subscriptions_max", SUBSCRIPTIONS, SUBSCRIPTIONS_MAX);
    let secret = section.get("secret").and_then(|entry| LinkSecret::read(&entry, &Takes::Secret));
    section.close();
    McpFace {
        name,
        workflows: workflows.unwrap_or_else(nothing),
        agents: agents.unwrap_or_else(nothing),
        tools,
        has_resources,
        url,
        task_after: task_after.unwrap_or(TASK_AFTER),
        subscriptions_max,
        secret,
    }
}

/// Reads names of tools. There is no word for all of them: which tools there are may be decided by
/// MCP servers.
fn tools(entry: &Entry<'_>, references: &mut Vec<Reference>) -> Vec<String> {
    let items = entry.items().unwrap_or_default();
    let names = items.iter().filter_map(|item| {
        let name = item.filled_text()?;
        if let Some(problem) = tool_problem(&name) {
            return item.refuse(problem);
        }
        references.push(Reference::new(NameKind::Tool, &name, item.place.spot()));
        Some(name)
    });
    names.collect()
}

/// Returns why clients cannot have a tool.
fn tool_problem(name: &str) -> Option<String> {
    (name == ASK_USER).then(|| format!("{ASK_USER} is for agents"))
}

fn nothing() -> Offered {
    Offered::Only(Vec::new())
}

fn url(entry: &Entry<'_>) -> Option<Url> {
    face_url(&entry.filled_text()?).map_or_else(|problem| entry.refuse(problem), Some)
}

/// Parses an address, which clients compare with the one that they have.
pub(crate) fn face_url(text: &str) -> Result<Url, String> {
    let url = web_address(text)?;
    if url.query().is_some() || url.fragment().is_some() {
        return Err("must end with the path, before ? and #".to_owned());
    }
    Ok(url)
}

/// Reads a name, which is a part of an address.
fn name(entry: &Entry<'_>) -> Option<String> {
    let name = entry.text()?;
    if !is_face_name(&name) {
        let max = FACE_NAME_CHARS_MAX;
        return entry.refuse(format!("must be 1 to {max} letters, digits, `-` or `_`"));
    }
    Some(name)
}
