//! A store in PostgreSQL.

#[cfg(all(feature = "cli", feature = "sqlite"))]
mod copies;

use std::io;
use std::sync::Arc;

use futures_util::FutureExt as _;
use greenroom_links::{LinkIdentity, LinkSecret};
#[cfg(feature = "cli")]
use greenroom_store_postgres::NodeReader;
use greenroom_store_postgres::{
    Address, ClusterSettings, Password, PostgresDurability, PostgresSettings, PostgresStore,
};

#[cfg(all(feature = "cli", feature = "sqlite"))]
use super::copying::Copies;
use super::durable::{crash_marks, meter};
use super::{ConfiguredStore, Opened};
use crate::app::cluster::Listening;
#[cfg(feature = "cli")]
use crate::app::finding::{Finding, STORE, State};
use crate::config::{Config, Durability, StoreConfig};
use crate::telemetry::metrics::Metrics;
use crate::telemetry::sources::StoreReading;

/// A database that `store.url` names.
pub(super) struct Database<'a>(pub(super) &'a Address);

impl ConfiguredStore for Database<'_> {
    /// Opens the store; the server is known there by its name.
    fn open(&self, config: &Config, metrics: Option<&Metrics>) -> io::Result<Opened> {
        let listening = Listening::start(config)?;
        let cluster = listening.as_ref().map(|listening| ClusterSettings {
            lease: config.cluster.lease,
            address: Some(listening.address.clone()),
        });
        let settings = PostgresSettings { cluster, ..settings(self.0, config) };
        let store = PostgresStore::open(settings, meter(metrics));
        let store = Arc::new(store.map_err(io::Error::other)?);
        let members = store.members();
        let (links, read_links) = match listening.zip(members.clone()) {
            Some((listening, members)) => {
                let identity = LinkIdentity {
                    own: members.own(),
                    cluster: store.database_id().into(),
                    secret: LinkSecret(store.secret().to_owned()),
                };
                listening
                    .connect(members, &identity)
                    .map(|(links, read)| (Some(links), Some(read)))?
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

    /// Describes the database, because the log would redact the user in its address.
    fn described(&self) -> Option<String> {
        Some(described(self.0))
    }

    /// Says what the address is taken for, because the check does not connect to it.
    #[cfg(feature = "cli")]
    fn outline(&self, config: &StoreConfig) -> Option<String> {
        let (database, durability) = (described(self.0), durability_of(config.durability));
        Some(format!("store: {database}, durability {durability}; not connected to by this check"))
    }

    #[cfg(feature = "cli")]
    fn look(&self, config: &Config) -> Vec<Finding> {
        let looked = nodes(self.0, config).and_then(|it| it.look().map_err(|it| it.to_string()));
        vec![match looked {
            Ok(nodes) => {
                let text = format!("{} answers; servers: {}", self.0, nodes.nodes.len());
                Finding::new(State::Good, STORE, text)
            }
            Err(why) => Finding::new(State::Failed, STORE, why),
        }]
    }

    #[cfg(all(feature = "cli", feature = "sqlite"))]
    fn copies(&self) -> &dyn Copies {
        self
    }
}

/// Describes a database, without a password.
fn described(address: &Address) -> String {
    let hosts = address.hosts().zip(address.tls());
    let hosts: Vec<_> = hosts.map(|(host, tls)| format!("{host} (TLS {tls})")).collect();
    let (database, user) = (address.database(), address.user());
    format!("PostgreSQL at {}, database {database}, user {user}", hosts.join(", "))
}

/// Opens the database to look at its servers.
#[cfg(feature = "cli")]
pub(super) fn nodes(address: &Address, config: &Config) -> Result<NodeReader, String> {
    NodeReader::open(&settings(address, config)).map_err(|error| error.to_string())
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
