//! `[faces.openai]`: agents and workflows as models of OpenAI's Chat Completions API.

use super::offered;
use crate::config::names::{NameKind, Reference};
use crate::config::section::Section;
use crate::faces::OpenAiFace;

pub(super) fn read(section: Section<'_>, references: &mut Vec<Reference>) -> OpenAiFace {
    let default = OpenAiFace::default();
    let agents = offered(&section, "agents", NameKind::Agent, references);
    let workflows = offered(&section, "workflows", NameKind::Workflow, references);
    let face = OpenAiFace {
        agents: agents.unwrap_or(default.agents),
        workflows: workflows.unwrap_or(default.workflows),
        tools_max: section.integer("tools_max", 0..=1000, default.tools_max),
    };
    section.close();
    face
}
