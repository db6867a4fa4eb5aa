//! Routes of the server itself.

use super::row;
use crate::api::catalogue::Method::{Get, Post};
use crate::api::catalogue::{Answer, Class, Route, RouteName, Tag};

pub(super) const ROWS: &[Route] = &[
    row(Get, "/livez", RouteName::Live, Answer::Text, Tag::System, "Liveness probe").open(),
    row(Get, "/readyz", RouteName::Ready, Answer::Text, Tag::System, "Readiness probe").open(),
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
];
