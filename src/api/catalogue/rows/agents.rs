//! Routes of agents and generations.

use super::row;
use crate::api::catalogue::Method::{Get, Post};
use crate::api::catalogue::{Class, Route, RouteName};

pub(super) const ROWS: &[Route] = &[
    row(Post, "/agents/:id/text", RouteName::GenerateText, "Generate a text")
        .protected()
        .costing(Class::Run),
    row(Post, "/agents/:id/stream", RouteName::StreamText, "Generate a text and stream its events")
        .events()
        .protected()
        .costing(Class::Run),
    row(Post, "/agents/:id/chat", RouteName::Chat, "Answer in a chat, as a UI message stream")
        .events()
        .protected()
        .costing(Class::Run),
    row(
        Post,
        "/agents/:id/object",
        RouteName::GenerateObject,
        "Generate an object that matches a schema",
    )
    .protected()
    .costing(Class::Run),
    row(
        Post,
        "/agents/:id/stream-object",
        RouteName::StreamObject,
        "Generate an object and stream partial objects",
    )
    .events()
    .protected()
    .costing(Class::Run),
    row(
        Get,
        "/agents/:id/chat/:conversationId/stream",
        RouteName::AttachToChat,
        "Follow the running chat of a conversation, from its start",
    )
    .events()
    .protected()
    .owned(),
    row(
        Post,
        "/agents/:id/generations/:generationId/cancel",
        RouteName::CancelGeneration,
        "Cancel a generation",
    )
    .protected()
    .owned(),
    row(
        Post,
        "/agents/:id/generations/:generationId/approve",
        RouteName::ApproveCall,
        "Approve or refuse a call of a tool that waits",
    )
    .protected()
    .owned(),
    row(
        Get,
        "/agents/:id/generations/:generationId",
        RouteName::DescribeGeneration,
        "Show a generation: its status, turns and output",
    )
    .owned(),
    row(Get, "/agents", RouteName::ListAgents, "List the registered agents"),
    row(Get, "/agents/:id", RouteName::DescribeAgent, "Show an agent"),
    row(
        Get,
        "/agents/:id/history",
        RouteName::ShowHistory,
        "Show the history of an agent, newest first",
    )
    .owned(),
];
