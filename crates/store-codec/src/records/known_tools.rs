//! Known tools of MCP servers.

use greenroom_actors::ports::store::KnownTool;

use crate::columns::Columns;

/// Decodes a known tool: its server, its name, the time of the first look, then hash, time and text of
/// the accepted definition.
pub fn known_tool_of<C: Columns>(row: &C) -> Result<KnownTool, C::Error> {
    Ok(KnownTool {
        server: row.shared(0)?,
        tool: row.shared(1)?,
        first_seen: row.time(2)?,
        hash: row.shared(3)?,
        accepted_at: row.time(4)?,
        body: row.shared(5)?,
    })
}
