//! Servers over parts of a program.

use std::sync::Arc;

use greenroom_actors::domain::ids::ExecutionId;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::Greenroom;
use crate::builder::{Step, Workflow};
use crate::runtime::{Clock, SystemClock, Timestamp};
use crate::store::{Executions as _, MemoryStore};

/// A time long ago.
const THEN: Timestamp = Timestamp(1_000_000_000_000);

struct Stopped;

impl Clock for Stopped {
    fn now(&self) -> Timestamp {
        THEN
    }

    fn new_id(&self) -> Arc<str> {
        SystemClock.new_id()
    }
}

fn over(store: &Arc<MemoryStore>) -> Greenroom {
    let noop = Workflow::new("noop").step(Step::map("a", json!({ "n": "input.n + 1" })));
    Greenroom::new()
        .configure(|config| config.server.port = 0)
        .store(Arc::clone(store) as _)
        .clock(Arc::new(Stopped))
        .workflow(noop)
}

#[tokio::test]
async fn a_server_keeps_everything_in_the_programs_store_and_dates_it_by_its_clock() {
    let store = Arc::new(MemoryStore::new());
    let server = over(&store).start().await.unwrap();
    let run = server.handle().start("noop", &json!({ "n": 1 })).execution_id("one").await.unwrap();
    assert_eq!(run.result().await.unwrap(), json!({ "n": 2 }));

    let mut connection = TcpStream::connect(server.handle().address()).await.unwrap();
    let request =
        "GET /observability/status HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n";
    connection.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    connection.read_to_string(&mut answer).await.unwrap();
    let body: Value = serde_json::from_str(answer.split("\r\n\r\n").nth(1).unwrap()).unwrap();
    let storage = ["storage", "storagePersistent"].map(|key| body["data"][key].clone());
    assert_eq!(storage, [json!("memory"), json!(false)], "{body}");
    server.stop().await.unwrap();

    let stored = store.describe(&ExecutionId::trusted("one")).await.unwrap().unwrap();
    assert_eq!((stored.header.created_at, stored.ended_at), (THEN, Some(THEN)));

    let server = over(&store).start().await.unwrap();
    let result = server.handle().run("noop", "one").result().await.unwrap();
    assert_eq!(result, json!({ "n": 2 }), "the next server finds it there");
    server.stop().await.unwrap();
}

#[test]
fn a_store_that_servers_would_share_is_refused() {
    let clustered = over(&Arc::default())
        .configure(|config| config.cluster.listen = Some("127.0.0.1:0".parse().unwrap()));
    let refused = clustered.checked().unwrap_err();
    assert_eq!(
        refused.to_string(),
        "cluster.listen: servers share a database of PostgreSQL, and this program has a store of \
         its own"
    );
}
