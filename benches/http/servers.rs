//! The servers of one run: one, or several over one database.

use std::net::SocketAddr;

use crate::Outcome;
use crate::database::Database;
use crate::process::Process;
use crate::server::{Kind, Server};
use crate::share::wait_until_shared;

/// Servers with one empty store. They end on drop.
pub(crate) struct Servers {
    kind: Kind,
    all: Vec<Server>,
}

impl Servers {
    /// Starts servers of a kind and waits until they listen. Several have as many slots each.
    pub(crate) fn start(kind: Kind, nodes: usize, database: Option<&Database>) -> Outcome<Self> {
        let url = database.map(Database::empty);
        let nodes = if kind.is_cluster() { nodes } else { 1 };
        let start = |_| Server::start(kind, url.as_deref());
        let servers = Self { kind, all: (0..nodes).map(start).collect::<Outcome<_>>()? };
        if kind.is_cluster() {
            wait_until_shared(&servers.addresses())?;
        }
        Ok(servers)
    }

    pub(crate) fn addresses(&self) -> Vec<SocketAddr> {
        self.all.iter().map(Server::address).collect()
    }

    pub(crate) fn processes(&self) -> Vec<Process> {
        self.all.iter().map(Server::process).collect()
    }

    /// Fails with the last lines of the logs if a server has ended, or if `outcome` is a failure.
    pub(crate) fn checked<T>(mut self, outcome: Outcome<T>) -> Outcome<T> {
        let alive = self.all.iter_mut().try_for_each(Server::check_alive);
        let kind = self.kind;
        let lines = || self.all.iter().map(Server::last_lines).collect::<Vec<_>>().join("\n\n");
        alive.and(outcome).map_err(|error| format!("{kind}: {error}\n{}", lines()).into())
    }
}
