//! Conformance, and answers on the same thread.

use std::time::Duration;

use super::*;
use crate::ports::conformance;

#[tokio::test]
async fn the_store_conforms_to_the_ports() {
    conformance::run(async || Arc::new(MemoryStore::new())).await;
}

#[tokio::test(start_paused = true)]
async fn the_store_conforms_to_the_port_of_members() {
    conformance::run_over_members(async |count| {
        let disk = MemoryStore::new();
        let names = (0..count).map(|number| format!("server-{number}"));
        let stores = names.map(|name| Arc::new(disk.join(name, Duration::from_secs(6))));
        let members = stores.map(|store| (store.clone() as _, store.members().unwrap()));
        members.collect()
    })
    .await;
}

#[tokio::test]
async fn appends_are_acknowledged_before_they_return() {
    let store = Arc::new(MemoryStore::new());
    let mut bench = conformance::Bench::new(store.clone());
    store.set_writable(false);
    store.append(bench.creation("a").append());
    let refused = bench.outcome_now().expect("answered on the same thread");
    assert!(matches!(refused.result, Err(AppendError::Unavailable(_))), "{refused:?}");
    assert!(!store.is_writable());
    let id = ExecutionId::trusted("a");
    assert!(store.load(&id).await.unwrap().is_none(), "nothing of it was stored");

    store.set_writable(true);
    store.append(bench.creation("a").append());
    assert_eq!(bench.outcome_now().map(|outcome| outcome.result), Some(Ok(())));
    assert!(store.load(&id).await.unwrap().is_some());
}
