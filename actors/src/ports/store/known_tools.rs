//! Tools of MCP servers, with the definitions that calls may use.

use std::sync::Arc;

use super::{Read, Written};
use crate::domain::time::Timestamp;

/// A tool of an MCP server, with the definition that was accepted last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownTool {
    pub server: Arc<str>,
    /// Its name at the server.
    pub tool: Arc<str>,
    pub first_seen: Timestamp,
    /// Hash of the accepted definition.
    pub hash: Arc<str>,
    /// Time since which that is accepted: that of the first look, or of a later decision.
    pub accepted_at: Timestamp,
    /// JSON text about the accepted definition, which the store does not read.
    pub body: Arc<str>,
}

/// Definitions of tools that are accepted.
pub trait KnownTools: Send + Sync {
    /// Returns those of these tools of a server that are known, by name.
    fn known_tools<'a>(
        &'a self,
        server: &'a str,
        tools: &'a [Arc<str>],
    ) -> Read<'a, Vec<KnownTool>>;

    /// Adds tools that are not known, as long as their server has fewer than `tools_max`; known ones
    /// stay as they are. Of processes that add a tool at the same time, the first one wins.
    fn see_tools(&self, seen: Vec<KnownTool>, tools_max: usize) -> Written<()>;

    /// Accepts another definition of a known tool, whose `first_seen` stays. Returns false, and changes
    /// nothing, if the accepted one does not have the hash `replaced`.
    fn accept_tool(&self, accepted: KnownTool, replaced: Arc<str>) -> Written<bool>;
}
