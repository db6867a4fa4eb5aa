//! A store in PostgreSQL.

use std::io;
use std::sync::Arc;

use futures_util::FutureExt as _;
use greenroom_actors::ports::meter::JournalMeter;
use greenroom_links::{LinkIdentity, LinkSecret};
use greenroom_store_postgres::{
    Address, ClusterSettings, DatabaseSource, DatabaseTarget, NodeReader, OpenError, Password,
    PostgresDurability, PostgresSettings, PostgresStore,
};

use super::{Opened, crash_marks};
use crate::app::cluster::Listening;
use crate::config::{Config, Durability, StoreConfig, StoreUrl};
use crate::telemetry::metrics::StoreReading;

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
pub(super) fn nodes(address: &Address, config: &Config) -> Result<NodeReader, String> {
    NodeReader::open(&settings(address, config)).map_err(|error| error.to_string())
}

/// Opens a database that a copy reads.
pub(super) fn source(address: &Address, config: &Config) -> Result<DatabaseSource, String> {
    DatabaseSource::open(settings_of_copy(address, config)).map_err(refusal(address, config))
}

/// Opens a database that a copy fills.
pub(super) fn target(address: &Address, config: &Config) -> Result<DatabaseTarget, String> {
    DatabaseTarget::open(settings_of_copy(address, config)).map_err(refusal(address, config))
}

/// Names the database in a refusal, because a copy has two stores, and the variable that should have
/// its password: databases need none if they trust this machine, so it may be missing.
fn refusal(address: &Address, config: &Config) -> impl FnOnce(OpenError) -> String {
    let source = config.store.password.as_ref();
    let unset = source.and_then(|source| source.problem(|name| std::env::var(name).ok()));
    move |error| match (error, unset) {
        (OpenError::PasswordMissing { host }, Some(unset)) => format!(
            "{address}: {host} asks for a password, and {unset}; `password` under [store] names it"
        ),
        (error, _) => format!("{address}: {error}"),
    }
}

/// Returns settings of a database that need not be that of the configuration.
fn settings_of_copy(address: &Address, config: &Config) -> PostgresSettings {
    let url = StoreUrl::Postgres(address.clone());
    let store = StoreConfig { url, ..config.store.clone() };
    let machine = rustix::system::uname();
    PostgresSettings {
        password: store.password(|name| std::env::var(name).ok()).map(Password),
        name: machine.nodename().to_string_lossy().into_owned(),
        durability: PostgresDurability::Full,
        ..settings(address, config)
    }
}

fn settings(address: &Address, config: &Config) -> PostgresSettings {
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
pub(super) fn outline(address: &Address, config: &StoreConfig) -> String {
    let (database, durability) = (described(address), durability_of(config.durability));
    format!("store: {database}, durability {durability}; not connected to by this check")
}

/// Returns the refusal to back up: the tools of PostgreSQL do that.
pub(super) fn backup_elsewhere(address: &Address) -> String {
    let (database, user) = (address.database(), address.user());
    format!(
        "the configured store is in PostgreSQL, whose own tools back it up while the server runs: \
         pg_basebackup or pgBackRest copy the whole server, and this database alone is copied by \
         pg_dump --format=custom --username={user} --file=greenroom.dump {database}"
    )
}

/// Returns the refusal to restore: the tools of PostgreSQL do that.
pub(super) fn restore_elsewhere(address: &Address) -> String {
    let (database, user) = (address.database(), address.user());
    format!(
        "the configured store is in PostgreSQL, whose own tools restore it while no server uses it: \
         a dump is restored into an empty database by pg_restore --username={user} \
         --dbname={database} greenroom.dump"
    )
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
