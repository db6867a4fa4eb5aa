//! The routes as data: binding, protection, the OpenAPI document, `Allow`, the landing page, the
//! labels of metrics and the tests read this one table.

mod rows;

use std::borrow::Cow;
use std::sync::Arc;

pub use self::rows::ROUTES;

/// A method that a route answers to. `Get` answers HEAD as well where the answer ends by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Method {
    Get,
    Post,
    Put,
    Patch,
    Delete,
}

impl Method {
    /// Every method that a route can have.
    pub const ALL: [Self; 5] = [Self::Get, Self::Post, Self::Put, Self::Patch, Self::Delete];

    /// The method's name in a request line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
        }
    }

    /// The method of this name, in capitals.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|method| method.as_str() == name)
    }

    /// Whether a request may change something.
    pub fn changes(self) -> bool {
        self != Self::Get
    }
}

/// What a route does: binding matches on it, so that a row without a handler does not build.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RouteName {
    ExecuteWorkflow,
    ResumeExecution,
    StreamWorkflow,
    ListExecutions,
    CountExecutions,
    ListWorkflowExecutions,
    DescribeExecution,
    ExplainExecution,
    SuspendExecution,
    ReplayExecution,
    CancelExecution,
    AttachToExecution,
    ListWorkflows,
    DescribeWorkflow,
    GenerateText,
    StreamText,
    Chat,
    GenerateObject,
    StreamObject,
    AttachToChat,
    CancelGeneration,
    ListAgents,
    DescribeAgent,
    Landing,
    ApiDocument,
    BrowseApi,
    BrowseApiFile,
    Live,
    Ready,
    CheckUpdates,
    InstallUpdates,
    SetUpObservability,
    ShowObservability,
    ListTraces,
    DescribeTrace,
    ListTraceLogs,
    DescribeSpan,
    ListSpanLogs,
    ListLogRecords,
    ListLogs,
    ShowMetrics,
    ShowHistory,
    ListTools,
    ExecuteTool,
    ListConversations,
    CreateConversation,
    DescribeConversation,
    ChangeConversation,
    DeleteConversation,
    ListMessages,
    ShowWorkingMemory,
    SetWorkingMemory,
    CloneConversation,
    SearchMessages,
    ForgetUser,
    Echo,
    TailLogs,
    Observe,
    /// One that whoever runs the server added, by its place among those.
    Custom(usize),
}

/// What kind of answer a route gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// JSON in the envelope.
    Json,
    /// A page or a word of text.
    Text,
    /// Server-sent events.
    Events,
    WebSocket,
}

/// Whether a route needs a token once there is somebody who checks them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Never, whatever the configuration says: probes have no token.
    Open,
    /// Only where a rule says so: a page that tells nothing of this server without a token.
    Page,
    /// Not by default.
    Public,
    /// By default.
    Protected,
}

/// What a route is about: its group in the documentation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Tag {
    Agents,
    Workflows,
    Tools,
    Memory,
    Observability,
    System,
    Documentation,
    /// What whoever runs the server added.
    Custom,
}

impl Tag {
    /// The name of the group.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Agents => "Agents",
            Self::Workflows => "Workflows",
            Self::Tools => "Tools",
            Self::Memory => "Memory",
            Self::Observability => "Observability",
            Self::System => "System",
            Self::Documentation => "Documentation",
            Self::Custom => "Custom",
        }
    }
}

/// What a call costs the server: requests are limited by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Class {
    /// Whether the server lives: never limited.
    Probe,
    Read,
    Write,
    /// Work that may take long: a workflow, a generation, a tool.
    Run,
    /// A connection that stays open.
    Stream,
    /// Changes the server itself.
    System,
}

impl Class {
    /// The name of the class.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Probe => "probe",
            Self::Read => "read",
            Self::Write => "write",
            Self::Run => "run",
            Self::Stream => "stream",
            Self::System => "system",
        }
    }
}

/// A route of the server itself that an added one is like, but for one workflow or agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Likeness {
    pub name: RouteName,
    /// The workflow or the agent.
    pub id: Arc<str>,
    /// Whether the body is the input of the workflow and nothing else.
    pub takes_input_alone: bool,
}

/// One route.
#[derive(Debug, Clone)]
pub struct Route {
    pub method: Method,
    /// With `:name` for a segment that varies, and `*` at the end for everything below. Also the
    /// label of its metrics.
    pub path: Cow<'static, str>,
    pub name: RouteName,
    pub answer: Answer,
    pub tag: Tag,
    pub class: Class,
    pub access: Access,
    /// Whether it is about things of users: protected where they are seen by their users alone.
    pub is_owned: bool,
    pub summary: Cow<'static, str>,
    pub like: Option<Likeness>,
}

impl Route {
    /// Whether HEAD makes sense: a stream without a body would never end.
    pub fn answers_head(&self) -> bool {
        self.method == Method::Get && matches!(self.answer, Answer::Json | Answer::Text)
    }

    /// Whether some path would be both this route's and the other's.
    fn meets(&self, other: &str) -> bool {
        let mut left = self.path.split('/');
        let mut right = other.split('/');
        loop {
            match (left.next(), right.next()) {
                (None, None) | (Some("*"), Some(_)) | (Some(_), Some("*")) => return true,
                (Some(a), Some(b)) if a == b || a.starts_with(':') || b.starts_with(':') => {}
                _ => return false,
            }
        }
    }
}

impl std::fmt::Display for Route {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.method.as_str(), self.path)
    }
}

/// All routes of one server: its own and those that were added.
#[derive(Debug, Clone)]
pub struct Catalogue {
    rows: Vec<Route>,
}

impl Default for Catalogue {
    fn default() -> Self {
        Self { rows: ROUTES.to_vec() }
    }
}

impl Catalogue {
    /// Takes the pages of `/ui` out.
    #[must_use]
    pub fn without_ui(mut self) -> Self {
        let is_ui = |name| matches!(name, RouteName::BrowseApi | RouteName::BrowseApiFile);
        self.rows.retain(|row| !is_ui(row.name));
        self
    }

    /// Takes the metrics out.
    #[must_use]
    pub fn without_metrics(mut self) -> Self {
        self.rows.retain(|row| row.name != RouteName::ShowMetrics);
        self
    }

    /// Adds a route. Refused when a request could mean another one as well.
    pub fn add(&mut self, route: Route) -> Result<(), String> {
        let is_same_place = |row: &&Route| row.path == route.path && row.method != route.method;
        // Also against the pages that are switched off: what is free must not depend on that.
        let known = self.rows.iter().chain(ROUTES.iter());
        match known.filter(|row| !is_same_place(row)).find(|row| row.meets(&route.path)) {
            Some(row) => Err(format!("{route} would be answered by {row}")),
            None => {
                self.rows.push(route);
                Ok(())
            }
        }
    }

    /// The routes, in the order in which they are tried.
    pub fn rows(&self) -> &[Route] {
        &self.rows
    }

    /// The routes of a path pattern.
    pub fn at<'a>(&'a self, path: &'a str) -> impl Iterator<Item = &'a Route> {
        self.rows.iter().filter(move |row| row.path == path)
    }

    /// A route that takes this path of a request.
    pub fn of_path(&self, path: &str) -> Option<&Route> {
        self.rows.iter().find(|row| row.meets(path))
    }

    /// The `Allow` header of a path pattern.
    pub fn allow_of(&self, path: &str) -> String {
        let mut names: Vec<&str> = Vec::new();
        for row in self.at(path) {
            names.push(row.method.as_str());
            if row.answers_head() {
                names.push("HEAD");
            }
        }
        names.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn no_two_rows_share_a_name_or_a_method_and_path() {
        let names: HashSet<_> = ROUTES.iter().map(|row| row.name).collect();
        let places: HashSet<_> = ROUTES.iter().map(|row| (row.method, &row.path)).collect();
        assert_eq!((names.len(), places.len()), (ROUTES.len(), ROUTES.len()));
    }

    #[test]
    fn allow_names_the_methods_of_a_path() {
        let catalogue = Catalogue::default();
        assert_eq!(catalogue.allow_of("/workflows/:id/execute"), "POST");
        assert_eq!(catalogue.allow_of("/workflows"), "GET, HEAD");
        assert_eq!(catalogue.allow_of("/ws"), "GET");
        let conversation = "/api/memory/conversations/:id";
        assert_eq!(catalogue.allow_of(conversation), "GET, HEAD, PATCH, DELETE");
    }

    fn custom(method: Method, path: &'static str) -> Route {
        Route { method, path: Cow::Borrowed(path), name: RouteName::Custom(0), ..ROUTES[0].clone() }
    }

    #[test]
    fn a_route_is_added_where_no_request_could_mean_another() {
        let rows = [
            (Method::Post, "/open/add", None),
            (Method::Get, "/open/add", None),
            (Method::Post, "/agents/:id/rate", None),
            (Method::Put, "/agents/:id", None),
            (Method::Post, "/open/add", Some("POST /open/add")),
            (Method::Get, "/workflows/mine", Some("GET /workflows/:id")),
            (Method::Get, "/workflows/:name", Some("GET /workflows/executions")),
            (Method::Get, "/ui/extra", Some("GET /ui/:file")),
            (Method::Get, "/agents/*", Some("POST /agents/:id/text")),
            (Method::Get, "/files/*", None),
            (Method::Get, "/files/a/b", Some("GET /files/*")),
        ];
        let mut catalogue = Catalogue::default().without_ui();
        for (method, path, other) in rows {
            let refused = catalogue.add(custom(method, path)).err();
            let expected = other
                .map(|other| format!("{} {path} would be answered by {other}", method.as_str()));
            assert_eq!(refused, expected);
        }
    }
}
