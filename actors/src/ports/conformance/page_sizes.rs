//! Rules of pages with many bytes: refused, unless they have one record.

use std::fmt::Debug;

use serde_json::{Map, json};

use super::bench::Bench;
use super::conversations::{add, key, message, write};
use super::generations::{completed, record, step, with_steps, working};
use crate::domain::time::Timestamp;
use crate::ports::store::{
    Conversation, ConversationFilter, GenerationPage, PageSize, PageTooLarge, Read, ReadError,
};

/// Bytes of the text of a record.
const TEXT: usize = 10_000;
/// Number of records.
const RECORDS: usize = 5;

pub(super) async fn run(bench: &impl AsyncFn() -> Bench) {
    rule!(histories_are_bounded, bench().await);
    rule!(turns_count, bench().await);
    rule!(conversations_are_bounded, bench().await);
    rule!(messages_and_searches_are_bounded, bench().await);
}

fn text() -> String {
    "tea ".repeat(TEXT / 4)
}

/// Asserts that pages are refused by their bytes; a record has those of its text, and some more.
async fn assert_bounded<'a, T: Debug>(
    list: &str,
    page: impl Fn(PageSize) -> Read<'a, T>,
    len: impl Fn(&T) -> usize,
) {
    for (records, bytes, expected) in [
        (RECORDS, usize::MAX, Ok(RECORDS)),
        (RECORDS, (RECORDS + 1) * TEXT, Ok(RECORDS)),
        (RECORDS, 4 * TEXT, Err(3)),
        (3, 4 * TEXT, Ok(3)),
        (RECORDS, 1, Err(1)),
        (1, 1, Ok(1)),
    ] {
        let size = PageSize { records, bytes };
        let found = page(size).await.map(|page| len(&page));
        let expected = expected.map_err(|fits| ReadError::TooLarge(PageTooLarge { fits }));
        assert_eq!(found, expected, "{list}: {size:?}");
    }
}

fn entries(page: &GenerationPage) -> usize {
    page.entries.len()
}

async fn histories_are_bounded(bench: Bench) {
    for number in 0..RECORDS {
        let mut generation = completed(&format!("g{number}"));
        generation.input = json!(text());
        record(&bench, with_steps(&generation, &[])).await;
    }
    for user in [None, Some("u1")] {
        let page = |size| bench.store.generations("clerk", user, 0, size);
        assert_bounded("a history", page, entries).await;
    }
}

async fn turns_count(bench: Bench) {
    for number in 0..RECORDS {
        let generation = working(&format!("g{number}"));
        record(&bench, with_steps(&generation, &[])).await;
        record(&bench, with_steps(&generation, &[(0, step(&text()))])).await;
    }
    let page = |size| bench.store.generations("clerk", None, 0, size);
    assert_bounded("a history of long turns", page, entries).await;
}

async fn conversations_are_bounded(bench: Bench) {
    let metadata = Map::from_iter([("note".to_owned(), json!(text()))]);
    for number in 0..RECORDS {
        let is_odd = number % 2 == 1;
        let conversation = Conversation {
            key: key(Some("u1"), &format!("c{number}")),
            title: None,
            metadata: if is_odd { Map::new() } else { metadata.clone() },
            working_memory: is_odd.then(text),
            created_at: Timestamp(1000),
            updated_at: Timestamp(1000),
        };
        assert_eq!(bench.store.create_conversation(conversation).await, Ok(()));
    }
    for agent_id in [None, Some("clerk".to_owned())] {
        for owner in [None, Some(Some("u1".into()))] {
            let filter = ConversationFilter { agent_id: agent_id.clone(), owner };
            let page = |size| bench.store.conversations(&filter, 0, size);
            assert_bounded("conversations", page, |(page, _)| page.len()).await;
        }
    }
}

async fn messages_and_searches_are_bounded(bench: Bench) {
    let key = key(Some("u1"), "long");
    // the newest come first, whatever the older ones have
    let long = (0..RECORDS).map(|number| message(&format!("m{number}"), &text()));
    let older = message("older", &text().repeat(RECORDS));
    add(&bench, write(&key, [older].into_iter().chain(long).collect())).await;
    let page = |size| bench.store.messages(&key, None, size);
    assert_bounded("messages", page, Vec::len).await;
    for sought in ["tea", "te"] {
        let page = |size| bench.store.search_messages("clerk", Some("u1"), sought, size);
        assert_bounded("found messages", page, Vec::len).await;
    }
}
