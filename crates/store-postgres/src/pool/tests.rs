//! The pool over a real database.

use greenroom_actors::ports::meter::NoMeter;
use support::PATIENCE;
use support::postgres::Server;
use support::proxy::{Proxy, Way};
use tokio::runtime::Handle;

use super::*;
use crate::lane::outage::OutageOfOne;

/// Returns a pool of one connection through a proxy.
fn behind_proxy() -> Option<(Pool, Proxy)> {
    let server = Server::shared()?;
    let proxy = Proxy::to(server.port());
    Some((pool_at(&proxy.through(&server.fresh_url())), proxy))
}

/// Returns a pool of one connection.
fn pool_at(url: &str) -> Pool {
    let settings = PostgresSettings {
        connections: 1,
        patience: PATIENCE,
        ..PostgresSettings::new(url.parse().unwrap(), "test")
    };
    let connector = Connector::new(&settings, Handle::current()).unwrap();
    let name = "greenroom/test".to_owned();
    Pool::new(connector, name, &settings, Arc::default(), Arc::new(NoMeter)).unwrap()
}

/// Returns the process of the server that answers.
async fn process(pool: &Pool) -> Result<i32, Failure> {
    let row = pool.connection().await?.row("SELECT pg_backend_pid()", &[]).await?;
    row.unwrap().value(0)
}

#[tokio::test]
async fn a_connection_that_does_not_answer_is_replaced() {
    let Some((mut pool, proxy)) = behind_proxy() else { return };
    let first = process(&pool).await.unwrap();
    assert_eq!(process(&pool).await.unwrap(), first, "the only connection");

    proxy.blackhole(Way::ToClient);
    pool.answer_max = Duration::from_millis(20);
    let failure = process(&pool).await.unwrap_err();
    assert!(failure.is_passing(), "{failure}");
    proxy.resume();
    pool.answer_max = PATIENCE;
    assert_ne!(process(&pool).await.unwrap(), first);
}

#[tokio::test]
async fn a_read_waits_in_an_outage_no_longer_than_the_patience() {
    let Some((mut pool, proxy)) = behind_proxy() else { return };
    let first = process(&pool).await.unwrap();
    proxy.blackhole(Way::ToClient);
    pool.patience = Duration::from_millis(20);
    let mut outage = OutageOfOne::default();
    outage.begin(&pool.outages, "it hangs");
    let asked = |it: Reading| async move { it.row("SELECT 1", &[]).await.map(drop) };
    let refused = pool.read(|| "one".to_owned(), asked).await;
    let reason = "the database has not answered in time: it hangs";
    assert_eq!(refused, Err(ReadError::Unavailable(reason.into())));
    proxy.resume();
    outage.end(&pool.outages);
    assert_ne!(process(&pool).await.unwrap(), first, "the connection may never answer");
}

#[tokio::test]
async fn a_transaction_that_is_not_answered_is_given_up_with_its_connection() {
    let Some((mut pool, proxy)) = behind_proxy() else { return };
    let first = process(&pool).await.unwrap();
    pool.answer_max = Duration::from_millis(20);
    let mut connection = pool.connection().await.unwrap().client;
    proxy.blackhole(Way::ToClient);
    assert!(connection.begin().await.is_err_and(|failure| failure.is_passing()));
    drop(connection);
    proxy.resume();
    pool.answer_max = PATIENCE;
    assert_ne!(process(&pool).await.unwrap(), first);
}

#[tokio::test]
async fn a_read_in_an_outage_fails_with_the_reason_of_the_outage() {
    let Some((mut pool, proxy)) = behind_proxy() else { return };
    pool.patience = Duration::from_millis(50);
    proxy.refuse();
    let read = async || pool.repeated(|| process(&pool)).await.unwrap_err().to_string();
    let before = read().await;
    assert!(before.starts_with("cannot connect to the database: 127.0.0.1:"), "{before}");
    let mut lane = OutageOfOne::default();
    lane.begin(&pool.outages, "the disk is full");
    assert_eq!(read().await, "the database has not answered in time: the disk is full");
    lane.end(&pool.outages);
    assert_eq!(read().await, before);
}

#[tokio::test]
async fn a_wait_for_a_connection_names_the_key_that_limits_them() {
    let pool = pool_at("postgres://ann@127.0.0.1/shop");
    let failure = pool.failure_of(&PoolError::Timeout(TimeoutType::Wait));
    assert_eq!(failure.to_string(), "all `connections` of [store] have been in use for 5s");
}

#[tokio::test]
async fn a_failure_to_connect_has_the_reason_of_each_host() {
    let Some(server) = Server::shared() else { return };
    let [first, second] = [Proxy::to(server.port()), Proxy::to(server.port())];
    let hosts = [&first, &second].map(|proxy| format!("127.0.0.1:{}", proxy.port()));
    let url = first.through(&server.fresh_url()).replacen(&hosts[0], &hosts.join(","), 1);
    let pool = pool_at(&url);
    first.refuse();
    second.refuse();
    let failure = pool.connection().await.err().unwrap();
    assert!(failure.is_passing(), "{failure}");
    let text = failure.to_string();
    for host in &hosts {
        // refused, or reset: a program that another test starts has the listener until it runs
        assert!(text.contains(&format!("{host}: error co")), "{text}");
    }
    second.resume();
    assert!(pool.connection().await.is_ok());
    assert_eq!(pool.connector.failures(), None, "they have passed");
}
