//! Known tools of MCP servers.

use std::sync::Arc;

use greenroom_actors::ports::store::{KnownTool, KnownTools, Read, Written};
use greenroom_store_codec::numbers::limit_of;
use greenroom_store_codec::records::known_tool_of;

use crate::columns::Stored;
use crate::pool::{Failure, Reading};
use crate::store::PostgresStore;
use crate::text::Text;

pub(crate) const FIND: &str = "SELECT server, tool, first_seen, hash, accepted, body FROM mcp_tools
    WHERE server = $1 AND tool = ANY($2) ORDER BY tool";

pub(crate) const SEE: &str = "INSERT INTO mcp_tools
    (server, tool, first_seen, hash, accepted, body)
    SELECT $1, $2, $3, $4, $5, $6
    WHERE (SELECT count(*) FROM mcp_tools WHERE server = $1) < $7
    ON CONFLICT DO NOTHING";

/// A repetition whose first attempt was committed replaces the row by itself.
pub(crate) const ACCEPT: &str = "UPDATE mcp_tools SET hash = $3, accepted = $4, body = $5
    WHERE server = $1 AND tool = $2
      AND (hash = $6 OR (hash = $3 AND accepted = $4 AND body = $5))";

async fn known(
    reading: Reading,
    server: &str,
    tools: &[Arc<str>],
) -> Result<Vec<KnownTool>, Failure> {
    let names: Vec<_> = tools.iter().map(Text).collect();
    let rows = reading.rows(FIND, &[&Text(server), &names]).await?;
    let name = |row: &Stored| format!("the tool {}", row.0.try_get::<_, &str>(1).unwrap_or("?"));
    reading
        .decoded(rows, move |rows, defects| defects.readable_rows(rows, name, known_tool_of))
        .await
}

impl KnownTools for PostgresStore {
    fn known_tools<'a>(
        &'a self,
        server: &'a str,
        tools: &'a [Arc<str>],
    ) -> Read<'a, Vec<KnownTool>> {
        let record = move || format!("the tools of {server}");
        self.shared.pool.read(record, move |it| known(it, server, tools))
    }

    fn see_tools(&self, seen: Vec<KnownTool>, tools_max: usize) -> Written<()> {
        self.change(async move |shared| {
            for KnownTool { server, tool, first_seen, hash, accepted_at, body } in &seen {
                let put = async |it: crate::changes::Changing| {
                    it.execute(
                        SEE,
                        &[
                            &Text(server),
                            &Text(tool),
                            &first_seen.0,
                            &Text(hash),
                            &accepted_at.0,
                            &Text(body),
                            &limit_of(tools_max),
                        ],
                    )
                    .await
                };
                shared.pool.change(put).await?;
            }
            Ok(Ok(()))
        })
    }

    fn accept_tool(&self, accepted: KnownTool, replaced: Arc<str>) -> Written<bool> {
        self.change(async move |shared| {
            let KnownTool { server, tool, hash, accepted_at, body, .. } = &accepted;
            let put = async |it: crate::changes::Changing| {
                it.execute(
                    ACCEPT,
                    &[
                        &Text(server),
                        &Text(tool),
                        &Text(hash),
                        &accepted_at.0,
                        &Text(body),
                        &Text(&replaced),
                    ],
                )
                .await
            };
            Ok(Ok(shared.pool.change(put).await? > 0))
        })
    }
}
