//! Databases as sources and targets of copies.

use greenroom_store_postgres::{
    Address, DatabaseSource, DatabaseTarget, OpenError, Password, PostgresDurability,
    PostgresSettings,
};

use crate::app::store::postgres::settings;
use crate::config::{Config, StoreConfig, StoreUrl};

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
