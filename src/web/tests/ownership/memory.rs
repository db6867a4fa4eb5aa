//! Ownership of conversations over HTTP, by token.

use greenroom_actors::domain::time::Timestamp;
use greenroom_actors::ports::store::{Conversation, ConversationKey, Conversations};

use super::*;

const CONVERSATIONS: &str = "/api/memory/conversations";

/// Creates two conversations of `ann`, one of `ben` and one of `robot`.
async fn remember(site: &Site) {
    let talks = [("ann", "a1"), ("ann", "a2"), ("ben", "b1"), ("robot", "r1")];
    for (who, id) in talks {
        let options = json!({ "conversationId": id, "userId": "ann" });
        let body = json!({ "input": format!("tea for {who}"), "options": options });
        site.data_for(who, "POST /agents/assistant/text", Some(&body)).await;
    }
}

/// Returns what `who` sees: ids of a list, its total, and the number of search results.
async fn remembered(site: &Site, who: &str, query: &str) -> (String, u64, usize) {
    let list = site.data_for(who, &format!("GET {CONVERSATIONS}?{query}"), None).await;
    let rows = list["conversations"].as_array().unwrap();
    let mut ids: Vec<_> = rows.iter().map(|row| row["id"].as_str().unwrap()).collect();
    ids.sort_unstable();
    let path = format!("GET /api/memory/search?q=tea+for&{query}");
    let found = site.data_for(who, &path, None).await;
    let messages = found["results"].as_array().unwrap();
    let of_users = messages.iter().filter(|message| message["message"]["role"] == "user");
    (ids.join(" "), list["total"].as_u64().unwrap(), of_users.count())
}

#[actix_web::test]
async fn conversations_are_of_the_user_of_the_token() {
    for owner_roles in [None, Some("admin")] {
        let site = site(owner_roles).await;
        remember(&site).await;
        for query in ["", "userId=ann", "userId=robot"] {
            let rows = [("ann", "a1 a2", 2), ("ben", "b1", 1), ("carl", "", 0)];
            for (who, ids, count) in rows {
                let found = remembered(&site, who, query).await;
                let expected = (ids.to_owned(), u64::try_from(count).unwrap(), count);
                assert_eq!(found, expected, "{who} {query} {owner_roles:?}");
            }
        }
    }
}

#[actix_web::test]
async fn a_token_without_an_id_never_means_all_users() {
    let site = site(None).await;
    remember(&site).await;
    let anonymous = ("r1".to_owned(), 1, 1);
    assert_eq!(remembered(&site, "robot", "").await, anonymous);
    assert_eq!(remembered(&site, "robot", "userId=ann").await, anonymous);
}

#[actix_web::test]
async fn a_token_without_an_id_owns_no_conversations() {
    let site = owned().await;
    remember(&site).await;
    assert_eq!(remembered(&site, "robot", "").await, (String::new(), 0, 0));
    // Stored before conversations had owners.
    let key = ConversationKey {
        agent_id: "assistant".into(),
        user_id: None,
        conversation_id: "old".into(),
    };
    let old = Conversation {
        key,
        title: None,
        metadata: serde_json::Map::new(),
        working_memory: None,
        created_at: Timestamp(1),
        updated_at: Timestamp(1),
    };
    site.store.create_conversation(old).await.unwrap();
    let rows = [
        ("GET", "old", "", 404),
        ("DELETE", "old", "", 404),
        ("PATCH", "old", "{\"title\":\"x\"}", 404),
        ("GET", "old/messages", "", 404),
        ("GET", "old/working-memory", "", 404),
        ("POST", "old/working-memory", "{\"content\":\"x\"}", 404),
        ("POST", "old/clone", "{}", 404),
    ];
    for (method, path, body, status) in rows {
        let path = format!("{CONVERSATIONS}/{path}");
        let answer = site.send(method, &path, &bearer("robot"), Some(body)).await;
        assert_eq!(answer.status, status, "{method} {path}: {}", answer.body);
        assert_eq!(answer.json()["error"], "Conversation not found", "{method} {path}");
    }
    for id in ["old", "new"] {
        let body = json!({ "conversationId": id });
        let made = site.ask("robot", &format!("POST {CONVERSATIONS}"), Some(&body)).await;
        assert_eq!(made.status, 403, "{}", made.body);
    }
    let body = json!({ "input": "tea", "options": { "conversationId": "old" } });
    site.data_for("robot", "POST /agents/assistant/text", Some(&body)).await;
    let page = site.data_for("eve", "GET /agents/assistant/history?limit=1", None).await;
    let entry = &page["entries"][0];
    assert_eq!((&entry["userId"], &entry["conversationId"]), (&Value::Null, &Value::Null));
}
