//! Conversations over HTTP.

use greenroom_actors::domain::machine::MachineLimits;
use greenroom_actors::domain::message::{Part, Role};
use greenroom_actors::domain::time::Timestamp;
use greenroom_actors::domain::trace::{EntityType, Trace, TraceOrigin};
use greenroom_actors::ports::store::{
    ApprovedTools, ContinuationChange, ConversationKey, ConversationWrite, GenerationRecord,
    GenerationStatus, GenerationWrite, Generations, StoredMessage,
};

use super::*;
use crate::api::caller::Caller;
use crate::api::memory;

const CONVERSATIONS: &str = "/api/memory/conversations";

/// Site with one agent.
async fn site() -> Site {
    Site::start(WebConfig::default()).await
}

/// Site with two agents with memory and one without.
async fn three_agents() -> Site {
    let mut registry = registry();
    for (id, memory) in [("other", true), ("forgetful", false)] {
        let agent = AgentDefinition {
            id: id.to_owned(),
            model: "offline".into(),
            memory,
            ..AgentDefinition::default()
        };
        registry.agents.insert(id.to_owned(), Arc::new(agent));
    }
    Site::over(WebConfig::default(), registry).await
}

/// Puts messages into a conversation, as a generation does.
async fn store_messages(site: &Site, id: &str, user: Option<&str>, texts: &[&str]) {
    let key = ConversationKey {
        agent_id: "assistant".into(),
        user_id: user.map(Arc::from),
        conversation_id: id.into(),
    };
    let stored = |(at, text): (usize, &&str)| StoredMessage {
        id: format!("m{at}"),
        role: if at % 2 == 0 { Role::User } else { Role::Assistant },
        parts: vec![Part::Text { text: (*text).to_owned() }],
        created_at: Timestamp(i64::try_from(at).unwrap()),
        generation_id: None,
    };
    let messages = texts.iter().enumerate().map(stored).collect();
    let record = GenerationRecord {
        id: format!("g-{id}"),
        agent_id: "assistant".to_owned(),
        status: GenerationStatus::Completed,
        start_time: Timestamp(0),
        end_time: None,
        input: Value::Null,
        output: None,
        usage: None,
        error: None,
        user_id: user.map(str::to_owned),
        conversation_id: Some(id.to_owned()),
        origin: None,
        trace: Trace::of(
            id,
            EntityType::Agent,
            &std::sync::Arc::from("assistant"),
            TraceOrigin::New,
        ),
    };
    let write = ConversationWrite {
        key,
        cut_after: None,
        messages,
        approved_tools: ApprovedTools::new(),
        at: Timestamp(1),
    };
    let row = site.store.next_generation_row().unwrap();
    let write = GenerationWrite {
        row,
        record,
        steps: Vec::new(),
        messages: Some(write),
        continuation: ContinuationChange::Keep,
    };
    site.store.record_generation(write).await.unwrap();
}

impl Site {
    async fn patch(&self, path: &str, body: &Value) -> Answer {
        self.send("PATCH", path, "", Some(&body.to_string())).await
    }

    async fn delete(&self, path: &str) -> Answer {
        self.send("DELETE", path, "", None).await
    }
}

fn texts(messages: &Value) -> Vec<&str> {
    let messages = messages.as_array().unwrap();
    messages.iter().map(|message| message["parts"][0]["text"].as_str().unwrap()).collect()
}

#[actix_web::test]
async fn a_conversation_is_created_shown_changed_and_deleted() {
    let site = site().await;
    let new = json!({ "conversationId": "c 1", "userId": "ann", "title": "Tea",
                      "metadata": { "k": 1 } });
    let created = site.post(CONVERSATIONS, &new).await;
    assert_eq!(created.status, 201, "{}", created.body);
    let conversation = &created.json()["data"]["conversation"];
    assert_eq!(
        (&conversation["id"], &conversation["agentId"], &conversation["userId"]),
        (&json!("c 1"), &json!("assistant"), &json!("ann"))
    );
    let again = site.post(CONVERSATIONS, &new).await;
    again.assert_refusal(409, "Conversation already exists: c 1");

    let path = "/api/memory/conversations/c%201";
    let shown = site.data(&format!("{path}?userId=ann")).await;
    assert_eq!(shown["conversation"], *conversation);
    let change = json!({ "userId": "ann", "title": null, "metadata": { "k": 2 } });
    let changed = site.patch(path, &change).await;
    assert_eq!(changed.status, 200, "{}", changed.body);
    let changed = &changed.json()["data"]["conversation"];
    assert_eq!((&changed["title"], &changed["metadata"]), (&Value::Null, &json!({ "k": 2 })));

    let deleted = site.delete(&format!("{path}?userId=ann")).await;
    assert_eq!(deleted.json()["data"], json!({ "deleted": true }), "{}", deleted.body);
    let again = site.delete(&format!("{path}?userId=ann")).await;
    again.assert_refusal(404, "Conversation not found");
    let fresh = site.send("POST", CONVERSATIONS, "", None).await;
    assert_eq!(fresh.status, 201);
    assert_eq!(fresh.json()["data"]["conversation"]["id"].as_str().unwrap().len(), 36);
}

#[actix_web::test]
async fn lists_have_pages_and_users() {
    let site = site().await;
    for (id, user) in [("a", "ann"), ("b", "ben"), ("c", "ann")] {
        site.post(CONVERSATIONS, &json!({ "id": id, "userId": user })).await;
    }
    let all = site.data(CONVERSATIONS).await;
    assert_eq!((&all["total"], &all["limit"], &all["offset"]), (&json!(3), &json!(50), &json!(0)));
    let of_ann = site.data("/api/memory/conversations?userId=ann&limit=1&offset=1").await;
    assert_eq!((of_ann["total"].as_u64(), of_ann["limit"].as_u64()), (Some(2), Some(1)));
    assert_eq!(of_ann["conversations"].as_array().unwrap().len(), 1);
    assert_eq!(of_ann["conversations"][0]["userId"], "ann");
    assert_eq!(site.data("/api/memory/conversations?userId=eve").await["total"], 0);
}

#[actix_web::test]
async fn messages_come_oldest_first_and_page_back() {
    let site = site().await;
    store_messages(&site, "c", Some("ann"), &["one", "two", "three"]).await;
    let path = "/api/memory/conversations/c/messages?userId=ann";
    let all = site.data(path).await;
    assert_eq!(texts(&all["messages"]), ["one", "two", "three"]);
    let newest = site.data(&format!("{path}&limit=2")).await;
    assert_eq!(texts(&newest["messages"]), ["two", "three"]);
    let before = site.data(&format!("{path}&limit=2&before=m1")).await;
    assert_eq!(texts(&before["messages"]), ["one"]);
    assert_eq!(site.data(&format!("{path}&before=m0")).await["messages"], json!([]));
    let text = "Invalid query parameter before: must be the id of a message of this conversation";
    for id in ["nope", ""] {
        site.get(&format!("{path}&before={id}")).await.assert_refusal(400, text);
    }
}

#[actix_web::test]
async fn another_users_conversation_is_not_found() {
    let site = site().await;
    store_messages(&site, "c", Some("ann"), &["a secret"]).await;
    let path = "/api/memory/conversations/c";
    for user in ["?userId=ben", ""] {
        let answers = [
            site.get(&format!("{path}{user}")).await,
            site.get(&format!("{path}/messages{user}")).await,
            site.get(&format!("{path}/working-memory{user}")).await,
            site.patch(&format!("{path}{user}"), &json!({ "title": "mine" })).await,
            site.post(&format!("{path}/working-memory{user}"), &json!({ "content": "x" })).await,
            site.post(&format!("{path}/clone{user}"), &json!({ "newId": "mine" })).await,
            site.delete(&format!("{path}{user}")).await,
        ];
        for answer in answers {
            let text = answer.json()["error"].as_str().map(str::to_owned);
            assert_eq!((answer.status, text.as_deref()), (404, Some("Conversation not found")));
            assert_eq!(answer.header("x-error-code"), Some("conversation_not_found"));
        }
        let query = user.replace('?', "&");
        let found = site.data(&format!("/api/memory/search?q=secret{query}")).await;
        assert_eq!(found["count"], 0);
    }
    let shown = site.data(&format!("{path}?userId=ann")).await;
    assert_eq!(shown["conversation"]["title"], Value::Null);
}

#[actix_web::test]
async fn working_memory_is_a_text() {
    let site = site().await;
    store_messages(&site, "c", None, &["one"]).await;
    let path = "/api/memory/conversations/c/working-memory";
    let rows = [
        (json!({ "content": "likes tea" }), json!("likes tea")),
        (json!({ "workingMemory": "or coffee", "mode": "replace" }), json!("or coffee")),
        (json!({ "content": { "drink": "tea" } }), json!("{\"drink\":\"tea\"}")),
        (json!({ "content": null }), Value::Null),
    ];
    for (body, content) in rows {
        let answer = site.post(path, &body).await;
        assert_eq!(answer.json()["data"], json!({ "updated": true }), "{}", answer.body);
        let expected = json!({ "content": content, "scope": "conversation" });
        assert_eq!(site.data(path).await, expected);
    }
}

#[actix_web::test]
async fn a_clone_has_the_messages_and_is_independent() {
    let site = site().await;
    store_messages(&site, "c", None, &["one"]).await;
    let path = "/api/memory/conversations/c/clone";
    let copied = site.post(path, &json!({ "newId": "d" })).await;
    assert_eq!(copied.status, 201, "{}", copied.body);
    assert_eq!(copied.json()["data"]["conversation"]["id"], "d");
    let taken = site.post(path, &json!({ "newConversationId": "d" })).await;
    assert_eq!(taken.status, 409);
    let fresh = site.send("POST", path, "", None).await;
    assert_eq!(fresh.status, 201);
    site.delete("/api/memory/conversations/c").await;
    let messages = site.data("/api/memory/conversations/d/messages").await;
    assert_eq!(texts(&messages["messages"]), ["one"]);
}

#[actix_web::test]
async fn messages_of_a_user_are_found_and_deleted() {
    let site = site().await;
    store_messages(&site, "c", Some("ann"), &["Green tea", "no"]).await;
    store_messages(&site, "d", Some("ben"), &["green tea"]).await;
    for parameter in ["q", "searchQuery"] {
        let path = format!("/api/memory/search?{parameter}=green+tea&userId=ann");
        let found = site.data(&path).await;
        assert_eq!((&found["count"], &found["query"]), (&json!(1), &json!("green tea")));
        assert_eq!(found["results"][0]["conversationId"], "c");
        assert_eq!(found["results"][0]["message"]["id"], "m0");
    }
    let forgotten = site.delete("/api/memory/users/ann").await;
    assert_eq!(forgotten.json()["data"], json!({ "deleted": 1 }), "{}", forgotten.body);
    assert_eq!(site.data(CONVERSATIONS).await["total"], 1);
    assert_eq!(site.data("/agents/assistant/history").await["pagination"]["total"], 1);
}

#[actix_web::test]
async fn agent_id_is_required_if_there_are_several_agents() {
    let site = three_agents().await;
    let rows = [
        (None, 400, "agentId is required: one of assistant, forgetful, other"),
        (Some("nope"), 404, "Agent nope not found"),
        (Some("forgetful"), 400, "Agent forgetful has no memory"),
    ];
    for (agent, status, text) in rows {
        let query = agent.map(|id| format!("?agentId={id}")).unwrap_or_default();
        let answer = site.get(&format!("{CONVERSATIONS}{query}")).await;
        answer.assert_refusal(status, text);
        let answer = site.post(CONVERSATIONS, &json!({ "agentId": agent })).await;
        answer.assert_refusal(status, text);
    }
    for agent in ["assistant", "other"] {
        let answer = site.post(CONVERSATIONS, &json!({ "agentId": agent, "id": "same" })).await;
        assert_eq!(answer.status, 201, "{}", answer.body);
    }
    assert_eq!(site.data("/api/memory/conversations?agentId=other").await["total"], 1);
}

#[actix_web::test]
async fn refusals_have_their_texts() {
    let site = site().await;
    site.post(CONVERSATIONS, &json!({ "id": "c" })).await;
    let one = "/api/memory/conversations/c";
    let id_rule = "must be 1 to 200 characters, no control characters";
    let big = "x".repeat(1024 * 1024 - 100);
    let rows: [(&str, String, String, &str); 18] = [
        (
            "GET",
            format!("{CONVERSATIONS}?limit=0"),
            String::new(),
            "Invalid query parameter limit: must be a number from 1 to 200",
        ),
        (
            "GET",
            format!("{CONVERSATIONS}?offset=-1"),
            String::new(),
            "Invalid query parameter offset: must be a number of at least 0",
        ),
        (
            "GET",
            format!("{one}/messages?limit=201"),
            String::new(),
            "Invalid query parameter limit: must be a number from 1 to 200",
        ),
        (
            "GET",
            "/api/memory/search".to_owned(),
            String::new(),
            "Invalid query parameter q: must be a text of 1 to 500 characters",
        ),
        (
            "GET",
            format!("{one}?userId="),
            String::new(),
            &format!("Invalid query parameter userId: {id_rule}"),
        ),
        (
            "POST",
            CONVERSATIONS.to_owned(),
            json!({ "id": "a/b" }).to_string(),
            "Invalid request body: conversationId: must not contain / and must not be . or ..",
        ),
        (
            "POST",
            CONVERSATIONS.to_owned(),
            json!({ "userId": "" }).to_string(),
            &format!("Invalid request body: userId: {id_rule}"),
        ),
        (
            "POST",
            CONVERSATIONS.to_owned(),
            json!({ "agentId": 5 }).to_string(),
            "Invalid request body: agentId: invalid type: integer `5`, expected a string",
        ),
        (
            "POST",
            CONVERSATIONS.to_owned(),
            json!({ "title": "x".repeat(501) }).to_string(),
            "Invalid request body: title: must not be longer than 500 characters",
        ),
        (
            "POST",
            CONVERSATIONS.to_owned(),
            json!({ "metadata": [] }).to_string(),
            "Invalid request body: metadata: invalid type: sequence, expected a map",
        ),
        (
            "PATCH",
            one.to_owned(),
            "{}".to_owned(),
            "Invalid request body: nothing to change, send title or metadata",
        ),
        (
            "PATCH",
            one.to_owned(),
            "{".to_owned(),
            "Invalid JSON: EOF while parsing an object at line 1 column 1",
        ),
        (
            "PATCH",
            one.to_owned(),
            json!({ "title": 1 }).to_string(),
            "Invalid request body: title: invalid type: integer `1`, expected a string",
        ),
        (
            "POST",
            format!("{one}/working-memory"),
            "{}".to_owned(),
            "Invalid request body: content: missing",
        ),
        (
            "POST",
            format!("{one}/working-memory"),
            json!({ "content": [] }).to_string(),
            "Invalid request body: content: must be a string, an object or null",
        ),
        (
            "POST",
            format!("{one}/working-memory"),
            json!({ "content": "x", "mode": "append" }).to_string(),
            "Invalid request body: mode: must be replace",
        ),
        (
            "POST",
            format!("{one}/clone"),
            json!({ "newId": "" }).to_string(),
            &format!("Invalid request body: newId: {id_rule}"),
        ),
        ("POST", format!("{one}/working-memory"), json!({ "content": big }).to_string(), ""),
    ];
    for (method, path, body, text) in rows {
        let answer = site.send(method, &path, "", Some(&body)).await;
        let status = if text.is_empty() { 200 } else { 400 };
        assert_eq!(answer.status, status, "{method} {path}: {}", answer.body);
        assert_eq!(answer.json()["error"].as_str().unwrap_or_default(), text, "{method} {path}");
    }
    let missing = site.send("PATCH", "/api/memory/conversations/nope", "", Some("{")).await;
    assert_eq!(missing.status, 404, "{}", missing.body);
    let strange = site.delete("/api/memory/users/a%2Fb").await;
    assert_eq!(strange.json()["error"], "Not found: DELETE /api/memory/users/a%2Fb");
}

#[actix_web::test]
async fn metadata_and_working_memory_are_limited() {
    let store = Arc::new(MemoryStore::default());
    let machine = MachineLimits { value_bytes_max: 20, ..MachineLimits::default() };
    let limits = RuntimeLimits { machine, ..RuntimeLimits::default() };
    let runtime =
        Runtime::launch(registry(), RuntimePorts::new(store, Arc::new(SystemClock)), limits)
            .await
            .unwrap();
    let metadata = |text: &str| json!({ "metadata": { "k": text }, "id": "c" }).to_string();
    let caller = Caller::unchecked();
    let request = memory::Request { runtime: &runtime, caller: &caller, pairs: &[] };
    let create = async |body: String| memory::create(request, Ok(body.as_bytes())).await.map(drop);
    assert_eq!(
        create(metadata("0123456789abcdef")).await.unwrap_err().to_string(),
        "Invalid request body: metadata: is larger than 20 bytes"
    );
    create(metadata("0123456789")).await.unwrap();
    let body = json!({ "content": "0123456789abcdef01234" }).to_string();
    let set = memory::set_working_memory(request, "c", Ok(body.as_bytes())).await;
    assert_eq!(
        set.unwrap_err().to_string(),
        "Invalid request body: content: is larger than 20 bytes"
    );
}

#[actix_web::test]
async fn pages_of_allowed_origins_may_change_and_delete() {
    let site = site().await;
    let ask = "origin: http://localhost:5173\r\naccess-control-request-method: PATCH\r\n";
    let preflight = site.send("OPTIONS", "/api/memory/conversations/c", ask, None).await;
    let methods = preflight.header("access-control-allow-methods").unwrap();
    // PUT is for added routes.
    for method in ["PUT", "PATCH", "DELETE"] {
        assert!(methods.split(", ").any(|it| it == method), "{methods}");
    }
    for method in ["PATCH", "DELETE"] {
        let evil = "origin: https://evil.example\r\n";
        let answer = site.send(method, "/api/memory/conversations/c", evil, None).await;
        assert_eq!(
            (answer.status, answer.header("x-error-code")),
            (403, Some("origin_not_allowed"))
        );
    }
}
