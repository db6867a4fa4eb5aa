//! The rows of the catalogue.

use std::borrow::Cow;

use super::{Access, Answer, Class, Method, Route, RouteName, Tag};

/// Every route that the server itself has. Paths are tried in this order: the busiest first, fixed
/// segments before varying ones.
pub const ROUTES: &[Route] = &[
    post(
        "/workflows/:id/execute",
        RouteName::ExecuteWorkflow,
        Answer::Json,
        Tag::Workflows,
        "Run a workflow until it ends or suspends",
    )
    .protected()
    .costing(Class::Run),
    post(
        "/workflows/:id/executions/:executionId/resume",
        RouteName::ResumeExecution,
        Answer::Json,
        Tag::Workflows,
        "Resume a suspended execution",
    )
    .owned()
    .costing(Class::Run),
    post(
        "/workflows/:id/stream",
        RouteName::StreamWorkflow,
        Answer::Events,
        Tag::Workflows,
        "Run a workflow and stream its events",
    )
    .protected()
    .costing(Class::Run),
    get(
        "/workflows/executions",
        RouteName::ListExecutions,
        Answer::Json,
        Tag::Workflows,
        "List executions of all workflows, newest first",
    )
    .owned(),
    get(
        "/workflows/:id/executions",
        RouteName::ListWorkflowExecutions,
        Answer::Json,
        Tag::Workflows,
        "List executions of a workflow, newest first",
    )
    .owned(),
    get(
        "/workflows/:id/executions/:executionId/state",
        RouteName::DescribeExecution,
        Answer::Json,
        Tag::Workflows,
        "Show the state of an execution",
    )
    .owned(),
    post(
        "/workflows/:id/executions/:executionId/suspend",
        RouteName::SuspendExecution,
        Answer::Json,
        Tag::Workflows,
        "Suspend a running execution",
    )
    .owned(),
    post(
        "/workflows/:id/executions/:executionId/cancel",
        RouteName::CancelExecution,
        Answer::Json,
        Tag::Workflows,
        "Cancel an execution",
    )
    .protected()
    .owned(),
    get(
        "/workflows/:id/executions/:executionId/stream",
        RouteName::AttachToExecution,
        Answer::Events,
        Tag::Workflows,
        "Stream the events of an execution, from the first or from a given one on",
    )
    .owned(),
    get(
        "/workflows",
        RouteName::ListWorkflows,
        Answer::Json,
        Tag::Workflows,
        "List the registered workflows",
    ),
    get(
        "/workflows/:id",
        RouteName::DescribeWorkflow,
        Answer::Json,
        Tag::Workflows,
        "Show a workflow, its steps and schemas",
    ),
    post(
        "/agents/:id/text",
        RouteName::GenerateText,
        Answer::Json,
        Tag::Agents,
        "Let an agent generate a text",
    )
    .protected()
    .costing(Class::Run),
    post(
        "/agents/:id/stream",
        RouteName::StreamText,
        Answer::Events,
        Tag::Agents,
        "Let an agent generate a text and stream what it says and does",
    )
    .protected()
    .costing(Class::Run),
    post(
        "/agents/:id/chat",
        RouteName::Chat,
        Answer::Events,
        Tag::Agents,
        "Let an agent answer in a chat, as a UI message stream",
    )
    .protected()
    .costing(Class::Run),
    post(
        "/agents/:id/object",
        RouteName::GenerateObject,
        Answer::Json,
        Tag::Agents,
        "Let an agent generate an object that meets a schema",
    )
    .protected()
    .costing(Class::Run),
    post(
        "/agents/:id/stream-object",
        RouteName::StreamObject,
        Answer::Events,
        Tag::Agents,
        "Let an agent generate an object and stream what there is of it",
    )
    .protected()
    .costing(Class::Run),
    get(
        "/agents/:id/chat/:conversationId/stream",
        RouteName::AttachToChat,
        Answer::Events,
        Tag::Agents,
        "Follow the chat that runs in a conversation, from its first word on",
    )
    .protected()
    .owned(),
    post(
        "/agents/:id/generations/:generationId/cancel",
        RouteName::CancelGeneration,
        Answer::Json,
        Tag::Agents,
        "Cancel a generation",
    )
    .protected()
    .owned(),
    get("/agents", RouteName::ListAgents, Answer::Json, Tag::Agents, "List the registered agents"),
    get("/agents/:id", RouteName::DescribeAgent, Answer::Json, Tag::Agents, "Show an agent"),
    get("/", RouteName::Landing, Answer::Text, Tag::Documentation, "This page"),
    get(
        "/doc",
        RouteName::ApiDocument,
        Answer::Json,
        Tag::Documentation,
        "The OpenAPI document of this server",
    ),
    get("/ui", RouteName::BrowseApi, Answer::Text, Tag::Documentation, "Browse and try the API"),
    get(
        "/ui/:file",
        RouteName::BrowseApiFile,
        Answer::Text,
        Tag::Documentation,
        "The files of /ui",
    ),
    get("/livez", RouteName::Live, Answer::Text, Tag::System, "Whether the process answers").open(),
    get(
        "/readyz",
        RouteName::Ready,
        Answer::Text,
        Tag::System,
        "Whether the server takes new work",
    )
    .open(),
    get("/updates", RouteName::CheckUpdates, Answer::Json, Tag::System, "Check for updates"),
    post("/updates", RouteName::InstallUpdates, Answer::Json, Tag::System, "Install updates")
        .costing(Class::System),
    post(
        "/setup-observability",
        RouteName::SetUpObservability,
        Answer::Json,
        Tag::System,
        "Write the keys of the observability service into the environment file",
    )
    .costing(Class::System),
    get(
        "/agents/:id/history",
        RouteName::ShowHistory,
        Answer::Json,
        Tag::Agents,
        "Show what an agent has generated, newest first",
    )
    .owned(),
    get("/tools", RouteName::ListTools, Answer::Json, Tag::Tools, "List the registered tools"),
    post(
        "/tools/:name/execute",
        RouteName::ExecuteTool,
        Answer::Json,
        Tag::Tools,
        "Call a tool directly",
    )
    .protected()
    .costing(Class::Run),
    get(
        "/api/memory/conversations",
        RouteName::ListConversations,
        Answer::Json,
        Tag::Memory,
        "List conversations of an agent, newest change first",
    )
    .protected()
    .owned(),
    post(
        "/api/memory/conversations",
        RouteName::CreateConversation,
        Answer::Json,
        Tag::Memory,
        "Create a conversation",
    )
    .protected()
    .owned(),
    get(
        "/api/memory/conversations/:id",
        RouteName::DescribeConversation,
        Answer::Json,
        Tag::Memory,
        "Show a conversation",
    )
    .protected()
    .owned(),
    patch(
        "/api/memory/conversations/:id",
        RouteName::ChangeConversation,
        Answer::Json,
        Tag::Memory,
        "Change the title or the metadata of a conversation",
    )
    .protected()
    .owned(),
    delete(
        "/api/memory/conversations/:id",
        RouteName::DeleteConversation,
        Answer::Json,
        Tag::Memory,
        "Delete a conversation with its messages",
    )
    .protected()
    .owned(),
    get(
        "/api/memory/conversations/:id/messages",
        RouteName::ListMessages,
        Answer::Json,
        Tag::Memory,
        "Show the newest messages of a conversation, oldest first",
    )
    .protected()
    .owned(),
    get(
        "/api/memory/conversations/:id/working-memory",
        RouteName::ShowWorkingMemory,
        Answer::Json,
        Tag::Memory,
        "Show what an agent keeps in mind of a conversation",
    )
    .protected()
    .owned(),
    post(
        "/api/memory/conversations/:id/working-memory",
        RouteName::SetWorkingMemory,
        Answer::Json,
        Tag::Memory,
        "Set what an agent keeps in mind of a conversation",
    )
    .protected()
    .owned(),
    post(
        "/api/memory/conversations/:id/clone",
        RouteName::CloneConversation,
        Answer::Json,
        Tag::Memory,
        "Copy a conversation under another id",
    )
    .protected()
    .owned(),
    get(
        "/api/memory/search",
        RouteName::SearchMessages,
        Answer::Json,
        Tag::Memory,
        "Find messages that hold a text, newest first",
    )
    .protected()
    .owned(),
    delete(
        "/api/memory/users/:userId",
        RouteName::ForgetUser,
        Answer::Json,
        Tag::Memory,
        "Delete a user's conversations and generations",
    )
    .protected()
    .owned(),
    get(
        "/observability/status",
        RouteName::ShowObservability,
        Answer::Json,
        Tag::Observability,
        "Show what can be observed, and in which environment",
    ),
    get("/ws", RouteName::Echo, Answer::WebSocket, Tag::Observability, "Connection test and echo"),
    get(
        "/ws/observability",
        RouteName::Observe,
        Answer::WebSocket,
        Tag::Observability,
        "Spans of workflows and their steps as they happen",
    )
    .owned(),
];

const fn get(
    path: &'static str,
    name: RouteName,
    answer: Answer,
    tag: Tag,
    summary: &'static str,
) -> Route {
    let class = match answer {
        Answer::Json | Answer::Text => Class::Read,
        Answer::Events | Answer::WebSocket => Class::Stream,
    };
    row(Method::Get, path, name, answer, tag, class, summary)
}

const fn post(
    path: &'static str,
    name: RouteName,
    answer: Answer,
    tag: Tag,
    summary: &'static str,
) -> Route {
    row(Method::Post, path, name, answer, tag, Class::Write, summary)
}

const fn patch(
    path: &'static str,
    name: RouteName,
    answer: Answer,
    tag: Tag,
    summary: &'static str,
) -> Route {
    row(Method::Patch, path, name, answer, tag, Class::Write, summary)
}

const fn delete(
    path: &'static str,
    name: RouteName,
    answer: Answer,
    tag: Tag,
    summary: &'static str,
) -> Route {
    row(Method::Delete, path, name, answer, tag, Class::Write, summary)
}

const fn row(
    method: Method,
    path: &'static str,
    name: RouteName,
    answer: Answer,
    tag: Tag,
    class: Class,
    summary: &'static str,
) -> Route {
    Route {
        method,
        path: Cow::Borrowed(path),
        name,
        answer,
        tag,
        class,
        access: Access::Public,
        is_owned: false,
        summary: Cow::Borrowed(summary),
        like: None,
    }
}

impl Route {
    const fn open(mut self) -> Self {
        self.access = Access::Open;
        self.class = Class::Probe;
        self
    }

    const fn protected(mut self) -> Self {
        self.access = Access::Protected;
        self
    }

    const fn owned(mut self) -> Self {
        self.is_owned = true;
        self
    }

    const fn costing(mut self, class: Class) -> Self {
        self.class = class;
        self
    }
}
