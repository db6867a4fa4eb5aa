//! Routes of tools.

use super::row;
use crate::api::catalogue::Method::{Get, Post};
use crate::api::catalogue::{Class, Route, RouteName};

pub(super) const ROWS: &[Route] = &[
    row(Get, "/tools", RouteName::ListTools, "List the registered tools"),
    row(Post, "/tools/:name/execute", RouteName::ExecuteTool, "Call a tool directly")
        .protected()
        .costing(Class::Run),
];
