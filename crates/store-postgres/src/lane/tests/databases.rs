//! Several databases of one PostgreSQL.

use super::*;
use crate::lane::session::END_OLDER;

/// Opens a transaction under the name of a lane, which holds a lock on its table.
async fn holder(url: &str) -> Client {
    let holder = client(url).await;
    let hold = "SET application_name = 'greenroom/7/0/1'; BEGIN; LOCK lanes IN ACCESS SHARE MODE";
    holder.batch_execute(hold).await.unwrap();
    holder
}

#[tokio::test]
async fn connections_to_a_copy_of_the_database_are_not_ended() {
    let Some(server) = Server::shared() else { return };
    let original = server.fresh_database();
    drop(Lab::open_at(&original, &original, 1).await);
    let name = original.rsplit('/').next().unwrap();
    server.sql(&format!(
        "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = '{name}'"
    ));
    // the tables have the same object ids
    server.sql(&format!("CREATE DATABASE {name}_copy TEMPLATE {name} STRATEGY file_copy"));
    let copy = format!("{original}_copy");
    let _held = [holder(&original).await, holder(&copy).await];
    let ended = client(&copy).await.query(END_OLDER, &[&"greenroom/7/0/"]).await.unwrap();
    assert_eq!(ended.len(), 1, "the one of this database");
    let waiting = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'greenroom/7/0/1'
        AND datname || '_copy' = current_database()";
    assert_eq!(server.answer(&copy, waiting).unwrap(), "1");
}
