//! References between parts of the configuration, looked up when all names are known.

use std::collections::BTreeSet;
use std::fmt;

use greenroom_actors::agent::tool::ASK_USER;

use super::problem::{ConfigProblem, Spot};
use crate::nearest::nearest;

/// The kind of definition that a name refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NameKind {
    /// An agent.
    Agent,
    /// A function in Rust.
    Function,
    /// A language model.
    Model,
    /// A tool.
    Tool,
    /// A workflow.
    Workflow,
}

impl fmt::Display for NameKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Agent => "agent",
            Self::Function => "function",
            Self::Model => "model",
            Self::Tool => "tool",
            Self::Workflow => "workflow",
        })
    }
}

/// Names that can be referred to: those of the configuration, those that Rust code registers,
/// or both.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Names {
    /// Ids of agents.
    pub agents: BTreeSet<String>,
    /// Names of Rust functions.
    pub functions: BTreeSet<String>,
    /// Ids of models.
    pub models: BTreeSet<String>,
    /// Kinds of providers that check tokens.
    pub providers: BTreeSet<String>,
    /// Names of MCP servers: `NAME.` and anything is a tool of theirs.
    pub servers: BTreeSet<String>,
    /// Names of tools.
    pub tools: BTreeSet<String>,
    /// Ids of workflows.
    pub workflows: BTreeSet<String>,
}

impl Names {
    /// Returns the names of one kind.
    pub fn of(&self, kind: NameKind) -> &BTreeSet<String> {
        match kind {
            NameKind::Agent => &self.agents,
            NameKind::Function => &self.functions,
            NameKind::Model => &self.models,
            NameKind::Tool => &self.tools,
            NameKind::Workflow => &self.workflows,
        }
    }
}

/// A name of a definition at the place that refers to it.
#[derive(Debug, Clone)]
pub(crate) struct Reference {
    kind: NameKind,
    name: String,
    spot: Spot,
    /// True if a step calls it: steps cannot call the built-in tools of agents.
    is_of_step: bool,
}

impl Reference {
    pub(crate) fn new(kind: NameKind, name: &str, spot: Spot) -> Self {
        Self { kind, name: name.to_owned(), spot, is_of_step: false }
    }

    /// Returns the name of a tool that it refers to, with its place.
    pub(super) fn tool(&self) -> Option<(&str, &Spot)> {
        (self.kind == NameKind::Tool).then_some((self.name.as_str(), &self.spot))
    }

    /// Returns the reference of a step.
    pub(crate) fn of_step(self) -> Self {
        Self { is_of_step: true, ..self }
    }

    /// Returns an error if neither list has the name.
    pub(crate) fn check(&self, configured: &Names, registered: &Names) -> Option<ConfigProblem> {
        let Self { kind, name, spot, is_of_step } = self;
        if *is_of_step && *kind == NameKind::Tool && name == ASK_USER {
            let message = format!("{ASK_USER} is for agents; a step asks people with `suspend`");
            return Some(spot.error(message));
        }
        let missing = Missing::of(*kind, name, [configured, registered])?;
        Some(spot.error(missing.message).meant(missing.suggestion))
    }
}

/// The error of a name that is not defined.
pub(crate) struct Missing {
    pub(crate) message: String,
    /// The name that the author probably meant.
    pub(crate) suggestion: Option<String>,
}

impl Missing {
    /// Returns `None` if one of the lists has the name.
    pub(crate) fn of(kind: NameKind, name: &str, known: [&Names; 2]) -> Option<Self> {
        if kind == NameKind::Tool && name == ASK_USER {
            return None;
        }
        let lists = known.map(|names| names.of(kind));
        if lists.iter().any(|names| names.contains(name)) {
            return None;
        }
        // which tools a server has is known once it is connected
        let of_server = name.split_once('.').filter(|(_, tool)| !tool.is_empty());
        if kind == NameKind::Tool
            && let Some((server, _)) = of_server
            && known.iter().any(|names| names.servers.contains(server))
        {
            return None;
        }
        let state = match kind {
            NameKind::Function => "registered",
            NameKind::Agent | NameKind::Model | NameKind::Tool | NameKind::Workflow => "configured",
        };
        let built_in = (kind == NameKind::Tool).then_some(ASK_USER);
        let all = lists.into_iter().flatten().map(String::as_str).chain(built_in);
        let suggestion = nearest(name, all).or_else(|| {
            let (server, tool) = of_server.filter(|_| kind == NameKind::Tool)?;
            let servers = known.into_iter().flat_map(|names| &names.servers);
            Some(format!("{}.{tool}", nearest(server, servers.map(String::as_str))?))
        });
        // authors often write the provider's name of a model in place of the id in this file
        let others = match (kind, &suggestion) {
            (NameKind::Model, None) => listed(lists.into_iter().flatten()),
            _ => String::new(),
        };
        Some(Self { message: format!("{kind} {name} is not {state}{others}"), suggestion })
    }
}

/// Returns the first names, as the end of a message.
fn listed<'n>(names: impl Iterator<Item = &'n String>) -> String {
    const LISTED_MAX: usize = 8;
    let mut names: Vec<_> = names.map(String::as_str).take(LISTED_MAX + 1).collect();
    if let Some(last) = names.get_mut(LISTED_MAX) {
        *last = "…";
    }
    if names.is_empty() { String::new() } else { format!("; configured: {}", names.join(", ")) }
}
