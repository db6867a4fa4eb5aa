//! Routes for clients of MCP.

use super::row;
use crate::api::catalogue::Method::{Get, Post};
use crate::api::catalogue::{Class, Route, RouteName};

pub(super) const ROWS: &[Route] = &[
    row(Post, "/mcp", RouteName::CallMcp, "Call workflows and agents over MCP")
        .protected()
        .costing(Class::Run),
    row(Post, "/mcp/:name/mcp", RouteName::CallNamedMcp, "Call those of a face with a name")
        .protected()
        .costing(Class::Run),
    row(
        Get,
        "/.well-known/oauth-protected-resource/mcp",
        RouteName::DescribeMcp,
        "Show where clients of MCP get a token",
    )
    .link(),
    row(
        Get,
        "/.well-known/oauth-protected-resource/mcp/:name/mcp",
        RouteName::DescribeNamedMcp,
        "Show the same for a face with a name",
    )
    .link(),
];
