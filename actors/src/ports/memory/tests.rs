//! The rules of the port, and answers on the same thread.

use super::*;
use crate::ports::conformance;

#[tokio::test]
async fn keeps_the_rules_of_the_port() {
    conformance::run(|| Arc::new(MemoryStore::new())).await;
}

#[tokio::test]
async fn acknowledges_before_append_returns_and_refuses_when_told_to() {
    let store = Arc::new(MemoryStore::new());
    let mut bench = conformance::Bench::new(store.clone());
    store.set_writable(false);
    store.append(bench.creation("a").append());
    let refused = bench.heard_already().expect("answered on the same thread");
    assert!(matches!(refused.result, Err(AppendError::Unavailable(_))), "{refused:?}");
    assert!(!store.is_writable());
    let id = ExecutionId::trusted("a");
    assert!(store.load(&id).await.unwrap().is_none(), "nothing of it was stored");

    store.set_writable(true);
    store.append(bench.creation("a").append());
    assert_eq!(bench.heard_already().map(|heard| heard.result), Some(Ok(())));
    assert!(store.load(&id).await.unwrap().is_some());
}
