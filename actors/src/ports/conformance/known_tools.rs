//! Rules of known tools of MCP servers.

use std::sync::Arc;

use super::bench::Bench;
use super::read;
use crate::domain::time::Timestamp;
use crate::ports::store::KnownTool;

pub(super) fn known(tool: &str, hash: &str, at: i64) -> KnownTool {
    KnownTool {
        server: Arc::from("files"),
        tool: Arc::from(tool),
        first_seen: Timestamp(at),
        hash: Arc::from(hash),
        accepted_at: Timestamp(at),
        body: Arc::from(format!("{{\"of\":\"{hash} \u{1a}\"}}")),
    }
}

async fn all(bench: &Bench, tools: &[&str]) -> Vec<KnownTool> {
    let tools: Vec<_> = tools.iter().map(|&tool| Arc::from(tool)).collect();
    read(bench.store.known_tools("files", &tools)).await
}

pub(super) async fn the_first_look_at_a_tool_counts(bench: Bench) {
    let (read_1, write_1) = (known("read", "r1", 1000), known("write", "w1", 1000));
    assert_eq!(all(&bench, &["read"]).await, [], "not there yet");
    assert_eq!(bench.store.see_tools(Vec::new(), 10).await, Ok(()), "none");
    assert_eq!(bench.store.see_tools(vec![write_1.clone(), read_1.clone()], 10).await, Ok(()));
    let again = vec![known("read", "r2", 2000), known("list", "l1", 2000)];
    assert_eq!(bench.store.see_tools(again, 10).await, Ok(()));
    let elsewhere = KnownTool { server: Arc::from("other"), ..known("read", "r3", 3000) };
    assert_eq!(bench.store.see_tools(vec![elsewhere.clone()], 10).await, Ok(()));
    let expected = [known("list", "l1", 2000), read_1, write_1];
    assert_eq!(all(&bench, &["write", "read", "none", "list"]).await, expected, "by name");
    assert_eq!(all(&bench, &["list"]).await, expected[..1], "only those asked for");
    assert_eq!(all(&bench, &[]).await, [], "none is asked for");
    let other = read(bench.store.known_tools("other", &[Arc::from("read")])).await;
    assert_eq!(other, [elsewhere], "servers have their own tools");
}

pub(super) async fn a_server_has_a_limited_number_of_tools(bench: Bench) {
    let seen = ["a", "b", "c"].map(|tool| known(tool, "h", 1000));
    assert_eq!(bench.store.see_tools(seen.to_vec(), 2).await, Ok(()));
    assert_eq!(all(&bench, &["a", "b", "c"]).await, seen[..2], "two");
    assert_eq!(bench.store.see_tools(vec![known("d", "h", 2000)], 2).await, Ok(()));
    assert_eq!(bench.store.see_tools(vec![known("c", "h", 1000)], 3).await, Ok(()));
    assert_eq!(all(&bench, &["a", "b", "c", "d"]).await, seen, "three");
}

pub(super) async fn a_definition_is_accepted_in_place_of_the_one_that_was_seen(bench: Bench) {
    let first = known("read", "r1", 1000);
    let next = known("read", "r2", 2000);
    let accept = |tool: &KnownTool, replaced: &str| {
        bench.store.accept_tool(tool.clone(), Arc::from(replaced))
    };
    assert_eq!(accept(&next, "r1").await, Ok(false), "an unknown tool");
    assert_eq!(
        bench.store.see_tools(vec![first.clone(), known("write", "r1", 1000)], 10).await,
        Ok(())
    );
    assert_eq!(accept(&next, "r0").await, Ok(false), "another one is accepted");
    assert_eq!(all(&bench, &["read"]).await, [first], "nothing has changed");
    assert_eq!(accept(&next, "r1").await, Ok(true));
    assert_eq!(accept(&known("read", "r3", 3000), "r1").await, Ok(false), "the first one wins");
    let accepted = KnownTool { first_seen: Timestamp(1000), ..next };
    let untouched = known("write", "r1", 1000);
    assert_eq!(all(&bench, &["read", "write"]).await, [accepted, untouched], "accepted");
}
