//! Routes of the documentation.

use super::row;
use crate::api::catalogue::Method::Get;
use crate::api::catalogue::{Answer, Route, RouteName, Tag};

pub(super) const ROWS: &[Route] = &[
    row(Get, "/", RouteName::Landing, Answer::Text, Tag::Documentation, "This page").page(),
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
    )
    .page(),
    row(
        Get,
        "/ui/:file",
        RouteName::BrowseApiFile,
        Answer::Text,
        Tag::Documentation,
        "The files of /ui",
    )
    .page(),
];
