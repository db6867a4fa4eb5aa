//! Routes of agents and generations.

use super::row;
use crate::api::catalogue::Method::{Get, Post};
use crate::api::catalogue::{Answer, Class, Route, RouteName, Tag};

pub(super) const ROWS: &[Route] = &[
    row(
        Post,
        "/agents/:id/text",
        RouteName::GenerateText,
        Answer::Json,
        Tag::Agents,
        "Generate a text",
    )
    .protected()
    .costing(Class::Run),
    row(
        Post,
        "/agents/:id/stream",
        RouteName::StreamText,
        Answer::Events,
        Tag::Agents,
        "Generate a text and stream its events",
    )
    .protected()
    .costing(Class::Run),
    row(
        Post,
        "/agents/:id/chat",
        RouteName::Chat,
        Answer::Events,
        Tag::Agents,
        "Answer in a chat, as a UI message stream",
    )
    .protected()
    .costing(Class::Run),
    row(
        Post,
        "/agents/:id/object",
        RouteName::GenerateObject,
        Answer::Json,
        Tag::Agents,
        "Generate an object that matches a schema",
    )
    .protected()
    .costing(Class::Run),
    row(
        Post,
        "/agents/:id/stream-object",
        RouteName::StreamObject,
        Answer::Events,
        Tag::Agents,
        "Generate an object and stream partial objects",
    )
    .protected()
    .costing(Class::Run),
    row(
        Get,
        "/agents/:id/chat/:conversationId/stream",
        RouteName::AttachToChat,
        Answer::Events,
        Tag::Agents,
        "Follow the running chat of a conversation, from its start",
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
    row(
        Get,
        "/agents/:id/history",
        RouteName::ShowHistory,
        Answer::Json,
        Tag::Agents,
        "Show the history of an agent, newest first",
    )
    .owned(),
];
