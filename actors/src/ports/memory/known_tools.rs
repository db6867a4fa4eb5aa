//! Known tools of MCP servers.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::ports::store::{KnownTool, KnownTools, Read, Written};

use super::MemoryStore;

/// Tools by server and name.
pub(super) type StoredTools = BTreeMap<Arc<str>, BTreeMap<Arc<str>, KnownTool>>;

impl KnownTools for MemoryStore {
    fn known_tools<'a>(
        &'a self,
        server: &'a str,
        tools: &'a [Arc<str>],
    ) -> Read<'a, Vec<KnownTool>> {
        self.read(|state| {
            let of_server = state.known_tools.get(server).into_iter().flatten();
            let known = of_server.filter(|(name, _)| tools.contains(*name));
            known.map(|(_, tool)| tool.clone()).collect()
        })
    }

    fn see_tools(&self, seen: Vec<KnownTool>, tools_max: usize) -> Written<()> {
        self.written(move |state| {
            for tool in seen {
                let of_server = state.known_tools.entry(Arc::clone(&tool.server)).or_default();
                if of_server.len() < tools_max {
                    of_server.entry(Arc::clone(&tool.tool)).or_insert(tool);
                }
            }
        })
    }

    fn accept_tool(&self, accepted: KnownTool, replaced: Arc<str>) -> Written<bool> {
        self.written(move |state| {
            let of_server = state.known_tools.get_mut(&accepted.server);
            let known = of_server.and_then(|tools| tools.get_mut(&accepted.tool));
            let Some(known) = known.filter(|known| known.hash == replaced) else { return false };
            *known = KnownTool { first_seen: known.first_seen, ..accepted };
            true
        })
    }
}
