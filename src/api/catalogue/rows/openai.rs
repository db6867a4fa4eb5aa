//! Routes for clients of OpenAI.

use super::row;
use crate::api::catalogue::Method::{Get, Post};
use crate::api::catalogue::{Class, Route, RouteName};

pub(super) const ROWS: &[Route] = &[
    row(
        Post,
        "/v1/chat/completions",
        RouteName::CompleteChat,
        "Complete a chat, as OpenAI's API, whole or as a stream",
    )
    .protected()
    .costing(Class::Run),
    row(Get, "/v1/models", RouteName::ListModels, "List agents and workflows as OpenAI's models")
        .protected(),
    row(Get, "/v1/models/*", RouteName::DescribeModel, "Show an agent or a workflow as a model")
        .protected(),
];
