//! Copies of databases.

use std::error::Error;
use std::path::Path;

use greenroom_store_codec::dump::{Source, Target};
use greenroom_store_postgres::{
    Address, DatabaseSource, DatabaseTarget, OpenError, Password, PostgresDurability,
    PostgresSettings,
};
use greenroom_store_sqlite::{Backup, Restored};

use super::{Database, settings};
use crate::app::store::copying::Copies;
use crate::config::{Config, StoreConfig, StoreUrl};

/// Refuses backups and what would restore them: the tools of PostgreSQL do that.
impl Copies for Database<'_> {
    fn back_up(&self, _: &Path) -> Result<Backup, Box<dyn Error>> {
        let (database, user) = (self.0.database(), self.0.user());
        Err(format!(
            "the configured store is in PostgreSQL, whose own tools back it up while the server \
             runs: pg_basebackup or pgBackRest copy the whole server, and this database alone is \
             copied by pg_dump --format=custom --username={user} --file=greenroom.dump {database}"
        )
        .into())
    }

    fn restore(&self, _: &Path, _: bool) -> Result<Restored, Box<dyn Error>> {
        let (database, user) = (self.0.database(), self.0.user());
        Err(format!(
            "the configured store is in PostgreSQL, whose own tools restore it while no server uses \
             it: a dump is restored into an empty database by pg_restore --username={user} \
             --dbname={database} greenroom.dump"
        )
        .into())
    }

    fn source(&self, config: &Config) -> Result<Box<dyn Source>, Box<dyn Error>> {
        let source = DatabaseSource::open(settings_of_copy(self.0, config));
        Ok(Box::new(source.map_err(refusal(self.0, config))?))
    }

    fn target(&self, config: &Config) -> Result<Box<dyn Target>, Box<dyn Error>> {
        let target = DatabaseTarget::open(settings_of_copy(self.0, config));
        Ok(Box::new(target.map_err(refusal(self.0, config))?))
    }
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
