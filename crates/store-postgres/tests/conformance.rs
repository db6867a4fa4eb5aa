//! The rules that all stores obey, over a real PostgreSQL.
#![expect(clippy::unwrap_used, reason = "a test says what it expects")]

use std::sync::Arc;
use std::time::Duration;

use greenroom_actors::ports::conformance;
use greenroom_actors::ports::meter::NoMeter;
use greenroom_store_postgres::{ClusterSettings, PostgresSettings, PostgresStore};
use support::postgres::Server;

fn open(url: &str) -> Arc<PostgresStore> {
    let settings = PostgresSettings::new(url.parse().unwrap(), "test");
    Arc::new(PostgresStore::open(settings, Arc::new(NoMeter)).unwrap())
}

#[tokio::test]
async fn obeys_every_rule_of_stores() {
    let Some(server) = Server::shared() else { return };
    conformance::run(async || open(&server.fresh_url())).await;
}

#[tokio::test]
async fn obeys_every_rule_of_stores_that_are_shared() {
    let Some(server) = Server::shared() else { return };
    conformance::run_over_members(async |count| {
        let url = server.fresh_url();
        let names = (0..count).map(|number| format!("server-{number}"));
        let stores = names.map(|name| {
            let lease = Duration::from_millis(1200);
            let cluster = Some(ClusterSettings { lease, address: None });
            let settings = PostgresSettings::new(url.parse().unwrap(), name);
            let settings = PostgresSettings { cluster, connections: 2, ..settings };
            Arc::new(PostgresStore::open(settings, Arc::new(NoMeter)).unwrap())
        });
        stores.map(|store| (store.clone() as _, store.members().unwrap())).collect()
    })
    .await;
}

#[tokio::test]
async fn obeys_the_rules_of_persistent_stores() {
    let Some(server) = Server::shared() else { return };
    let url = server.fresh_url();
    conformance::run_over_restarts(async || open(&url)).await;
}
