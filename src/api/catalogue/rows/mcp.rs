//! Routes for clients of MCP.

use super::row;
use crate::api::catalogue::Method::Post;
use crate::api::catalogue::{Class, Route, RouteName};

pub(super) const ROWS: &[Route] = &[
    row(Post, "/mcp", RouteName::CallMcp, "Call workflows and agents over MCP")
        .protected()
        .costing(Class::Run),
    row(Post, "/mcp/:name/mcp", RouteName::CallNamedMcp, "Call those of a face with a name")
        .protected()
        .costing(Class::Run),
];
