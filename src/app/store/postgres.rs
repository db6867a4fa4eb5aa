//! A store in PostgreSQL.

use std::io;
use std::sync::Arc;

use futures_util::FutureExt as _;
use greenroom_actors::ports::meter::JournalMeter;
use greenroom_links::{LinkIdentity, LinkSecret};
#[cfg(feature = "cli")]
use greenroom_store_postgres::NodeReader;
use greenroom_store_postgres::{
    Address, ClusterSettings, Password, PostgresDurability, PostgresSettings, PostgresStore,
};

use super::Opened;
use super::durable::crash_marks;
use crate::app::cluster::Listening;
use crate::config::{Config, Durability, StoreConfig};
use crate::telemetry::sources::StoreReading;

/// Opens the store; the server is known there by its name.
pub(super) fn open(
    address: &Address,
    config: &Config,
    meter: Arc<dyn JournalMeter>,
) -> io::Result<Opened> {
    let listening = Listening::start(config)?;
    let cluster = listening.as_ref().map(|listening| ClusterSettings {
        lease: config.cluster.lease,
        address: Some(listening.address.clone()),
    });
    let settings = PostgresSettings { cluster, ..settings(address, config) };
    let store = PostgresStore::open(settings, meter);
    let store = Arc::new(store.map_err(io::Error::other)?);
    let members = store.members();
    let (links, read_links) = match listening.zip(members.clone()) {
        Some((listening, members)) => {
            let identity = LinkIdentity {
                own: members.own(),
                cluster: store.database_id().into(),
                secret: LinkSecret(store.secret().to_owned()),
            };
            listening.connect(members, &identity).map(|(links, read)| (Some(links), Some(read)))?
        }
        None => (None, None),
    };
    let marks = format!("greenroom-{}.crashes", store.database_id());
    let figures = Arc::clone(&store);
    let read = move || StoreReading {
        queued: figures.queued(),
        database_bytes: figures.database_bytes(),
        wal_bytes: None,
    };
    Ok(Opened {
        crash_marks: crash_marks(&config.store.state_dir.join(marks)),
        read: Some(Box::new(read)),
        lost: store.lost().map(|lost| lost.to_string()).boxed(),
        store,
        members,
        links,
        read_links,
    })
}

/// Opens the database to look at its servers.
#[cfg(feature = "cli")]
pub(super) fn nodes(address: &Address, config: &Config) -> Result<NodeReader, String> {
    NodeReader::open(&settings(address, config)).map_err(|error| error.to_string())
}

pub(super) fn settings(address: &Address, config: &Config) -> PostgresSettings {
    let StoreConfig { durability, ca, writers, connections, patience, .. } = &config.store;
    PostgresSettings {
        address: address.clone(),
        password: config.store.password(|name| std::env::var(name).ok()).map(Password),
        authorities: ca.clone(),
        name: config.server.name.clone().unwrap_or_default(),
        durability: durability_of(*durability),
        writers: *writers,
        connections: *connections,
        patience: *patience,
        cluster: None,
    }
}

fn durability_of(durability: Durability) -> PostgresDurability {
    match durability {
        Durability::Full => PostgresDurability::Full,
        Durability::Normal => PostgresDurability::Normal,
        Durability::Replicated => PostgresDurability::Replicated,
    }
}

/// Describes a database, without a password.
pub(super) fn described(address: &Address) -> String {
    let hosts = address.hosts().zip(address.tls());
    let hosts: Vec<_> = hosts.map(|(host, tls)| format!("{host} (TLS {tls})")).collect();
    let (database, user) = (address.database(), address.user());
    format!("PostgreSQL at {}, database {database}, user {user}", hosts.join(", "))
}

/// Returns what `greenroom check` says of the address, which it does not connect to.
#[cfg(feature = "cli")]
pub(super) fn outline(address: &Address, config: &StoreConfig) -> String {
    let (database, durability) = (described(address), durability_of(config.durability));
    format!("store: {database}, durability {durability}; not connected to by this check")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_of_the_configuration_are_those_of_the_store() {
        let address: Address = "postgres://ann@db/shop".parse().unwrap();
        let config = Config::default();
        let (configured, own) = (settings(&address, &config), PostgresSettings::new(address, ""));
        assert_eq!(
            (configured.writers, configured.connections, configured.patience),
            (own.writers, own.connections, own.patience)
        );
        assert_eq!(configured.durability, own.durability);
    }
}
