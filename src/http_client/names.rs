//! Lookup of host names by the operating system, on threads that exist from the start.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::sync::OnceLock;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use greenroom_actors::threads::{self, Pool};

/// Concurrent lookups. Each may take as long as the timeout of the machine's resolver.
const LOOKUPS_MAX: usize = 64;

static LOOKUPS: OnceLock<Pool> = OnceLock::new();

/// A host name without an address.
#[derive(Debug, thiserror::Error)]
#[error("no address is known: {0}")]
pub(crate) struct NoAddress(io::Error);

/// Resolver that returns all addresses of a name.
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

/// Returns the addresses of a host; at least one.
pub(crate) async fn addresses_of(host: &str) -> Result<Vec<SocketAddr>, NoAddress> {
    let host = host.to_owned();
    let lookups = start_lookups().map_err(NoAddress)?;
    let found = lookups.run(move || (host.as_str(), 0).to_socket_addrs()).await;
    let found: Vec<_> = found.flatten().map_err(NoAddress)?.collect();
    if found.is_empty() {
        return Err(NoAddress(io::ErrorKind::NotFound.into()));
    }
    Ok(found)
}

/// Returns the threads that look up names, and starts them on the first call.
pub(crate) fn start_lookups() -> io::Result<&'static Pool> {
    threads::shared(&LOOKUPS, "greenroom-names", LOOKUPS_MAX)
}
