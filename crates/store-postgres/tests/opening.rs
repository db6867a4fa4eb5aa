//! Opening over a real PostgreSQL: databases that can be used, and each reason to refuse one.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test says what it expects")]

#[path = "opening/alone.rs"]
mod alone;
#[path = "opening/connecting.rs"]
mod connecting;
#[path = "opening/databases.rs"]
mod databases;
#[path = "opening/members.rs"]
mod members;
#[path = "opening/tls.rs"]
mod tls;

use std::sync::Arc;
use std::time::Duration;

use greenroom_actors::ports::meter::NoMeter;
use greenroom_store_postgres::{OpenError, PostgresSettings, PostgresStore};
use support::postgres::Server;

/// Returns settings for a URL, with a patience that costs no time.
fn settings(url: &str, name: &str) -> PostgresSettings {
    let patience = Duration::from_millis(100);
    PostgresSettings { patience, ..PostgresSettings::new(url.parse().unwrap(), name) }
}

fn open(settings: PostgresSettings) -> Result<PostgresStore, OpenError> {
    PostgresStore::open(settings, Arc::new(NoMeter))
}

/// Asserts that a store is refused, with a text that begins like this.
#[track_caller]
fn refused(settings: PostgresSettings, expected: &str) {
    match open(settings) {
        Ok(_) => panic!("opened, and not refused: {expected}"),
        Err(error) => {
            let text = error.to_string();
            assert!(text.starts_with(expected), "{text}\nis not\n{expected}");
        }
    }
}

/// Returns the SQL that a refusal advises, after the last colon of its text.
fn advised(refusal: &OpenError) -> String {
    let text = refusal.to_string();
    let (_, sql) = text.rsplit_once(": ").unwrap();
    sql.to_owned()
}

/// Returns the URL of the superuser for a database.
fn superuser(url: &str) -> String {
    url.replace("greenroom@", "postgres@")
}

/// Runs SQL as the superuser.
fn run(server: &Server, url: &str, sql: &str) -> String {
    server.answer(&superuser(url), sql).unwrap()
}

/// Returns a URL without parameters for another database.
fn at_database(url: &str, name: &str) -> String {
    let (server, _) = url.rsplit_once('/').unwrap();
    format!("{server}/{name}")
}
