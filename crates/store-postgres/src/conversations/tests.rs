//! Changes of conversations that are repeated, and searches beyond the newest messages.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use greenroom_actors::domain::time::Timestamp;
use greenroom_actors::ports::store::{
    Conversation, ConversationKey, ConversationPatch, Conversations as _, PageSize,
};
use greenroom_store_codec::prepared::PreparedConversation;
use serde_json::Map;
use tokio_postgres::Client;

use super::{delete_part, find, insert, insert_copy, next_number};
use crate::tests::Fresh;

fn key(user: Option<&str>, id: &str) -> ConversationKey {
    ConversationKey {
        agent_id: Arc::from("clerk"),
        user_id: user.map(Arc::from),
        conversation_id: Arc::from(id),
    }
}

fn conversation(key: &ConversationKey) -> Conversation {
    Conversation {
        key: key.clone(),
        title: None,
        metadata: Map::new(),
        working_memory: None,
        created_at: Timestamp(1),
        updated_at: Timestamp(1),
    }
}

#[tokio::test]
async fn repeated_changes_recognize_what_they_did() {
    let Some(lab) = Fresh::open() else { return };
    let pool = &lab.store.shared.pool;
    let own = key(Some("u1"), "c1");
    let prepared = PreparedConversation::new(conversation(&own)).unwrap();
    let [first, second] = [next_number(pool).await.unwrap(), next_number(pool).await.unwrap()];
    for _ in 0..2 {
        let found = pool.change(|changing| insert(changing, &prepared, first)).await;
        assert_eq!(found.unwrap(), Some(first));
    }
    let found = pool.change(|changing| insert(changing, &prepared, second)).await;
    assert_eq!(found.unwrap(), Some(first), "of another caller");

    let [first, second] = [next_number(pool).await.unwrap(), next_number(pool).await.unwrap()];
    let copy = |number| {
        let own = &own;
        pool.change(move |changing| insert_copy(changing, own, "copy", number, Timestamp(2)))
    };
    for _ in 0..2 {
        assert_eq!(copy(first).await.unwrap(), (true, Some(first)));
    }
    assert_eq!(copy(second).await.unwrap(), (true, Some(first)), "of another caller");
}

#[tokio::test]
async fn a_change_whose_caller_leaves_before_there_is_room_is_not_made() {
    let Some(lab) = Fresh::open() else { return };
    let shared = &lab.store.shared;
    let all = u32::try_from(shared.settings.connections).unwrap();
    let taken = shared.room_for_changes.acquire_many(all).await.unwrap();
    let [left, patient] = ["left", "patient"].map(|id| key(None, id));
    assert_eq!(lab.store.create_conversation(conversation(&left)).now_or_never(), None);
    let mut waiting = lab.store.create_conversation(conversation(&patient));
    assert_eq!((&mut waiting).now_or_never(), None);
    drop(taken);
    assert_eq!(waiting.await, Ok(()));
    assert!(lab.store.conversation(&left).await.unwrap().is_none());
}

#[tokio::test]
async fn a_repeated_deletion_leaves_a_new_conversation() {
    let Some(lab) = Fresh::open() else { return };
    let (pool, own) = (&lab.store.shared.pool, key(None, "c1"));
    assert_eq!(lab.store.create_conversation(conversation(&own)).await, Ok(()));
    let number = pool.change(|changing| find(changing, &own)).await.unwrap().unwrap();
    let delete = || pool.change(move |changing| delete_part(changing, number));
    assert!(delete().await.unwrap().is_last);
    assert_eq!(lab.store.create_conversation(conversation(&own)).await, Ok(()), "again");
    assert!(delete().await.unwrap().is_last);
    assert!(lab.store.conversation(&own).await.unwrap().is_some(), "it is another one");
}

#[tokio::test]
async fn a_memory_ends_with_its_last_conversation() {
    let Some(lab) = Fresh::open() else { return };
    let (one, other) = (key(Some("u1"), "c1"), key(Some("u1"), "c2"));
    for own in [&one, &other] {
        assert_eq!(lab.store.create_conversation(conversation(own)).await, Ok(()));
    }
    for (own, left) in [(&one, "1"), (&other, "0")] {
        assert_eq!(lab.store.delete_conversation(own.clone()).await, Ok(true));
        assert_eq!(lab.sql("SELECT count(*) FROM memories"), left);
    }
    // many at once, so that they meet
    for round in 0..20 {
        let create = lab.store.create_conversation(conversation(&one));
        let delete = lab.store.delete_conversation(other.clone());
        let clone = lab.store.clone_conversation(other.clone(), Arc::from("c3"), Timestamp(1));
        let results = tokio::join!(create, delete, clone);
        assert!(matches!(results, (Ok(()), Ok(_), Ok(_))), "{round}: {results:?}");
        let orphans = "SELECT count(*) FROM conversations c
            WHERE NOT EXISTS (SELECT FROM memories m WHERE m.n = c.memory)";
        assert_eq!(lab.sql(orphans), "0", "{round}");
        assert_eq!(lab.store.delete_conversation(one.clone()).await, Ok(true), "{round}");
        let _ = lab.store.delete_conversation(key(Some("u1"), "c3")).await.unwrap();
        assert_eq!(lab.store.create_conversation(conversation(&other)).await, Ok(()));
    }
}

/// Waits until only conversations of these owners are locked by no transaction.
async fn until_free(client: &Client, owners: &str) {
    let free = "SELECT coalesce(string_agg(owner, ' '), 'none') FROM (
        SELECT owner FROM conversations ORDER BY owner FOR UPDATE SKIP LOCKED) AS free";
    let waiting = async {
        while client.query_one(free, &[]).await.unwrap().get::<_, String>(0) != owners {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let waited = tokio::time::timeout(Duration::from_secs(30), waiting).await;
    assert!(waited.is_ok(), "never: {owners}");
}

#[tokio::test]
async fn conversations_are_locked_before_memories() {
    let Some(lab) = Fresh::open() else { return };
    let all = [key(Some("u1"), "c1"), key(Some("u2"), "c1"), key(Some("u2"), "c2")];
    for own in &all {
        assert_eq!(lab.store.create_conversation(conversation(own)).await, Ok(()));
    }
    let mut other = lab.client().await;
    let observer = lab.client().await;
    let held = other.transaction().await.unwrap();
    held.execute("SELECT FROM memories FOR UPDATE", &[]).await.unwrap();
    // each locks its conversations, and then waits for their memory
    let mut delete = lab.store.delete_conversation(all[0].clone());
    tokio::select! {
        result = &mut delete => panic!("it does not wait: {result:?}"),
        () = until_free(&observer, "=u2 =u2") => {}
    }
    let mut forget = lab.store.forget_user("u2".to_owned());
    tokio::select! {
        result = &mut forget => panic!("it does not wait: {result:?}"),
        () = until_free(&observer, "none") => {}
    }
    held.commit().await.unwrap();
    assert_eq!(tokio::join!(delete, forget), (Ok(true), Ok(2)));
    assert_eq!(lab.sql("SELECT count(*) FROM memories"), "0");
}

#[tokio::test]
async fn texts_beyond_the_newest_messages_are_found_by_their_trigrams() {
    let Some(lab) = Fresh::open() else { return };
    let own = key(None, "c1");
    assert_eq!(lab.store.create_conversation(conversation(&own)).await, Ok(()));
    // the oldest message has the text
    let said = "100% of \\o/ ... a_b \"q\" 喝绿茶 köln \u{1a}1";
    let add = format!(
        "INSERT INTO messages (conversation, place, memory, created, role, id, parts, folded)
         SELECT n, i, memory, 1, 1, 'm' || i, '[]', CASE i WHEN 1 THEN '{said}' ELSE 'x' END
         FROM conversations, generate_series(1, 1100) AS i"
    );
    lab.sql(&add);
    let search = async |text: &str| {
        let found = lab.store.search_messages("clerk", None, text, PageSize::of(9)).await.unwrap();
        found.len()
    };
    for (text, expected) in [
        ("100%", 1),
        ("1%0", 0),
        ("OF \\O", 1),
        ("a_b", 1),
        ("a%b", 0),
        ("aab", 0),
        ("喝绿茶", 1),
        ("Köln", 1),
        ("\" ", 0),
        ("q\" 喝", 1),
        ("\u{1a}1", 0),
        ("köln \u{1a}1", 1),
        ("köln 1", 0),
        ("\\o/", 1),
        // without a trigram
        ("...", 0),
        ("x", 9),
        ("", 9),
    ] {
        assert_eq!(search(text).await, expected, "{text:?}");
    }
    let patch = ConversationPatch { title: Some(Some("\0".to_owned())), ..Default::default() };
    assert_eq!(lab.store.change_conversation(own.clone(), patch, Timestamp(3)).await, Ok(true));
    let found = lab.store.conversation(&own).await.unwrap().unwrap();
    assert_eq!(found.title.as_deref(), Some("\0"));
}
