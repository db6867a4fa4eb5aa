//! `[cluster]`: several servers over one database.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::entry::Entry;
use super::keys::{Keys as _, Takes, Value, section};
use super::section::{Place, Section};
use super::store::StoreConfig;
use super::variables::{filled, text_with_variables};

/// Shortest lease. Members would take slots from each other whenever one of them is busy.
const LEASE_MIN: Duration = Duration::from_millis(600);

/// Refusal of an address that cannot be connected to.
pub(super) const ADVERTISED: &str = "must be a host and a port, such as \"node-a.internal:3142\"";

section! {
    /// Several servers over one database, which serve its executions together.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct ClusterConfig {
        /// Address at which the other servers of the database reach this one. With it, this server
        /// shares the database with all others that have one; without it, a server has its database
        /// for itself. An address that other machines can reach requires `certificate`, `key` and
        /// `ca`, or `trusted_network`. Default: none.
        listen: Option<SocketAddr> = None, Takes::Own("`\"ADDRESS:PORT\"`");
        /// Address that the others connect to, as host and port. Default: `listen`.
        advertise: Option<Advertised> = None,
            Takes::Own("`\"HOST:PORT\"`, with `${NAME}` for a variable");
        /// Time without a sign of life after which a server counts as gone and others continue its
        /// executions; the same for all servers of a database.
        lease: Duration = Duration::from_secs(6), Takes::Duration;
        /// Connections between the servers are not encrypted. Only for a network that nothing else
        /// can reach.
        trusted_network: bool = false, Takes::Flag;
        /// PEM file of the certificate by which this server is known to the others; a relative path
        /// starts at the folder of this file, here and in the next two. Default: none.
        certificate: Option<PathBuf> = None, Takes::Own("a path");
        /// PEM file of the key of that certificate. Default: none.
        key: Option<PathBuf> = None, Takes::Own("a path");
        /// PEM file of the authority that signs the certificates of all servers. Default: none.
        ca: Option<PathBuf> = None, Takes::Own("a path");
    }
}

/// A host and a port, for others to connect to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Advertised(pub String);

/// Files for encryption.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClusterTls<'c> {
    pub certificate: &'c Path,
    pub key: &'c Path,
    pub ca: &'c Path,
}

impl ClusterConfig {
    pub(crate) fn read_all(section: Section<'_>, store: &StoreConfig) -> Self {
        let place = section.place.clone();
        let names = ["listen", "advertise", "lease", "certificate", "key", "ca"];
        let [listen, advertise, lease, certificate, key, ca] =
            names.map(|key| Some(section.get(key)?.place));
        let mut cluster = Self::read(section);
        let file = PathBuf::from(&*place.source.file);
        let folder = file.parent().unwrap_or(&file);
        for path in [&mut cluster.certificate, &mut cluster.key, &mut cluster.ca] {
            *path = path.take().map(|path| folder.join(path));
        }
        if let Some(place) = lease.as_ref().filter(|_| cluster.lease < LEASE_MIN) {
            place.refuse(format!("must be at least {LEASE_MIN:?}"));
        }
        let files = [certificate, key, ca];
        let given = files.iter().flatten().count();
        if let Some(place) = files.iter().flatten().next().filter(|_| given < files.len()) {
            place.refuse("needs all of `certificate`, `key` and `ca`");
        }
        match listen {
            Some(place) => cluster.check(&place, advertise.is_some(), store),
            None => {
                let advertise = advertise.filter(|_| cluster.advertise.is_some());
                if let Some(place) = advertise.into_iter().chain(files.into_iter().flatten()).next()
                {
                    place.warn("has no effect without `listen`");
                }
            }
        }
        cluster
    }

    /// Checks the address, whose place is given.
    fn check(&self, place: &Place<'_>, is_advertised: bool, store: &StoreConfig) {
        if !store.url.is_of_database() {
            place.refuse("needs a store in PostgreSQL (`url` under [store])");
        }
        let Some(address) = self.listen else { return };
        if address.ip().is_unspecified() && !is_advertised {
            place.refuse("is no address that others can connect to: set `advertise` as well");
        }
        if !is_local(address.ip()) && !self.trusted_network && self.tls().is_none() {
            place.refuse(
                "other machines can reach it: set `certificate`, `key` and `ca`, or \
                 `trusted_network = true` if nothing but the servers of this database can",
            );
        }
    }

    /// Returns the files for encryption, if they are given.
    pub fn tls(&self) -> Option<ClusterTls<'_>> {
        let (certificate, key) = self.certificate.as_deref().zip(self.key.as_deref())?;
        Some(ClusterTls { certificate, key, ca: self.ca.as_deref()? })
    }
}

/// Returns true if only programs on this machine can reach the address.
fn is_local(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}

/// Returns true for an address that can be connected to.
pub(super) fn is_host_and_port(text: &str) -> bool {
    let port = text.rsplit_once(':').filter(|(host, _)| !host.is_empty());
    port.is_some_and(|(_, port)| matches!(port.parse::<u16>(), Ok(1..)))
}

impl Value for SocketAddr {
    fn read(entry: &Entry<'_>, _: &Takes) -> Option<Self> {
        match entry.filled_text()?.parse() {
            Ok(address) => Some(address),
            Err(_) => entry.refuse("must be an IP address and a port, such as \"10.0.0.5:3142\""),
        }
    }
}

impl Value for Advertised {
    fn read(entry: &Entry<'_>, _: &Takes) -> Option<Self> {
        let text = text_with_variables(entry)?;
        // variables are looked up before the server starts: any digit could be a host or a port
        let shown = filled(&text, |_| Some("1".to_owned())).unwrap_or_default();
        if is_host_and_port(&shown) { Some(Self(text)) } else { entry.refuse(ADVERTISED) }
    }
}
