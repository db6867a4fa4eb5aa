//! Names of hosts, looked up by the operating system on threads that are there from the start.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::sync::OnceLock;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use greenroom_actors::threads::{self, Pool};

/// Look-ups at once. One may take as long as the resolver of the machine is patient.
const LOOKUPS_MAX: usize = 64;

static LOOKUPS: OnceLock<Pool> = OnceLock::new();

/// A name that nothing is known of.
#[derive(Debug, thiserror::Error)]
#[error("no address is known: {0}")]
pub(crate) struct NoAddress(io::Error);

/// Looks names up and hands all addresses on.
#[derive(Debug)]
pub(super) struct Names;

impl Resolve for Names {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let found = addresses_of(name.as_str()).await?;
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

/// The addresses of a host; at least one.
pub(crate) async fn addresses_of(host: &str) -> Result<Vec<SocketAddr>, NoAddress> {
    let host = host.to_owned();
    let asked = start_lookups().map_err(NoAddress)?;
    let found = asked.run(move || (host.as_str(), 0).to_socket_addrs()).await;
    let found: Vec<_> = found.flatten().map_err(NoAddress)?.collect();
    if found.is_empty() {
        return Err(NoAddress(io::ErrorKind::NotFound.into()));
    }
    Ok(found)
}

/// Starts the threads that look names up.
pub(crate) fn start_lookups() -> io::Result<&'static Pool> {
    threads::shared(&LOOKUPS, "greenroom-names", LOOKUPS_MAX)
}
