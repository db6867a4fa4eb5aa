//! Rules of a store that is closed and opened again.

use std::sync::Arc;

use serde_json::json;

use super::bench::{Bench, completed, step_started};
use super::known_tools::known;
use super::read;
use super::timers::key;
use crate::domain::time::Timestamp;
use crate::ports::store::{ExecutionFilter, Status};

pub(super) async fn acknowledged_writes_survive_reopening(open: &impl AsyncFn() -> Bench) {
    let mut bench = open().await;
    let mut first = bench.creation("reopened-a");
    first.idempotency = Some(key("reopened", 1, 5000));
    bench.take(&first).await;
    let mut ended = bench.continuation(&first, vec![step_started(2), completed(3)]);
    ended.status = Status::Completed;
    bench.take(&ended).await;
    let waiting = bench.creation("reopened-b");
    bench.take(&waiting).await;
    read(bench.store.put_definition("reopened", &json!({ "id": "order" }))).await;
    assert_eq!(bench.store.see_tools(vec![known("read", "r1", 1000)], 10).await, Ok(()));
    bench.store.close();
    bench.store.close();
    drop(bench);

    let bench = open().await;
    for draft in [&ended, &waiting] {
        let stored = bench.load(draft.header.id.as_str()).await;
        assert_eq!(stored.revision, draft.revision, "the revision of {}", draft.header.id);
        assert_eq!(stored.projection, draft.projection(), "the row of {}", draft.header.id);
        assert!(stored.facts.ends_with(&draft.facts), "the facts of {}", draft.header.id);
    }
    let (listed, _) = read(bench.store.list(&ExecutionFilter::default(), None, 2)).await;
    assert_eq!(listed, [waiting.projection(), ended.projection()], "they are listed");
    let kept = read(bench.store.idempotency("reopened", Timestamp(4999))).await;
    assert_eq!(kept, Some(key("reopened", 1, 5000)), "keys are still taken");
    let definition = read(bench.store.definition("reopened")).await;
    assert_eq!(definition, Some(json!({ "id": "order" })), "definitions are kept");
    let tools = read(bench.store.known_tools("files", &[Arc::from("read")])).await;
    assert_eq!(tools, [known("read", "r1", 1000)], "tools are known");
    assert!(bench.row() > waiting.row, "row numbers continue, none is used twice");
    bench.store.close();
}

pub(super) async fn a_closed_store_rejects_writes(open: &impl AsyncFn() -> Bench) {
    let mut bench = open().await;
    let late = bench.creation("closed-late");
    bench.store.close();
    assert!(
        bench.append(&late).await.is_err(),
        "an append to a closed store is refused with a reason"
    );
    let asked = bench.store.describe(&late.header.id).await;
    assert!(asked.is_err(), "a closed store cannot be read");
    drop(bench);
    let bench = open().await;
    assert_eq!(bench.describe("closed-late").await, None, "the refused append is not stored");
    bench.store.close();
}
