//! Routes of tools.

use super::row;
use crate::api::catalogue::Method::{Get, Post};
use crate::api::catalogue::{Answer, Class, Route, RouteName, Tag};

pub(super) const ROWS: &[Route] = &[
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
];
