//! Routes of the server itself.

use super::row;
use crate::api::catalogue::Method::{Get, Post};
use crate::api::catalogue::{Class, Route, RouteName};

pub(super) const ROWS: &[Route] = &[
    row(Get, "/livez", RouteName::Live, "Liveness probe").text().open(),
    row(Get, "/readyz", RouteName::Ready, "Readiness probe").text().open(),
    row(Get, "/whoami", RouteName::WhoAmI, "Show the caller, and what it may request"),
    row(Get, "/updates", RouteName::CheckUpdates, "Check for updates"),
    row(Post, "/updates", RouteName::InstallUpdates, "Install updates").costing(Class::System),
    row(
        Post,
        "/setup-observability",
        RouteName::SetUpObservability,
        "Write the keys of the observability service into the environment file",
    )
    .costing(Class::System),
];
