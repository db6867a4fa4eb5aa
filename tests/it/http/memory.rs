//! Conversation memory of agents over HTTP.

use serde_json::{Value, json};

use super::site::Site;
use support::store::Store;

const CONVERSATIONS: &str = "/api/memory/conversations";

fn create(site: &Site, body: &Value) -> Value {
    let mut reply = site.post(CONVERSATIONS, body);
    assert_eq!(reply.status, 201, "{}", reply.text());
    reply.status = 200;
    reply.data()["conversation"].take()
}

#[test]
fn conversations_survive_a_kill() {
    remembered(Store::chosen());
}

#[test]
fn conversations_survive_a_kill_on_postgres() {
    Store::postgres().into_iter().for_each(remembered);
}

fn remembered(store: Store) {
    let site = Site::on(store, "");
    let new = json!({ "id": "c", "userId": "ann", "title": "Tea", "metadata": { "k": [1] } });
    let created = create(&site, &new);
    let body = json!({ "userId": "ann", "content": "likes tea" });
    site.post("/api/memory/conversations/c/working-memory", &body).data();
    let copy = site.post("/api/memory/conversations/c/clone?userId=ann", &json!({ "newId": "d" }));
    assert_eq!(copy.status, 201, "{}", copy.text());

    let site = site.after_a_kill();
    let shown = &site.get("/api/memory/conversations/c?userId=ann").data()["conversation"];
    for field in ["id", "agentId", "userId", "title", "metadata", "createdAt"] {
        assert_eq!(shown[field], created[field], "{field}");
    }
    let memory = site.get("/api/memory/conversations/d/working-memory?userId=ann").data();
    assert_eq!(memory, json!({ "content": "likes tea", "scope": "conversation" }));
    assert_eq!(site.get(CONVERSATIONS).data()["total"], 2);

    let forgotten = site.send("DELETE", "/api/memory/users/ann", &[], None);
    assert_eq!(forgotten.data(), json!({ "deleted": 2 }));
    let site = site.after_a_kill();
    assert_eq!(site.get(CONVERSATIONS).data()["conversations"], json!([]));
}

#[test]
fn a_conversation_is_changed_and_deleted_on_one_connection() {
    let site = Site::start();
    create(&site, &json!({ "id": "c" }));
    let path = "/api/memory/conversations/c";
    let mut wire = support::client::Wire::open(site.address).unwrap();
    let mut ask = |method, body: Option<&[u8]>| {
        wire.send(method, path, &[], body).unwrap();
        wire.reply().unwrap()
    };
    let changed = ask("PATCH", Some(b"{\"title\":\"Tea\"}")).data();
    assert_eq!(changed["conversation"]["title"], "Tea");
    assert_eq!(ask("PATCH", Some(b"{}")).status, 400);
    assert_eq!(ask("DELETE", None).data(), json!({ "deleted": true }));
    assert_eq!(ask("DELETE", None).error(), "Conversation not found");
    let put = ask("PUT", None);
    assert_eq!((put.status, put.header("allow")), (405, Some("GET, HEAD, PATCH, DELETE")));
}

#[test]
fn a_conversation_is_returned_as_ui_messages() {
    searched(Store::chosen());
}

#[test]
fn a_conversation_is_returned_as_ui_messages_on_postgres() {
    Store::postgres().into_iter().for_each(searched);
}

fn searched(store: Store) {
    let site = Site::on(store, "");
    let options = json!({ "userId": "ann", "conversationId": "c" });
    let body = json!({ "input": "good morning", "options": options });
    site.post("/agents/assistant/text", &body).data();
    let path = "/api/memory/conversations/c/messages?userId=ann";
    let shown = site.get(path).data();
    let messages = shown["messages"].as_array().unwrap();
    let said: Vec<_> = messages.iter().map(|it| (&it["role"], &it["parts"][0])).collect();
    assert_eq!(said.len(), 2, "{shown}");
    assert_eq!(said[0], (&json!("user"), &json!({ "type": "text", "text": "good morning" })));
    assert_eq!((said[1].0, &said[1].1["type"]), (&json!("assistant"), &json!("text")));
    assert!(
        messages.iter().all(|it| it["id"].is_string() && it["metadata"]["createdAt"].is_string())
    );
    let found = site.get("/api/memory/search?q=MORNING&userId=ann&limit=1").data();
    assert_eq!(found["results"][0]["conversationId"], "c");

    let site = site.after_a_kill();
    assert_eq!(site.get(path).data(), shown);
    let other = site.get("/api/memory/conversations/c/messages?userId=ben");
    assert_eq!((other.status, other.error().as_str()), (404, "Conversation not found"));
}
