//! The pool over a real database.

use greenroom_actors::ports::meter::NoMeter;
use support::postgres::Server;
use support::proxy::{Proxy, Way};
use tokio::runtime::Handle;

use super::*;
use crate::settings::PostgresSettings;

/// Upper bound on anything that is expected to happen.
const PATIENCE: Duration = Duration::from_secs(30);

/// Returns a pool of one connection through a proxy.
fn behind_proxy() -> Option<(Pool, Proxy)> {
    let server = Server::shared()?;
    let proxy = Proxy::to(server.port());
    let address = proxy.through(&server.fresh_url()).parse().unwrap();
    let settings = PostgresSettings::new(address, "test");
    let connector = Connector::new(&settings, Handle::current()).unwrap();
    let name = "greenroom/test".to_owned();
    let pool = Pool::new(connector, name, 1, PATIENCE, Arc::new(NoMeter)).unwrap();
    Some((pool, proxy))
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
