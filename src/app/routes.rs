//! The routes of a server: its own, those of the configuration, those of Rust code.

use std::borrow::Cow;

use crate::api::catalogue::{Access, Answer, Catalogue, Class, Method, ROUTES, Route};
use crate::api::catalogue::{RouteName, Tag};
use crate::api::workflows::StartBody;
use crate::config::routes::path_problem;
use crate::config::{
    AgentAnswer, Config, ConfigProblem, RouteConfig, RouteTarget, WorkflowAnswer, WorkflowBody,
};
use crate::web::custom::{CustomHandler, Routes, files, shortcuts};

/// All routes, and what the added ones lead to, by their places.
#[derive(Debug)]
pub(crate) struct Assembled {
    pub(crate) catalogue: Catalogue,
    pub(crate) custom: Vec<CustomHandler>,
}

/// Puts the routes together; `registered` are those of Rust code. Refused when a path is none, or
/// when a request could mean two of them.
pub(crate) fn assemble(
    config: &Config,
    registered: &Routes,
) -> Result<Assembled, Vec<ConfigProblem>> {
    let mut assembled = Assembled { catalogue: Catalogue::default(), custom: Vec::new() };
    let mut problems = Vec::new();
    for route in &config.routes {
        let (row, handler) = configured(route, assembled.custom.len());
        if let Err(taken) = assembled.add(row, handler) {
            problems.push(route.refuse(taken));
        }
    }
    for route in registered.iter() {
        let refuse = |message: String| ConfigProblem::of_file(&format!("route {route}"), message);
        if let Some(problem) = path_problem(route.path()) {
            problems.push(refuse(format!("the path {problem}")));
        } else if let Err(taken) = assembled.add(route.row(assembled.custom.len()), route.handler())
        {
            problems.push(refuse(taken));
        }
    }
    if problems.is_empty() { Ok(assembled) } else { Err(problems) }
}

impl Assembled {
    fn add(&mut self, row: Route, handler: CustomHandler) -> Result<(), String> {
        self.catalogue.add(row)?;
        self.custom.push(handler);
        Ok(())
    }
}

/// A route of the configuration and what it leads to.
fn configured(route: &RouteConfig, index: usize) -> (Route, CustomHandler) {
    let (like, handler) = match &route.target {
        RouteTarget::Workflow { id, answer, body } => {
            let body = match body {
                WorkflowBody::Request => StartBody::Request,
                WorkflowBody::Input => StartBody::Input,
            };
            match answer {
                WorkflowAnswer::Result => {
                    (Some((RouteName::ExecuteWorkflow, id)), shortcuts::execute(id, body))
                }
                WorkflowAnswer::Stream => {
                    (Some((RouteName::StreamWorkflow, id)), shortcuts::stream(id, body))
                }
            }
        }
        RouteTarget::Agent { id, answer } => {
            let (name, handler) = asking(id, *answer);
            (Some((name, id)), handler)
        }
        RouteTarget::File(path) => (None, files::file(path.clone())),
        RouteTarget::Folder(path) => {
            let segments = route.path.matches('/').count() - 1;
            (None, files::folder(path.clone(), segments))
        }
    };
    let builtin = |(name, id): (RouteName, &String)| {
        let row = ROUTES.iter().find(|row| row.name == name)?;
        Some((row.answer, row.class, format!("{} ({id})", row.summary)))
    };
    let method = if like.is_some() { Method::Post } else { Method::Get };
    let (answer, class, summary) = like
        .and_then(builtin)
        .unwrap_or_else(|| (Answer::Text, Class::Read, "Show a file".to_owned()));
    let row = Route {
        method,
        path: Cow::Owned(route.path.clone()),
        name: RouteName::Custom(index),
        answer,
        tag: Tag::Custom,
        class,
        access: Access::Protected,
        is_owned: false,
        summary: Cow::Owned(route.summary.clone().unwrap_or(summary)),
    };
    (row, handler)
}

/// The built-in route that an agent's answers like, and the handler.
fn asking(agent: &str, answer: AgentAnswer) -> (RouteName, CustomHandler) {
    match answer {
        AgentAnswer::Text => (RouteName::GenerateText, shortcuts::generate_text(agent)),
        AgentAnswer::Stream => (RouteName::StreamText, shortcuts::stream_text(agent)),
        AgentAnswer::Chat => (RouteName::Chat, shortcuts::chat(agent)),
        AgentAnswer::Object => (RouteName::GenerateObject, shortcuts::generate_object(agent)),
        AgentAnswer::StreamObject => (RouteName::StreamObject, shortcuts::stream_object(agent)),
    }
}
