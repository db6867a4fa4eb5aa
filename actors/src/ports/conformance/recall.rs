//! Rules of searching, copying and deleting what agents remember.

use std::sync::Arc;

use super::bench::Bench;
use super::conversations::{add, ids, key, list, message, messages, write};
use super::generations::{completed, page, record, total, with_steps};
use super::read;
use crate::domain::message::Part;
use crate::domain::time::Timestamp;
use crate::ports::store::{
    AppendError, Conversation, ConversationFilter, ConversationKey, ConversationPatch,
    ConversationWrite, GenerationRecord, PageSize, SCANNED_MESSAGES_MAX, SEARCHED_CHARS_MAX,
    SOUGHT_CHARS_MAX, StoredMessage,
};

pub(super) async fn run(bench: &impl AsyncFn() -> Bench) {
    rule!(texts_are_found, bench().await);
    rule!(the_last_recorded_message_is_found_first, bench().await);
    rule!(a_search_is_bounded, bench().await);
    rule!(changed_and_deleted_messages_are_not_found, bench().await);
    rule!(a_conversation_is_copied, bench().await);
    rule!(deleted_conversations_are_gone, bench().await);
    rule!(all_data_of_a_user_is_deleted, bench().await);
    rule!(a_history_with_holes_is_counted_and_paged, bench().await);
}

/// Searches messages of the agent `clerk`; returns their ids.
async fn search(bench: &Bench, user: Option<&str>, text: &str, limit: usize) -> Vec<String> {
    let found = read(bench.store.search_messages("clerk", user, text, PageSize::of(limit))).await;
    found.into_iter().map(|(_, message)| message.id).collect()
}

async fn texts_are_found(bench: Bench) {
    let own = key(Some("u1"), "c1");
    let mut parts = message("parts", "one line");
    parts.parts.push(Part::Reasoning { text: "hidden thought".to_owned() });
    parts.parts.push(Part::Text { text: "another line".to_owned() });
    let said = [
        message("plain", "The train to Turin leaves at 7"),
        message("umlaut", "Grüße aus KÖLN, Straße 5"),
        message("quotes", "he said \"no\" AND it's 100% (done) OR NEAR a* b:c ^d -e {f} \\ _ %"),
        message("chinese", "我喜欢喝绿茶"),
        message("null", "before\u{0000}after"),
        message("greek", "ΟΔΟΣΑ"),
        parts,
        StoredMessage { parts: Vec::new(), ..message("empty", "") },
    ];
    add(&bench, write(&own, said.to_vec())).await;
    for stranger in [key(Some("u2"), "c1"), key(None, "c1")] {
        add(&bench, write(&stranger, vec![message("stranger", "Turin \"no\" 绿茶 a*")])).await;
    }
    let cook = ConversationKey { agent_id: Arc::from("cook"), ..own.clone() };
    add(&bench, write(&cook, vec![message("cook", "Turin")])).await;
    let cases: [(&str, &[&str]); 35] = [
        ("turin", &["plain"]),
        ("TURIN LEAVES", &["plain"]),
        ("rain to tur", &["plain"]),
        ("to  Turin", &[]),
        ("leaves Turin", &[]),
        ("grÜSSE", &[]),
        ("GRÜßE", &["umlaut"]),
        ("köln", &["umlaut"]),
        ("koln", &[]),
        ("\"no\"", &["quotes"]),
        ("\"", &["quotes"]),
        ("\"\"\"", &[]),
        ("no\" AND", &["quotes"]),
        ("it's", &["quotes"]),
        ("100%", &["quotes"]),
        ("1%0", &[]),
        ("(done) OR NEAR", &["quotes"]),
        ("turin OR köln", &[]),
        ("a* b:c ^d -e {f}", &["quotes"]),
        ("text:turin", &[]),
        ("\\ _ %", &["quotes"]),
        ("绿茶", &["chinese"]),
        ("喝绿茶", &["chinese"]),
        ("before\u{0000}after", &["null"]),
        ("\u{0000}", &["empty", "parts", "greek", "null", "chinese", "quotes", "umlaut", "plain"]),
        ("οδοσ", &["greek"]),
        ("ΟΔΟΣ", &["greek"]),
        ("hidden", &[]),
        ("line\nanother", &["parts"]),
        ("line another", &[]),
        ("7", &["plain"]),
        ("", &["empty", "parts", "greek", "null", "chinese", "quotes", "umlaut", "plain"]),
        ("stranger", &[]),
        ("'; DROP TABLE messages; --", &[]),
        ("   ", &[]),
    ];
    for (text, expected) in cases {
        assert_eq!(search(&bench, Some("u1"), text, 100).await, expected, "search {text:?}");
    }
    assert_eq!(search(&bench, None, "turin", 9).await, ["stranger"], "of anonymous callers");
    let unknown =
        read(bench.store.search_messages("unknown", Some("u1"), "turin", PageSize::of(9))).await;
    assert!(unknown.is_empty(), "of an agent without conversations");
    let found =
        read(bench.store.search_messages("clerk", Some("u1"), "turin", PageSize::of(9))).await;
    assert_eq!(found, [(own, said[0].clone())], "where it was said, and the whole message");
}

async fn the_last_recorded_message_is_found_first(bench: Bench) {
    let (one, other) = (key(None, "c1"), key(None, "c2"));
    add(&bench, write(&one, vec![message("1", "tea please"), message("2", "tea")])).await;
    add(&bench, write(&other, vec![message("3", "tea")])).await;
    // neither time nor changes matter, only the first record
    let early = StoredMessage { created_at: Timestamp(1), ..message("4", "more tea") };
    add(&bench, write(&one, vec![early, message("1", "green tea")])).await;
    for text in ["tea", "te"] {
        assert_eq!(search(&bench, None, text, 9).await, ["4", "3", "2", "1"], "{text}");
        assert_eq!(search(&bench, None, text, 2).await, ["4", "3"], "{text}, two of them");
        assert!(search(&bench, None, text, 0).await.is_empty(), "{text}, none");
    }
}

async fn a_search_is_bounded(bench: Bench) {
    let own = key(None, "c1");
    let long = "x".repeat(SEARCHED_CHARS_MAX - 3) + "end and more";
    let mut said = vec![message("first", "qq is here"), message("long", &long)];
    said.extend((1..SCANNED_MESSAGES_MAX).map(|i| message(&format!("m{i}"), "filler")));
    add(&bench, write(&own, said)).await;
    assert_eq!(search(&bench, None, "xend", 9).await, ["long"], "the last that is searched");
    assert!(search(&bench, None, "end and", 9).await.is_empty(), "text after it is not");
    assert_eq!(search(&bench, None, "qq is", 9).await, ["first"], "however old");
    assert!(search(&bench, None, "qq", 9).await.is_empty(), "too short for old messages");
    let sought = "x".repeat(SOUGHT_CHARS_MAX) + " is left out";
    assert_eq!(
        search(&bench, None, &sought, 9).await,
        ["long"],
        "only the beginning is searched for"
    );
}

async fn changed_and_deleted_messages_are_not_found(bench: Bench) {
    let own = key(Some("u1"), "c1");
    add(&bench, write(&own, vec![message("1", "old text"), message("2", "cut text")])).await;
    let changed = ConversationWrite {
        cut_after: Some("1".to_owned()),
        ..write(&own, vec![message("1", "new words"), message("3", "third text")])
    };
    add(&bench, changed).await;
    assert_eq!(search(&bench, Some("u1"), "text", 9).await, ["3"], "changed and cut");
    assert_eq!(search(&bench, Some("u1"), "new words", 9).await, ["1"], "as it is now");
    let silent = StoredMessage { parts: Vec::new(), ..message("1", "") };
    add(&bench, write(&own, vec![silent])).await;
    assert!(search(&bench, Some("u1"), "new words", 9).await.is_empty(), "its text was removed");
}

async fn a_conversation_is_copied(bench: Bench) {
    let own = key(Some("u1"), "c1");
    let copy =
        |to: &str| bench.store.clone_conversation(own.clone(), Arc::from(to), Timestamp(5000));
    assert_eq!(copy("c2").await, Ok(false), "there is none");
    let said: Vec<_> = (0..600).map(|i| message(&format!("m{i}"), "some text")).collect();
    add(&bench, write(&own, said.clone())).await;
    let patch = ConversationPatch {
        title: Some(Some("Tax".to_owned())),
        metadata: serde_json::json!({ "a": 1 }).as_object().cloned(),
        working_memory: Some(Some("tea".to_owned())),
    };
    let changed = bench.store.change_conversation(own.clone(), patch, Timestamp(2000)).await;
    assert_eq!(changed, Ok(true), "change");
    assert_eq!(copy("c1").await, Err(AppendError::Exists), "onto itself");
    assert_eq!(copy("c2").await, Ok(true), "copy");
    assert_eq!(copy("c2").await, Err(AppendError::Exists), "taken");
    let to = key(Some("u1"), "c2");
    let original = read(bench.store.conversation(&own)).await.expect("the original");
    let expected = Conversation {
        key: to.clone(),
        created_at: Timestamp(5000),
        updated_at: Timestamp(5000),
        ..original
    };
    assert_eq!(read(bench.store.conversation(&to)).await, Some(expected), "the copy");
    assert_eq!(messages(&bench, &to).await, said, "its messages");
    // both change independently from here on
    add(&bench, write(&to, vec![message("m0", "other words"), message("new", "new text")])).await;
    assert_eq!(messages(&bench, &own).await, said, "the original is as it was");
    assert_eq!(search(&bench, Some("u1"), "text", 2).await, ["new", "m599"], "both are searched");
    assert_eq!(search(&bench, Some("u1"), "text", 5000).await.len(), 1200, "both are searched");
}

async fn deleted_conversations_are_gone(bench: Bench) {
    let (one, other) = (key(Some("u1"), "c1"), key(Some("u1"), "c2"));
    let delete = |key: &ConversationKey| bench.store.delete_conversation(key.clone());
    assert_eq!(delete(&one).await, Ok(false), "there is none");
    // more than one batch of deletion, and an exact multiple of it
    for count in [1, 500, 1200] {
        let said: Vec<_> = (0..count).map(|i| message(&format!("m{i}"), "some text")).collect();
        add(&bench, write(&one, said)).await;
        add(&bench, write(&other, vec![message("m0", "some text")])).await;
        assert_eq!(delete(&one).await, Ok(true), "delete {count}");
        assert_eq!(delete(&one).await, Ok(false), "once");
        assert_eq!(read(bench.store.conversation(&one)).await, None, "gone");
        assert!(messages(&bench, &one).await.is_empty(), "with its messages");
        assert_eq!(search(&bench, Some("u1"), "text", 9).await, ["m0"], "of the other one");
    }
    add(&bench, write(&one, vec![message("new", "x")])).await;
    assert_eq!(ids(&messages(&bench, &one).await), ["new"], "the id is free again");
}

async fn all_data_of_a_user_is_deleted(bench: Bench) {
    let forget = |user: &str| bench.store.forget_user(user.to_owned());
    assert_eq!(forget("u1").await, Ok(0), "an unknown user");
    let cook = ConversationKey { agent_id: Arc::from("cook"), ..key(Some("u1"), "c1") };
    let said: Vec<_> = (0..700).map(|i| message(&format!("m{i}"), "secret")).collect();
    for own in [key(Some("u1"), "c1"), key(Some("u1"), "c2"), cook] {
        add(&bench, write(&own, said.clone())).await;
    }
    let others = [key(Some("u2"), "c1"), key(None, "c1"), key(Some("=u1"), "c1")];
    for other in &others {
        add(&bench, write(other, vec![message("other", "secret")])).await;
    }
    for (i, user) in ["u1", "u2", "u1"].into_iter().enumerate() {
        let of_user =
            GenerationRecord { user_id: Some(user.to_owned()), ..completed(&format!("g{i}")) };
        record(&bench, with_steps(&of_user, &[])).await;
    }
    assert_eq!(forget("u1").await, Ok(3), "conversations");
    assert_eq!(forget("u1").await, Ok(0), "once");
    let of_user = ConversationFilter { agent_id: None, owner: Some(Some("u1".into())) };
    assert_eq!(list(&bench, &of_user).await, (Vec::new(), 0), "no conversations");
    assert!(search(&bench, Some("u1"), "secret", 9).await.is_empty(), "no messages");
    for other in &others {
        assert_eq!(messages(&bench, other).await.len(), 1, "{other:?} is remembered");
    }
    let left = page(&bench, "clerk", 0, 9).await;
    assert_eq!(left, ["g1", "carrier"], "generations of others");
    assert_eq!(total(&bench, "clerk").await, 2, "and how many they are");
    assert_eq!(read(bench.store.generation("g0")).await, None, "not by its id either");
}

/// A user with every `one_of`th generation.
struct Rhythm {
    user: &'static str,
    one_of: usize,
}

async fn a_history_with_holes_is_counted_and_paged(bench: Bench) {
    // more than one block of counts; some in a row, some scattered, the newest and the oldest
    let rhythms = [
        Rhythm { user: "every", one_of: 1 },
        Rhythm { user: "second", one_of: 2 },
        Rhythm { user: "tenth", one_of: 10 },
    ];
    let mut left: Vec<(String, &str)> = Vec::new();
    for i in 0..2600_usize {
        let range = if i < 700 { &rhythms[1..] } else { &rhythms[2..] };
        let by_rhythm = range.iter().find(|rhythm| i % rhythm.one_of == 0);
        let in_a_row = (1000..1100).contains(&i) || i >= 2500;
        let user = if in_a_row { "every" } else { by_rhythm.map_or("", |rhythm| rhythm.user) };
        let id = format!("g{i}");
        let of_user = GenerationRecord { user_id: Some(user.to_owned()), ..completed(&id) };
        record(&bench, with_steps(&of_user, &[])).await;
        left.push((id, user));
    }
    for rhythm in &rhythms {
        let forgotten = bench.store.forget_user(rhythm.user.to_owned()).await;
        assert_eq!(forgotten, Ok(0), "{} has no conversations", rhythm.user);
        left.retain(|(_, user)| *user != rhythm.user);
        // row numbers are not reused, and the newest come first
        let (id, user) = (format!("after {}", rhythm.user), "");
        let next = GenerationRecord { user_id: Some(user.to_owned()), ..completed(&id) };
        record(&bench, with_steps(&next, &[])).await;
        left.push((id, user));
        assert_eq!(total(&bench, "clerk").await, left.len() as u64, "after {}", rhythm.user);
        let newest_first: Vec<&str> = left.iter().rev().map(|(id, _)| id.as_str()).collect();
        for offset in (0..left.len() + 50).step_by(37) {
            let found = page(&bench, "clerk", offset as u64, 5).await;
            let expected: Vec<_> = newest_first.iter().skip(offset).take(5).copied().collect();
            assert_eq!(found, expected, "{offset} behind the newest, after {}", rhythm.user);
        }
    }
    assert_eq!(bench.store.forget_user(String::new()).await, Ok(0), "the rest");
    assert_eq!(total(&bench, "clerk").await, 0, "nothing is left");
    assert!(page(&bench, "clerk", 0, 5).await.is_empty(), "nothing is left");
}
