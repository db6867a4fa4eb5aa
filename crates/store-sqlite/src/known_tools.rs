//! Known tools of MCP servers.

use std::sync::Arc;

use futures_util::FutureExt as _;
use greenroom_actors::ports::store::{KnownTool, KnownTools, Read, Written};
use greenroom_store_codec::records::known_tool_of;
use rusqlite::{Connection, OptionalExtension as _, Result, Statement, params};

use super::SqliteStore;
use super::changes::Change;
use super::codec::{Stored, limit_of};
use super::defects::Reading;

const FIND: &str = "SELECT server, tool, first_seen, hash, accepted, body FROM mcp_tools
    WHERE server = ?1 AND tool = ?2";

const SEE: &str = "INSERT INTO mcp_tools (server, tool, first_seen, hash, accepted, body)
    SELECT ?1, ?2, ?3, ?4, ?5, ?6
    WHERE (SELECT count(*) FROM mcp_tools WHERE server = ?1) < ?7
    ON CONFLICT DO NOTHING";

const ACCEPT: &str = "UPDATE mcp_tools SET hash = ?3, accepted = ?4, body = ?5
    WHERE server = ?1 AND tool = ?2 AND hash = ?6";

/// The prepared statements of the writer.
pub(super) struct ToolWrites<'c> {
    see: Statement<'c>,
    accept: Statement<'c>,
}

impl<'c> ToolWrites<'c> {
    pub(super) fn prepare(connection: &'c Connection) -> Result<Self> {
        Ok(Self { see: connection.prepare(SEE)?, accept: connection.prepare(ACCEPT)? })
    }

    /// Adds tools that are not known.
    pub(super) fn see(&mut self, seen: &[KnownTool], tools_max: usize) -> Result<()> {
        for KnownTool { server, tool, first_seen, hash, accepted_at, body } in seen {
            let (first_seen, accepted) = (first_seen.0, accepted_at.0);
            let max = limit_of(tools_max);
            self.see.execute(params![server, tool, first_seen, hash, accepted, body, max])?;
        }
        Ok(())
    }

    /// Replaces an accepted definition. Returns false if it is not the one with this hash.
    pub(super) fn accept(&mut self, accepted: &KnownTool, replaced: &str) -> Result<bool> {
        let KnownTool { server, tool, hash, accepted_at, body, .. } = accepted;
        let values = params![server, tool, hash, accepted_at.0, body, replaced];
        Ok(self.accept.execute(values)? > 0)
    }
}

fn known(reading: &Reading<'_>, server: &str, tools: &[Arc<str>]) -> Result<Vec<KnownTool>> {
    let mut statement = reading.prepare_cached(FIND)?;
    let mut found = Vec::with_capacity(tools.len());
    for tool in tools {
        let read = statement.query_row([server, tool], |row| known_tool_of(&Stored(row)));
        let name = || format!("the tool {server}.{tool}");
        found.extend(reading.defects.readable(name, read.optional())?.flatten());
    }
    found.sort_by(|one, other| one.tool.cmp(&other.tool));
    Ok(found)
}

impl KnownTools for SqliteStore {
    fn known_tools<'a>(
        &'a self,
        server: &'a str,
        tools: &'a [Arc<str>],
    ) -> Read<'a, Vec<KnownTool>> {
        self.read(
            move || format!("the tools of {server}"),
            move |reading| known(reading, server, tools),
        )
    }

    fn see_tools(&self, seen: Vec<KnownTool>, tools_max: usize) -> Written<()> {
        self.change(Change::SeeTools { seen, tools_max }).map(|seen| seen.map(drop)).boxed()
    }

    fn accept_tool(&self, accepted: KnownTool, replaced: Arc<str>) -> Written<bool> {
        self.change_one(Change::AcceptTool { accepted: Box::new(accepted), replaced })
    }
}

#[cfg(test)]
mod tests {
    use super::super::reader::assert_uses_indexes;
    use super::*;

    #[test]
    fn tools_are_found_by_an_index() {
        [FIND, SEE, ACCEPT].into_iter().for_each(assert_uses_indexes);
    }
}
