//! Routes of the documentation.

use super::row;
use crate::api::catalogue::Method::Get;
use crate::api::catalogue::{Route, RouteName};

pub(super) const ROWS: &[Route] = &[
    row(Get, "/", RouteName::Landing, "This page").text().page(),
    row(Get, "/doc", RouteName::ApiDocument, "The OpenAPI document of this server"),
    row(Get, "/ui", RouteName::BrowseApi, "Browse and try the API").text().page(),
    row(Get, "/ui/:file", RouteName::BrowseApiFile, "The files of /ui").text().page(),
    row(Get, "/console", RouteName::Console, "The console").text().page(),
    row(Get, "/console/assets/:file", RouteName::ConsoleAsset, "The files of /console")
        .text()
        .page(),
    row(Get, "/console/*", RouteName::ConsolePlace, "A place in the console").text().page(),
];
