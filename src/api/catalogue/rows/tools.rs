//! Routes of tools.

use super::row;
use crate::api::catalogue::Method::{Get, Post};
use crate::api::catalogue::{Class, Route, RouteName};

pub(super) const ROWS: &[Route] = &[
    row(Get, "/tools", RouteName::ListTools, "List the registered tools"),
    row(Post, "/tools/:name/execute", RouteName::ExecuteTool, "Call a tool directly")
        .protected()
        .costing(Class::Run),
    row(Get, "/tools/mcp", RouteName::ListServers, "List the MCP servers whose tools are used")
        .protected(),
    row(
        Post,
        "/tools/mcp/:server/restart",
        RouteName::RestartServer,
        "Connect an MCP server again",
    )
    .protected()
    .costing(Class::System),
    row(
        Post,
        "/tools/mcp/:server/accept",
        RouteName::AcceptTools,
        "Accept tools of an MCP server that have changed",
    )
    .protected()
    .costing(Class::System),
];
