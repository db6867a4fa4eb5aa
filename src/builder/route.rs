//! Routes to workflows, agents and files, built in Rust.

use std::path::PathBuf;

use crate::config::routes::Destination;
use crate::config::{
    AgentAnswer, Config, ConfigProblem, RouteTarget, WorkflowAnswer, WorkflowBody,
};

/// Builder of a route to a workflow, an agent or files, for [`crate::Greenroom::route`]: what
/// `[[routes]]` defines in a file. Routes with handlers are [added](crate::Greenroom::routes) with
/// actix-web.
///
/// ```
/// use greenroom::Greenroom;
/// use greenroom::builder::{AgentAnswer, Route};
///
/// let server = Greenroom::new()
///     // a webhook: its body is the input of the workflow
///     .route(Route::workflow("/hooks/orders", "order").takes_input().summary("Takes an order"))
///     .route(Route::agent("/chat", "desk").answer(AgentAnswer::Chat))
///     .route(Route::files("/site/*", "site"));
/// # drop(server);
/// ```
#[derive(Debug, Clone)]
pub struct Route {
    path: String,
    destination: Destination,
    summary: Option<String>,
    /// Settings that do not fit the target.
    misfits: Vec<&'static str>,
}

/// Answer of a [`Route`], which depends on its target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum RouteAnswer {
    /// Of a workflow.
    Workflow(WorkflowAnswer),
    /// Of an agent.
    Agent(AgentAnswer),
}

impl From<WorkflowAnswer> for RouteAnswer {
    fn from(answer: WorkflowAnswer) -> Self {
        Self::Workflow(answer)
    }
}

impl From<AgentAnswer> for RouteAnswer {
    fn from(answer: AgentAnswer) -> Self {
        Self::Agent(answer)
    }
}

impl Route {
    /// Creates a POST that runs a workflow and answers with its result. The body is that of
    /// `POST /workflows/:id/execute`.
    pub fn workflow(path: impl Into<String>, workflow: impl Into<String>) -> Self {
        let (answer, body) = (WorkflowAnswer::Result, WorkflowBody::Request);
        Self::to(path, RouteTarget::Workflow { id: workflow.into(), answer, body })
    }

    /// Creates a POST that calls an agent and answers with its text.
    pub fn agent(path: impl Into<String>, agent: impl Into<String>) -> Self {
        Self::to(path, RouteTarget::Agent { id: agent.into(), answer: AgentAnswer::Text })
    }

    /// Creates a GET of a file, or of the files in a folder; a path to a folder ends in `/*`. The
    /// place is relative to the working directory of the server.
    pub fn files(path: impl Into<String>, place: impl Into<PathBuf>) -> Self {
        Self::new(path, Destination::Files(place.into()))
    }

    fn to(path: impl Into<String>, target: RouteTarget) -> Self {
        Self::new(path, Destination::Definition(target))
    }

    fn new(path: impl Into<String>, destination: Destination) -> Self {
        Self { path: path.into(), destination, summary: None, misfits: Vec::new() }
    }

    /// Sets the answer: a [`WorkflowAnswer`] or an [`AgentAnswer`], as the target is.
    pub fn answer(mut self, chosen: impl Into<RouteAnswer>) -> Self {
        match (&mut self.destination, chosen.into()) {
            (
                Destination::Definition(RouteTarget::Workflow { answer, .. }),
                RouteAnswer::Workflow(chosen),
            ) => *answer = chosen,
            (
                Destination::Definition(RouteTarget::Agent { answer, .. }),
                RouteAnswer::Agent(chosen),
            ) => *answer = chosen,
            (_, RouteAnswer::Workflow(_)) => self.misfits.push("answer: is one of a workflow"),
            (_, RouteAnswer::Agent(_)) => self.misfits.push("answer: is one of an agent"),
        }
        self
    }

    /// Takes the body as the input of the workflow, without options around it.
    pub fn takes_input(mut self) -> Self {
        match &mut self.destination {
            Destination::Definition(RouteTarget::Workflow { body, .. }) => {
                *body = WorkflowBody::Input;
            }
            _ => self.misfits.push("takes_input: only a workflow has an input"),
        }
        self
    }

    /// Sets the one-line summary for the API document.
    pub fn summary(mut self, summary: impl Into<String>) -> Self {
        self.summary = Some(summary.into());
        self
    }

    /// Adds it to a configuration, or returns the problems.
    pub(crate) fn add_to(self, config: &mut Config) -> Vec<ConfigProblem> {
        let Self { path, destination, summary, misfits } = self;
        if misfits.is_empty() {
            return config.add_route(path, destination, summary);
        }
        let route = format!("route {path}");
        misfits.into_iter().map(|misfit| ConfigProblem::of_file(&route, misfit)).collect()
    }
}
