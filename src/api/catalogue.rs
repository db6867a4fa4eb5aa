//! The routes as data: binding, `Allow`, the landing page and the tests read this one table.

/// A method that a route answers to. `Get` answers HEAD as well where the answer ends by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Method {
    Get,
    Post,
    Patch,
    Delete,
}

impl Method {
    /// The method's name in a request line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
        }
    }
}

/// What a route does: binding matches on it, so that a row without a handler does not build.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RouteName {
    Landing,
    Live,
    Ready,
    ListAgents,
    DescribeAgent,
    GenerateText,
    StreamText,
    Chat,
    AttachToChat,
    GenerateObject,
    StreamObject,
    CancelGeneration,
    ListWorkflows,
    DescribeWorkflow,
    ExecuteWorkflow,
    StreamWorkflow,
    ListExecutions,
    ListWorkflowExecutions,
    DescribeExecution,
    SuspendExecution,
    ResumeExecution,
    CancelExecution,
    AttachToExecution,
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
    Observe,
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

/// One route.
#[derive(Debug, Clone, Copy)]
pub struct Route {
    pub method: Method,
    /// With `:name` for a segment that varies.
    pub path: &'static str,
    pub name: RouteName,
    pub answer: Answer,
    pub summary: &'static str,
}

impl Route {
    /// Whether HEAD makes sense: a stream without a body would never end.
    pub fn answers_head(&self) -> bool {
        match (self.method, self.answer) {
            (Method::Get, Answer::Json | Answer::Text) => true,
            (Method::Get, Answer::Events | Answer::WebSocket)
            | (Method::Post | Method::Patch | Method::Delete, _) => false,
        }
    }
}

const fn route(
    method: Method,
    path: &'static str,
    name: RouteName,
    answer: Answer,
    summary: &'static str,
) -> Route {
    Route { method, path, name, answer, summary }
}

/// Every route. Paths are tried in this order: the busiest first, fixed segments before varying
/// ones.
pub const ROUTES: &[Route] = &[
    route(
        Method::Post,
        "/workflows/:id/execute",
        RouteName::ExecuteWorkflow,
        Answer::Json,
        "Run a workflow until it ends or suspends",
    ),
    route(
        Method::Post,
        "/workflows/:id/executions/:executionId/resume",
        RouteName::ResumeExecution,
        Answer::Json,
        "Resume a suspended execution",
    ),
    route(
        Method::Post,
        "/workflows/:id/stream",
        RouteName::StreamWorkflow,
        Answer::Events,
        "Run a workflow and stream its events",
    ),
    route(
        Method::Get,
        "/workflows/executions",
        RouteName::ListExecutions,
        Answer::Json,
        "List executions of all workflows, newest first",
    ),
    route(
        Method::Get,
        "/workflows/:id/executions",
        RouteName::ListWorkflowExecutions,
        Answer::Json,
        "List executions of a workflow, newest first",
    ),
    route(
        Method::Get,
        "/workflows/:id/executions/:executionId/state",
        RouteName::DescribeExecution,
        Answer::Json,
        "Show the state of an execution",
    ),
    route(
        Method::Post,
        "/workflows/:id/executions/:executionId/suspend",
        RouteName::SuspendExecution,
        Answer::Json,
        "Suspend a running execution",
    ),
    route(
        Method::Post,
        "/workflows/:id/executions/:executionId/cancel",
        RouteName::CancelExecution,
        Answer::Json,
        "Cancel an execution",
    ),
    route(
        Method::Get,
        "/workflows/:id/executions/:executionId/stream",
        RouteName::AttachToExecution,
        Answer::Events,
        "Stream the events of an execution, from the first or from a given one on",
    ),
    route(
        Method::Get,
        "/workflows",
        RouteName::ListWorkflows,
        Answer::Json,
        "List the registered workflows",
    ),
    route(
        Method::Get,
        "/workflows/:id",
        RouteName::DescribeWorkflow,
        Answer::Json,
        "Show a workflow, its steps and schemas",
    ),
    route(
        Method::Post,
        "/agents/:id/text",
        RouteName::GenerateText,
        Answer::Json,
        "Let an agent generate a text",
    ),
    route(
        Method::Post,
        "/agents/:id/stream",
        RouteName::StreamText,
        Answer::Events,
        "Let an agent generate a text and stream what it says and does",
    ),
    route(
        Method::Post,
        "/agents/:id/chat",
        RouteName::Chat,
        Answer::Events,
        "Let an agent answer in a chat, as a UI message stream",
    ),
    route(
        Method::Post,
        "/agents/:id/object",
        RouteName::GenerateObject,
        Answer::Json,
        "Let an agent generate an object that meets a schema",
    ),
    route(
        Method::Post,
        "/agents/:id/stream-object",
        RouteName::StreamObject,
        Answer::Events,
        "Let an agent generate an object and stream what there is of it",
    ),
    route(
        Method::Get,
        "/agents/:id/chat/:conversationId/stream",
        RouteName::AttachToChat,
        Answer::Events,
        "Follow the chat that runs in a conversation, from its first word on",
    ),
    route(
        Method::Post,
        "/agents/:id/generations/:generationId/cancel",
        RouteName::CancelGeneration,
        Answer::Json,
        "Cancel a generation",
    ),
    route(
        Method::Get,
        "/agents",
        RouteName::ListAgents,
        Answer::Json,
        "List the registered agents",
    ),
    route(Method::Get, "/agents/:id", RouteName::DescribeAgent, Answer::Json, "Show an agent"),
    route(Method::Get, "/", RouteName::Landing, Answer::Text, "This page"),
    route(Method::Get, "/livez", RouteName::Live, Answer::Text, "Whether the process answers"),
    route(
        Method::Get,
        "/readyz",
        RouteName::Ready,
        Answer::Text,
        "Whether the server takes new work",
    ),
    route(
        Method::Get,
        "/agents/:id/history",
        RouteName::ShowHistory,
        Answer::Json,
        "Show what an agent has generated, newest first",
    ),
    route(Method::Get, "/tools", RouteName::ListTools, Answer::Json, "List the registered tools"),
    route(
        Method::Post,
        "/tools/:name/execute",
        RouteName::ExecuteTool,
        Answer::Json,
        "Call a tool directly",
    ),
    route(
        Method::Get,
        "/api/memory/conversations",
        RouteName::ListConversations,
        Answer::Json,
        "List conversations of an agent, newest change first",
    ),
    route(
        Method::Post,
        "/api/memory/conversations",
        RouteName::CreateConversation,
        Answer::Json,
        "Create a conversation",
    ),
    route(
        Method::Get,
        "/api/memory/conversations/:id",
        RouteName::DescribeConversation,
        Answer::Json,
        "Show a conversation",
    ),
    route(
        Method::Patch,
        "/api/memory/conversations/:id",
        RouteName::ChangeConversation,
        Answer::Json,
        "Change the title or the metadata of a conversation",
    ),
    route(
        Method::Delete,
        "/api/memory/conversations/:id",
        RouteName::DeleteConversation,
        Answer::Json,
        "Delete a conversation with its messages",
    ),
    route(
        Method::Get,
        "/api/memory/conversations/:id/messages",
        RouteName::ListMessages,
        Answer::Json,
        "Show the newest messages of a conversation, oldest first",
    ),
    route(
        Method::Get,
        "/api/memory/conversations/:id/working-memory",
        RouteName::ShowWorkingMemory,
        Answer::Json,
        "Show what an agent keeps in mind of a conversation",
    ),
    route(
        Method::Post,
        "/api/memory/conversations/:id/working-memory",
        RouteName::SetWorkingMemory,
        Answer::Json,
        "Set what an agent keeps in mind of a conversation",
    ),
    route(
        Method::Post,
        "/api/memory/conversations/:id/clone",
        RouteName::CloneConversation,
        Answer::Json,
        "Copy a conversation under another id",
    ),
    route(
        Method::Get,
        "/api/memory/search",
        RouteName::SearchMessages,
        Answer::Json,
        "Find messages that hold a text, newest first",
    ),
    route(
        Method::Delete,
        "/api/memory/users/:userId",
        RouteName::ForgetUser,
        Answer::Json,
        "Delete a user's conversations and generations",
    ),
    route(Method::Get, "/ws", RouteName::Echo, Answer::WebSocket, "Connection test and echo"),
    route(
        Method::Get,
        "/ws/observability",
        RouteName::Observe,
        Answer::WebSocket,
        "Spans of workflows and their steps as they happen",
    ),
];

/// The `Allow` header of a path pattern.
pub fn allow_of(path: &str) -> String {
    let mut names: Vec<&str> = Vec::new();
    for row in ROUTES.iter().filter(|row| row.path == path) {
        names.push(row.method.as_str());
        if row.answers_head() {
            names.push("HEAD");
        }
    }
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn no_two_rows_share_a_name_or_a_method_and_path() {
        let names: HashSet<_> = ROUTES.iter().map(|row| row.name).collect();
        let places: HashSet<_> = ROUTES.iter().map(|row| (row.method, row.path)).collect();
        assert_eq!((names.len(), places.len()), (ROUTES.len(), ROUTES.len()));
    }

    #[test]
    fn allow_names_the_methods_of_a_path() {
        assert_eq!(allow_of("/workflows/:id/execute"), "POST");
        assert_eq!(allow_of("/workflows"), "GET, HEAD");
        assert_eq!(allow_of("/ws"), "GET");
        assert_eq!(allow_of("/api/memory/conversations/:id"), "GET, HEAD, PATCH, DELETE");
    }
}
