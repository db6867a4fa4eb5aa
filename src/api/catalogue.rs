//! The routes as data. Binding, protection, the OpenAPI document, `Allow`, the landing page, the
//! labels of metrics and the tests read this table.

mod partial;
mod rows;

use std::borrow::Cow;
use std::sync::Arc;

pub use self::rows::ROUTES;

use crate::api::ids::decode;

/// HTTP method of a route. `Get` also answers HEAD, except for streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Method {
    Get,
    Post,
    Put,
    Patch,
    Delete,
}

impl Method {
    /// All methods.
    pub const ALL: [Self; 5] = [Self::Get, Self::Post, Self::Put, Self::Patch, Self::Delete];

    /// Returns the name in a request line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
        }
    }

    /// Parses a name in capitals.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|method| method.as_str() == name)
    }

    /// Returns true if a request may change state.
    pub fn changes(self) -> bool {
        self != Self::Get
    }
}

/// Operation of a route. Binding matches on it, so that a row without a handler does not compile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RouteName {
    ExecuteWorkflow,
    ResumeExecution,
    StreamWorkflow,
    ListExecutions,
    CountExecutions,
    CountOutcomes,
    BulkExecutions,
    ListWorkflowExecutions,
    ListVersions,
    ListEvents,
    DescribeExecution,
    ExplainExecution,
    SuspendExecution,
    ReplayExecution,
    CancelExecution,
    AttachToExecution,
    ListWorkflows,
    DescribeWorkflow,
    ListAsks,
    DescribeAsk,
    AnswerAsk,
    ClaimAsk,
    ReleaseAsk,
    AssignAsk,
    LinkToAsk,
    WatchAsks,
    ShowAskLink,
    AnswerAskLink,
    GenerateText,
    StreamText,
    Chat,
    GenerateObject,
    StreamObject,
    AttachToChat,
    CancelGeneration,
    ApproveCall,
    DescribeGeneration,
    ListAgents,
    DescribeAgent,
    Landing,
    ApiDocument,
    BrowseApi,
    BrowseApiFile,
    Console,
    ConsoleAsset,
    ConsolePlace,
    Live,
    Ready,
    WhoAmI,
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
    CallMcp,
    CallNamedMcp,
    DescribeMcp,
    DescribeNamedMcp,
    ListServers,
    RestartServer,
    AcceptTools,
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
    ListModels,
    DescribeModel,
    CompleteChat,
    Echo,
    TailLogs,
    Observe,
    /// An added route, by its index among the added ones.
    Custom(usize),
}

/// Kind of a successful response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// JSON in the envelope.
    Json,
    /// HTML or plain text.
    Text,
    /// Server-sent events.
    Events,
    WebSocket,
}

/// Need for a token if authentication is configured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Never, whatever is configured: probes have no token, and a link is one.
    Open,
    /// Only if a rule requires it: a page that hides what runs here from callers without a token.
    Page,
    /// Not unless configured.
    Public,
    /// Yes, unless configured.
    Protected,
}

/// Subject of a route: its group in the documentation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Tag {
    Agents,
    Workflows,
    Inbox,
    Tools,
    OpenAi,
    Mcp,
    Memory,
    Observability,
    System,
    Documentation,
    /// Added routes.
    Custom,
}

impl Tag {
    /// Returns the name of the group.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Agents => "Agents",
            Self::Workflows => "Workflows",
            Self::Inbox => "Inbox",
            Self::Tools => "Tools",
            Self::OpenAi => "OpenAI",
            Self::Mcp => "MCP",
            Self::Memory => "Memory",
            Self::Observability => "Observability",
            Self::System => "System",
            Self::Documentation => "Documentation",
            Self::Custom => "Custom",
        }
    }
}

/// Cost class of a request; rate limits are set per class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Class {
    /// Health checks; never limited.
    Probe,
    Read,
    Write,
    /// A workflow, a generation or a tool call, which may take long.
    Run,
    /// A connection that stays open.
    Stream,
    /// A change of the server itself.
    System,
}

impl Class {
    /// Returns the name of the class.
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

/// Built-in route that an added one repeats for one workflow or agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Likeness {
    pub name: RouteName,
    /// Id of the workflow or agent.
    pub id: Arc<str>,
    /// True if the whole body is the input of the workflow.
    pub takes_input_alone: bool,
}

/// A route.
#[derive(Debug, Clone)]
pub struct Route {
    pub method: Method,
    /// Pattern: `:name` is a variable segment, `*` at the end everything below. Also the label of
    /// its metrics.
    pub path: Cow<'static, str>,
    pub name: RouteName,
    pub answer: Answer,
    pub tag: Tag,
    pub class: Class,
    pub access: Access,
    /// True if it accesses data of users: protected if such data is private.
    pub is_owned: bool,
    pub summary: Cow<'static, str>,
    pub like: Option<Likeness>,
}

impl Route {
    /// Returns true if HEAD is answered. Not for streams: without a body they would never end.
    pub fn answers_head(&self) -> bool {
        self.method == Method::Get && matches!(self.answer, Answer::Json | Answer::Text)
    }

    /// Returns true if the path of a request matches.
    fn matches(&self, path: &str) -> bool {
        let mut pattern = self.path.split('/');
        let mut path = path.split('/');
        loop {
            match (pattern.next(), path.next()) {
                (None, None) | (Some("*"), Some(_)) => return true,
                (Some(own), Some(segment)) if own.starts_with(':') && !segment.is_empty() => {}
                (Some(own), Some(segment))
                    if own == segment || decode(segment).is_some_and(|it| it == own) => {}
                _ => return false,
            }
        }
    }

    /// Returns true if some path matches both patterns.
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

/// All routes of a server, built-in and added.
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
    /// Adds a route. Fails if a request could match another one as well.
    pub fn add(&mut self, route: Route) -> Result<(), String> {
        let is_same_place = |row: &&Route| row.path == route.path && row.method != route.method;
        // Disabled pages count as well: free paths must not depend on settings. Faces that are closed
        // leave their paths to others.
        let pages = ROUTES.iter().filter(|row| row.tag != Tag::OpenAi);
        let known = self.rows.iter().chain(pages);
        match known.filter(|row| !is_same_place(row)).find(|row| row.meets(&route.path)) {
            Some(row) => Err(format!("{route} would be answered by {row}")),
            None => {
                self.rows.push(route);
                Ok(())
            }
        }
    }

    /// Returns the routes in matching order.
    pub fn rows(&self) -> &[Route] {
        &self.rows
    }

    /// Returns the route of a request.
    pub fn of_request(&self, method: Method, path: &str) -> Option<&Route> {
        self.rows.iter().find(|row| row.method == method && row.matches(path))
    }

    /// Returns the routes of a path pattern.
    pub fn at<'a>(&'a self, path: &'a str) -> impl Iterator<Item = &'a Route> {
        self.rows.iter().filter(move |row| row.path == path)
    }

    /// Finds a route that matches the path of a request.
    pub fn of_path(&self, path: &str) -> Option<&Route> {
        self.rows.iter().find(|row| row.meets(path))
    }

    /// Returns the `Allow` header of a path pattern.
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
    fn a_request_is_of_the_first_route_that_matches() {
        let catalogue = Catalogue::default();
        let rows = [
            (Method::Get, "/workflows/executions", Some("GET /workflows/executions")),
            (Method::Get, "/workflows/order", Some("GET /workflows/:id")),
            (Method::Post, "/workflows/order", None),
            (Method::Get, "/workflows/", None),
            (Method::Get, "/console/a/b", Some("GET /console/*")),
            (Method::Get, "/nowhere", None),
            (
                Method::Get,
                "/%77orkflows/executions/count%73",
                Some("GET /workflows/executions/counts"),
            ),
        ];
        for (method, path, expected) in rows {
            let route = catalogue.of_request(method, path).map(ToString::to_string);
            assert_eq!(route.as_deref(), expected, "{path}");
        }
    }

    #[test]
    fn a_route_that_overlaps_another_is_refused() {
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
