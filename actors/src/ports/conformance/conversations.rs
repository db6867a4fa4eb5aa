//! Rules of conversations.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::bench::Bench;
use super::generations::{record, total, working};
use super::{pages, read};
use crate::domain::message::{Part, Role};
use crate::domain::time::Timestamp;
use crate::ports::store::{
    AppendError, ApprovedTools, ContinuationChange, Conversation, ConversationFilter,
    ConversationKey, ConversationPatch, ConversationWrite, GenerationWrite, PageSize,
    StoredMessage,
};

pub(super) async fn run(bench: &impl AsyncFn() -> Bench) {
    rule!(messages_come_with_their_generation, bench().await);
    rule!(changed_messages_keep_their_position, bench().await);
    rule!(messages_after_one_can_be_deleted, bench().await);
    rule!(messages_are_paged, bench().await);
    rule!(approved_tools_belong_to_a_conversation, bench().await);
    rule!(all_kinds_of_parts_are_stored, bench().await);
    rule!(owners_are_apart, bench().await);
    rule!(a_conversation_is_created_once, bench().await);
    rule!(a_patch_changes_only_its_fields, bench().await);
    rule!(lists_are_filtered_and_paged, bench().await);
}

/// Returns the key of a conversation of the agent `clerk`.
pub(super) fn key(user: Option<&str>, id: &str) -> ConversationKey {
    ConversationKey {
        agent_id: Arc::from("clerk"),
        user_id: user.map(Arc::from),
        conversation_id: Arc::from(id),
    }
}

pub(super) fn message(id: &str, text: &str) -> StoredMessage {
    StoredMessage {
        id: id.to_owned(),
        role: Role::User,
        parts: vec![Part::Text { text: text.to_owned() }],
        created_at: Timestamp(1000),
        generation_id: None,
    }
}

/// Returns messages whose text is their id.
fn named(ids: &[&str]) -> Vec<StoredMessage> {
    ids.iter().map(|id| message(id, id)).collect()
}

pub(super) fn write(key: &ConversationKey, messages: Vec<StoredMessage>) -> ConversationWrite {
    let approved_tools = ApprovedTools::new();
    let at = Timestamp(1000);
    ConversationWrite { key: key.clone(), cut_after: None, messages, approved_tools, at }
}

/// Records the messages with an empty generation.
pub(super) async fn add(bench: &Bench, messages: ConversationWrite) {
    let write = GenerationWrite {
        row: 0,
        record: working("carrier"),
        steps: Vec::new(),
        messages: Some(messages),
        continuation: ContinuationChange::Keep,
    };
    record(bench, write).await;
}

pub(super) async fn messages(bench: &Bench, key: &ConversationKey) -> Vec<StoredMessage> {
    read(bench.store.messages(key, None, PageSize::of(usize::MAX))).await
}

pub(super) fn ids(messages: &[StoredMessage]) -> Vec<&str> {
    messages.iter().map(|message| message.id.as_str()).collect()
}

async fn conversation(bench: &Bench, key: &ConversationKey) -> Option<Conversation> {
    read(bench.store.conversation(key)).await
}

pub(super) async fn list(bench: &Bench, filter: &ConversationFilter) -> (Vec<String>, u64) {
    let (page, total) = read(bench.store.conversations(filter, 0, PageSize::of(usize::MAX))).await;
    let id = |conversation: Conversation| conversation.key.conversation_id.to_string();
    (page.into_iter().map(id).collect(), total)
}

fn bare(key: &ConversationKey, at: i64) -> Conversation {
    Conversation {
        key: key.clone(),
        title: None,
        metadata: Map::new(),
        working_memory: None,
        created_at: Timestamp(at),
        updated_at: Timestamp(at),
    }
}

async fn messages_come_with_their_generation(bench: Bench) {
    let key = key(Some("u1"), "c1");
    assert_eq!(conversation(&bench, &key).await, None, "none at first");
    assert!(messages(&bench, &key).await.is_empty(), "nor messages");
    add(&bench, write(&key, named(&["m1", "m2"]))).await;
    assert_eq!(total(&bench, "clerk").await, 1, "the generation");
    assert_eq!(conversation(&bench, &key).await, Some(bare(&key, 1000)), "made by the write");
    assert_eq!(messages(&bench, &key).await, named(&["m1", "m2"]), "its messages");
    let later = ConversationWrite { at: Timestamp(2000), ..write(&key, named(&["m3"])) };
    add(&bench, later).await;
    let changed = Conversation { updated_at: Timestamp(2000), ..bare(&key, 1000) };
    assert_eq!(conversation(&bench, &key).await, Some(changed), "the time of the newest message");
    assert_eq!(ids(&messages(&bench, &key).await), ["m1", "m2", "m3"], "added at the end");
}

async fn changed_messages_keep_their_position(bench: Bench) {
    let (one, other) = (key(None, "c1"), key(None, "c2"));
    add(&bench, write(&one, named(&["b", "a", "c"]))).await;
    // written alternately, so that their rows interleave
    add(&bench, write(&other, named(&["a", "b"]))).await;
    let mut changed = message("a", "changed");
    changed.role = Role::Assistant;
    changed.created_at = Timestamp(5000);
    changed.generation_id = Some("g1".to_owned());
    let twice = vec![changed.clone(), message("d", "once"), message("d", "twice")];
    add(&bench, write(&one, twice)).await;
    let expected = [message("b", "b"), changed, message("c", "c"), message("d", "twice")];
    assert_eq!(messages(&bench, &one).await, expected, "in their places");
    assert_eq!(messages(&bench, &other).await, named(&["a", "b"]), "ids of another conversation");
}

async fn messages_after_one_can_be_deleted(bench: Bench) {
    let (one, other) = (key(None, "c1"), key(None, "c2"));
    add(&bench, write(&one, named(&["1", "2", "3", "4"]))).await;
    add(&bench, write(&other, named(&["1", "2", "3"]))).await;
    let cut = |after: &str, ids: &[&str]| ConversationWrite {
        cut_after: Some(after.to_owned()),
        ..write(&one, named(ids))
    };
    let cases: [(&str, &[&str], &[&str]); 5] = [
        ("nowhere", &[], &["1", "2", "3", "4"]),
        ("4", &["5"], &["1", "2", "3", "4", "5"]),
        ("2", &["6"], &["1", "2", "6"]),
        ("1", &["2", "3"], &["1", "2", "3"]),
        ("1", &[], &["1"]),
    ];
    for (after, added, left) in cases {
        add(&bench, cut(after, added)).await;
        assert_eq!(ids(&messages(&bench, &one).await), left, "after {after}, {added:?}");
    }
    assert_eq!(ids(&messages(&bench, &other).await), ["1", "2", "3"], "another conversation");
}

async fn approved_tools_belong_to_a_conversation(bench: Bench) {
    let tools = |tools: &[(&str, &str)]| -> ApprovedTools {
        tools.iter().map(|(tool, schema)| (Arc::from(*tool), Arc::from(*schema))).collect()
    };
    let approved = async |key: &ConversationKey| read(bench.store.approved_tools(key)).await;
    let (one, other) = (key(Some("u1"), "c1"), key(None, "c1"));
    let write_of = |key: &ConversationKey, approved: &[(&str, &str)]| ConversationWrite {
        approved_tools: tools(approved),
        ..write(key, named(&["m1"]))
    };
    type Tools<'a> = &'a [(&'a str, &'a str)];
    let rows: [(Tools<'_>, Tools<'_>); 4] = [
        (&[("refund", "a")], &[("refund", "a")]),
        (&[], &[("refund", "a")]),
        (&[("pay \"now\"", "b")], &[("refund", "a"), ("pay \"now\"", "b")]),
        (&[("refund", "c")], &[("refund", "c"), ("pay \"now\"", "b")]),
    ];
    assert_eq!(approved(&one).await, tools(&[]), "there is no conversation");
    for (added, expected) in rows {
        add(&bench, write_of(&one, added)).await;
        assert_eq!(approved(&one).await, tools(expected), "{added:?} are added");
    }
    add(&bench, write_of(&other, &[])).await;
    assert_eq!(approved(&other).await, tools(&[]), "those of another conversation");
    let to = key(Some("u1"), "copy");
    let copied =
        bench.store.clone_conversation(one.clone(), to.conversation_id.clone(), Timestamp(2));
    assert_eq!(copied.await, Ok(true));
    assert_eq!(approved(&to).await, tools(&[]), "a copy is another conversation");
    assert_eq!(bench.store.delete_conversation(one.clone()).await, Ok(true));
    add(&bench, write_of(&one, &[])).await;
    assert_eq!(approved(&one).await, tools(&[]), "it has ended with the conversation");
}

async fn messages_are_paged(bench: Bench) {
    let key = key(Some("u1"), "long");
    let all: Vec<_> = (0..1000).map(|i| message(&format!("m{i}"), "text")).collect();
    for some in all.chunks(300) {
        add(&bench, write(&key, some.to_vec())).await;
    }
    let mut pages = pages::every("messages", async |before: Option<String>| {
        let page = read(bench.store.messages(&key, before.as_deref(), PageSize::of(128))).await;
        let oldest = page.first().map(|message| message.id.to_string());
        (page, oldest)
    })
    .await;
    assert_eq!(pages.pop(), Some(Vec::new()), "before the first message there is none");
    assert_eq!(pages.len(), 8, "pages of 128");
    let paged: Vec<_> = pages.into_iter().rev().flatten().collect();
    assert_eq!(paged, all, "1000 messages, page by page");
    let unknown = read(bench.store.messages(&key, Some("nowhere"), PageSize::of(10))).await;
    assert!(unknown.is_empty(), "before a message that is not there");
    for (id, is_there) in [("m0", true), ("m999", true), ("m1000", false), ("nowhere", false)] {
        assert_eq!(read(bench.store.has_message(&key, id)).await, is_there, "{id}");
    }
    let other = ConversationKey { conversation_id: Arc::from("other"), ..key.clone() };
    assert!(!read(bench.store.has_message(&other, "m0")).await, "of another conversation");
    assert!(
        read(bench.store.messages(&key, None, PageSize::of(0))).await.is_empty(),
        "a page of none"
    );
}

async fn all_kinds_of_parts_are_stored(bench: Bench) {
    let key = key(Some("Jürgen 🎭"), "Gespräch \u{0000} \"1\"");
    let mut said = message("ü'\"; DROP TABLE messages", "grün \u{0000} 👋 \\ %_");
    said.role = Role::Assistant;
    let more: Vec<Part> = serde_json::from_value(json!([
        { "type": "reasoning", "text": "hm" },
        { "type": "file", "mediaType": "image/png", "source": { "base64": "aGk=" } },
        { "type": "tool-call", "toolCallId": "t", "toolName": "add", "input": { "n": [1, null] } },
        { "type": "tool-result", "toolCallId": "t", "toolName": "add", "input": {}, "error": "no" },
        { "type": "provider-state", "provider": "p", "state": { "signature": "s" } },
    ]))
    .expect("the stored form");
    said.parts.extend(more);
    let empty = StoredMessage { parts: Vec::new(), ..message("empty", "") };
    add(&bench, write(&key, vec![said.clone(), empty.clone()])).await;
    assert_eq!(messages(&bench, &key).await, [said, empty], "whole messages");
}

async fn owners_are_apart(bench: Bench) {
    let cook = ConversationKey { agent_id: Arc::from("cook"), ..key(Some("u1"), "c") };
    let owners =
        [key(Some("u1"), "c"), key(Some("u2"), "c"), key(Some(""), "c"), key(None, "c"), cook];
    for (i, key) in owners.iter().enumerate() {
        add(&bench, write(key, vec![message("m", &format!("of {i}"))])).await;
    }
    for (i, key) in owners.iter().enumerate() {
        let own = [message("m", &format!("of {i}"))];
        assert_eq!(messages(&bench, key).await, own, "{key:?}");
        let found = conversation(&bench, key).await;
        assert_eq!(found.map(|found| found.key).as_ref(), Some(key), "{key:?}");
    }
    let filter = ConversationFilter { agent_id: None, owner: Some(Some("".into())) };
    assert_eq!(list(&bench, &filter).await.1, 1, "an empty name is a name");
    assert_eq!(bench.store.delete_conversation(owners[0].clone()).await, Ok(true), "delete one");
    for key in &owners[1..] {
        assert_eq!(messages(&bench, key).await.len(), 1, "{key:?} is still there");
    }
}

async fn a_conversation_is_created_once(bench: Bench) {
    let mut made = bare(&key(Some("u1"), "c1"), 500);
    made.title = Some("Tax".to_owned());
    made.metadata.insert("n".to_owned(), json!({ "deep": [1, "ü"] }));
    made.working_memory = Some("prefers tea".to_owned());
    assert_eq!(bench.store.create_conversation(made.clone()).await, Ok(()), "create");
    assert_eq!(conversation(&bench, &made.key).await.as_ref(), Some(&made), "as it was given");
    let again = bare(&made.key, 900);
    let refused = bench.store.create_conversation(again).await;
    assert_eq!(refused, Err(AppendError::Exists), "there is one");
    assert_eq!(conversation(&bench, &made.key).await.as_ref(), Some(&made), "a refusal");
    add(&bench, write(&made.key, named(&["m1"]))).await;
    let spoken = Conversation { updated_at: Timestamp(1000), ..made };
    assert_eq!(conversation(&bench, &spoken.key).await, Some(spoken), "a write keeps the rest");
}

async fn a_patch_changes_only_its_fields(bench: Bench) {
    let mut expected = bare(&key(Some("u1"), "c1"), 500);
    let patch = ConversationPatch::default();
    let unknown = bench.store.change_conversation(expected.key.clone(), patch, Timestamp(600));
    assert_eq!(unknown.await, Ok(false), "there is none");
    assert_eq!(conversation(&bench, &expected.key).await, None, "and none is made");
    assert_eq!(bench.store.create_conversation(expected.clone()).await, Ok(()), "create");
    let metadata = |value: Value| value.as_object().cloned();
    let patches = [
        ConversationPatch { title: Some(Some("Tax".to_owned())), ..Default::default() },
        ConversationPatch {
            metadata: metadata(json!({ "a": 1 })),
            working_memory: Some(Some("tea".to_owned())),
            ..Default::default()
        },
        ConversationPatch::default(),
        ConversationPatch { title: Some(None), ..Default::default() },
        ConversationPatch {
            working_memory: Some(None),
            metadata: metadata(json!({})),
            ..Default::default()
        },
    ];
    for (i, patch) in patches.into_iter().enumerate() {
        expected.updated_at = Timestamp(1000 + i as i64);
        let ConversationPatch { title, metadata, working_memory } = patch.clone();
        expected.title = title.unwrap_or(expected.title);
        expected.metadata = metadata.unwrap_or(expected.metadata);
        expected.working_memory = working_memory.unwrap_or(expected.working_memory);
        let (key, at) = (expected.key.clone(), expected.updated_at);
        assert_eq!(bench.store.change_conversation(key, patch, at).await, Ok(true), "patch {i}");
        let kept = conversation(&bench, &expected.key).await;
        assert_eq!(kept.as_ref(), Some(&expected), "after patch {i}");
    }
}

async fn lists_are_filtered_and_paged(bench: Bench) {
    let mut all = Vec::new();
    for i in 0..24_i64 {
        let agent = ["clerk", "cook"][usize::from(i % 3 == 0)];
        let user = [None, Some("u1"), Some("u2")][(i % 4).min(2) as usize];
        let key = ConversationKey { agent_id: Arc::from(agent), ..key(user, &format!("c{i}")) };
        // pairs with the same change time
        let made = bare(&key, 1000 + i / 2);
        assert_eq!(bench.store.create_conversation(made.clone()).await, Ok(()), "create {i}");
        all.push(made);
    }
    // the oldest becomes the newest
    let at = Timestamp(9000);
    let changed =
        bench.store.change_conversation(all[1].key.clone(), ConversationPatch::default(), at);
    assert_eq!(changed.await, Ok(true), "change");
    let mut moved = all.remove(1);
    moved.updated_at = at;
    all.push(moved);
    all.reverse();
    for agent in [None, Some("clerk"), Some("cook"), Some("unknown")] {
        for owner in [None, Some(None), Some(Some("u1")), Some(Some("unknown"))] {
            let agent_id = agent.map(str::to_owned);
            let filter = ConversationFilter { agent_id, owner: owner.map(|it| it.map(Arc::from)) };
            let is_wanted = |it: &&Conversation| {
                agent.is_none_or(|agent| *it.key.agent_id == *agent)
                    && owner.is_none_or(|owner| it.key.user_id.as_deref() == owner)
            };
            let expected: Vec<_> = all.iter().filter(is_wanted).cloned().collect();
            for (offset, limit) in [(0, 100), (0, 3), (2, 4), (23, 5), (100, 5), (0, 0)] {
                let page: Vec<_> = expected.iter().skip(offset).take(limit).cloned().collect();
                let found =
                    read(bench.store.conversations(&filter, offset as u64, PageSize::of(limit)))
                        .await;
                assert_eq!(found, (page, expected.len() as u64), "{filter:?} {offset} {limit}");
            }
        }
    }
}
