//! The rows of the catalogue.

use std::borrow::Cow;

use super::Method::{Delete, Get, Patch, Post, Put};
use super::{Access, Answer, Class, Method, Route, RouteName, Tag};

/// Every route that the server itself has. Paths are tried in this order: the busiest first, fixed
/// segments before varying ones.
pub const ROUTES: &[Route] = &[
    row(
        Post,
        "/workflows/:id/execute",
        RouteName::ExecuteWorkflow,
        Answer::Json,
        Tag::Workflows,
        "Run a workflow until it ends or suspends",
    )
    .protected()
    .costing(Class::Run),
    row(
        Post,
        "/workflows/:id/executions/:executionId/resume",
        RouteName::ResumeExecution,
        Answer::Json,
        Tag::Workflows,
        "Resume a suspended execution",
    )
    .owned()
    .costing(Class::Run),
    row(
        Post,
        "/workflows/:id/stream",
        RouteName::StreamWorkflow,
        Answer::Events,
        Tag::Workflows,
        "Run a workflow and stream its events",
    )
    .protected()
    .costing(Class::Run),
    row(
        Get,
        "/workflows/executions",
        RouteName::ListExecutions,
        Answer::Json,
        Tag::Workflows,
        "List executions of all workflows, newest first",
    )
    .owned(),
    row(
        Get,
        "/workflows/:id/executions",
        RouteName::ListWorkflowExecutions,
        Answer::Json,
        Tag::Workflows,
        "List executions of a workflow, newest first",
    )
    .owned(),
    row(
        Get,
        "/workflows/:id/executions/:executionId/state",
        RouteName::DescribeExecution,
        Answer::Json,
        Tag::Workflows,
        "Show the state of an execution",
    )
    .owned(),
    row(
        Post,
        "/workflows/:id/executions/:executionId/suspend",
        RouteName::SuspendExecution,
        Answer::Json,
        Tag::Workflows,
        "Suspend a running execution",
    )
    .owned(),
    row(
        Post,
        "/workflows/:id/executions/:executionId/cancel",
        RouteName::CancelExecution,
        Answer::Json,
        Tag::Workflows,
        "Cancel an execution",
    )
    .protected()
    .owned(),
    row(
        Get,
        "/workflows/:id/executions/:executionId/stream",
        RouteName::AttachToExecution,
        Answer::Events,
        Tag::Workflows,
        "Stream the events of an execution, from the first or from a given one on",
    )
    .owned(),
    row(
        Get,
        "/workflows",
        RouteName::ListWorkflows,
        Answer::Json,
        Tag::Workflows,
        "List the registered workflows",
    ),
    row(
        Get,
        "/workflows/:id",
        RouteName::DescribeWorkflow,
        Answer::Json,
        Tag::Workflows,
        "Show a workflow, its steps and schemas",
    ),
    row(
        Post,
        "/agents/:id/text",
        RouteName::GenerateText,
        Answer::Json,
        Tag::Agents,
        "Let an agent generate a text",
    )
    .protected()
    .costing(Class::Run),
    row(
        Post,
        "/agents/:id/stream",
        RouteName::StreamText,
        Answer::Events,
        Tag::Agents,
        "Let an agent generate a text and stream what it says and does",
    )
    .protected()
    .costing(Class::Run),
    row(
        Post,
        "/agents/:id/chat",
        RouteName::Chat,
        Answer::Events,
        Tag::Agents,
        "Let an agent answer in a chat, as a UI message stream",
    )
    .protected()
    .costing(Class::Run),
    row(
        Post,
        "/agents/:id/object",
        RouteName::GenerateObject,
        Answer::Json,
        Tag::Agents,
        "Let an agent generate an object that meets a schema",
    )
    .protected()
    .costing(Class::Run),
    row(
        Post,
        "/agents/:id/stream-object",
        RouteName::StreamObject,
        Answer::Events,
        Tag::Agents,
        "Let an agent generate an object and stream what there is of it",
    )
    .protected()
    .costing(Class::Run),
    row(
        Get,
        "/agents/:id/chat/:conversationId/stream",
        RouteName::AttachToChat,
        Answer::Events,
        Tag::Agents,
        "Follow the chat that runs in a conversation, from its first word on",
    )
    .protected()
    .owned(),
    row(
        Post,
        "/agents/:id/generations/:generationId/cancel",
        RouteName::CancelGeneration,
        Answer::Json,
        Tag::Agents,
        "Cancel a generation",
    )
    .protected()
    .owned(),
    row(
        Get,
        "/agents",
        RouteName::ListAgents,
        Answer::Json,
        Tag::Agents,
        "List the registered agents",
    ),
    row(Get, "/agents/:id", RouteName::DescribeAgent, Answer::Json, Tag::Agents, "Show an agent"),
    row(Get, "/", RouteName::Landing, Answer::Text, Tag::Documentation, "This page"),
    row(
        Get,
        "/doc",
        RouteName::ApiDocument,
        Answer::Json,
        Tag::Documentation,
        "The OpenAPI document of this server",
    ),
    row(
        Get,
        "/ui",
        RouteName::BrowseApi,
        Answer::Text,
        Tag::Documentation,
        "Browse and try the API",
    ),
    row(
        Get,
        "/ui/:file",
        RouteName::BrowseApiFile,
        Answer::Text,
        Tag::Documentation,
        "The files of /ui",
    ),
    row(Get, "/livez", RouteName::Live, Answer::Text, Tag::System, "Whether the process answers")
        .open(),
    row(
        Get,
        "/readyz",
        RouteName::Ready,
        Answer::Text,
        Tag::System,
        "Whether the server takes new work",
    )
    .open(),
    row(Get, "/updates", RouteName::CheckUpdates, Answer::Json, Tag::System, "Check for updates"),
    row(Post, "/updates", RouteName::InstallUpdates, Answer::Json, Tag::System, "Install updates")
        .costing(Class::System),
    row(
        Post,
        "/setup-observability",
        RouteName::SetUpObservability,
        Answer::Json,
        Tag::System,
        "Write the keys of the observability service into the environment file",
    )
    .costing(Class::System),
    row(
        Get,
        "/agents/:id/history",
        RouteName::ShowHistory,
        Answer::Json,
        Tag::Agents,
        "Show what an agent has generated, newest first",
    )
    .owned(),
    row(Get, "/tools", RouteName::ListTools, Answer::Json, Tag::Tools, "List the registered tools"),
    row(
        Post,
        "/tools/:name/execute",
        RouteName::ExecuteTool,
        Answer::Json,
        Tag::Tools,
        "Call a tool directly",
    )
    .protected()
    .costing(Class::Run),
    row(
        Get,
        "/api/memory/conversations",
        RouteName::ListConversations,
        Answer::Json,
        Tag::Memory,
        "List conversations of an agent, newest change first",
    )
    .protected()
    .owned(),
    row(
        Post,
        "/api/memory/conversations",
        RouteName::CreateConversation,
        Answer::Json,
        Tag::Memory,
        "Create a conversation",
    )
    .protected()
    .owned(),
    row(
        Get,
        "/api/memory/conversations/:id",
        RouteName::DescribeConversation,
        Answer::Json,
        Tag::Memory,
        "Show a conversation",
    )
    .protected()
    .owned(),
    row(
        Patch,
        "/api/memory/conversations/:id",
        RouteName::ChangeConversation,
        Answer::Json,
        Tag::Memory,
        "Change the title or the metadata of a conversation",
    )
    .protected()
    .owned(),
    row(
        Delete,
        "/api/memory/conversations/:id",
        RouteName::DeleteConversation,
        Answer::Json,
        Tag::Memory,
        "Delete a conversation with its messages",
    )
    .protected()
    .owned(),
    row(
        Get,
        "/api/memory/conversations/:id/messages",
        RouteName::ListMessages,
        Answer::Json,
        Tag::Memory,
        "Show the newest messages of a conversation, oldest first",
    )
    .protected()
    .owned(),
    row(
        Get,
        "/api/memory/conversations/:id/working-memory",
        RouteName::ShowWorkingMemory,
        Answer::Json,
        Tag::Memory,
        "Show what an agent keeps in mind of a conversation",
    )
    .protected()
    .owned(),
    row(
        Post,
        "/api/memory/conversations/:id/working-memory",
        RouteName::SetWorkingMemory,
        Answer::Json,
        Tag::Memory,
        "Set what an agent keeps in mind of a conversation",
    )
    .protected()
    .owned(),
    row(
        Post,
        "/api/memory/conversations/:id/clone",
        RouteName::CloneConversation,
        Answer::Json,
        Tag::Memory,
        "Copy a conversation under another id",
    )
    .protected()
    .owned(),
    row(
        Get,
        "/api/memory/search",
        RouteName::SearchMessages,
        Answer::Json,
        Tag::Memory,
        "Find messages that hold a text, newest first",
    )
    .protected()
    .owned(),
    row(
        Delete,
        "/api/memory/users/:userId",
        RouteName::ForgetUser,
        Answer::Json,
        Tag::Memory,
        "Delete a user's conversations and generations",
    )
    .protected()
    .owned(),
    row(
        Get,
        "/observability/status",
        RouteName::ShowObservability,
        Answer::Json,
        Tag::Observability,
        "Show what can be observed, and in which environment",
    ),
    row(
        Get,
        "/ws",
        RouteName::Echo,
        Answer::WebSocket,
        Tag::Observability,
        "Connection test and echo",
    ),
    row(
        Get,
        "/ws/logs",
        RouteName::TailLogs,
        Answer::WebSocket,
        Tag::Observability,
        "The log as it is written",
    )
    .owned(),
    row(
        Get,
        "/ws/observability",
        RouteName::Observe,
        Answer::WebSocket,
        Tag::Observability,
        "Spans of workflows and agents, and what they log, as it happens",
    )
    .owned(),
];

/// A public row; its class is that of most with this method and this answer.
const fn row(
    method: Method,
    path: &'static str,
    name: RouteName,
    answer: Answer,
    tag: Tag,
    summary: &'static str,
) -> Route {
    let class = match (method, answer) {
        (Get, Answer::Json | Answer::Text) => Class::Read,
        (Get, Answer::Events | Answer::WebSocket) => Class::Stream,
        (Post | Put | Patch | Delete, _) => Class::Write,
    };
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
