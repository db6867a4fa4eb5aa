//! The history of an agent over HTTP.

use super::*;

async fn site() -> Site {
    Site::start(WebConfig::default()).await
}

#[actix_web::test]
async fn generations_are_in_the_history_of_their_agent() {
    let site = site().await;
    for text in ["one", "two", "three"] {
        let body = json!({ "input": text, "options": { "userId": "ann", "conversationId": "c" } });
        assert_eq!(site.post("/agents/assistant/text", &body).await.status, 200);
    }
    let answer = site.get("/agents/assistant/history?page=0&limit=2").await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    let history = &answer.json()["data"];
    let pagination = json!({ "page": 0, "limit": 2, "total": 3, "totalPages": 2 });
    assert_eq!(history["pagination"], pagination);
    let entries = history["entries"].as_array().unwrap();
    let inputs: Vec<_> = entries.iter().map(|entry| &entry["input"]).collect();
    assert_eq!(inputs, [&json!("three"), &json!("two")]);
    assert_eq!(
        (&entries[0]["status"], &entries[0]["userId"], &entries[0]["conversationId"]),
        (&json!("completed"), &json!("ann"), &json!("c"))
    );
    assert_eq!(entries[0]["error"], Value::Null);

    let last = site.get("/agents/assistant/history?page=1&limit=2").await.json();
    assert_eq!(last["data"]["entries"][0]["input"], "one");
    let beyond = site.get("/agents/assistant/history?page=9").await.json();
    assert_eq!(beyond["data"]["entries"], json!([]));
    assert_eq!(beyond["data"]["pagination"]["limit"], 10);
}

#[actix_web::test]
async fn refusals_have_their_texts() {
    let site = site().await;
    let rows = [
        ("/agents/nope/history?limit=0", 404, "Agent nope not found"),
        (
            "/agents/assistant/history?limit=0",
            400,
            "Invalid query parameter limit: must be a number from 1 to 100",
        ),
        (
            "/agents/assistant/history?limit=101",
            400,
            "Invalid query parameter limit: must be a number from 1 to 100",
        ),
        (
            "/agents/assistant/history?page=-1",
            400,
            "Invalid query parameter page: must be a number of at least 0",
        ),
    ];
    for (path, status, text) in rows {
        let answer = site.get(path).await;
        answer.assert_refusal(status, text);
    }
}

#[actix_web::test]
async fn pages_with_too_many_bytes_say_how_many_records_are_one() {
    let limits = RuntimeLimits { page_bytes_max: 2500, ..RuntimeLimits::default() };
    let clock = Arc::new(SystemClock);
    let site = Site::limited(WebConfig::default(), registry(), clock, limits).await;
    let text = "tea ".repeat(250);
    for number in 0..4 {
        let body = json!({ "input": text, "options": { "userId": "ann", "conversationId": "c" } });
        assert_eq!(site.post("/agents/assistant/text", &body).await.status, 200);
        let id = format!("c{number}");
        let body = json!({ "conversationId": id, "userId": "ann", "metadata": { "k": text } });
        assert_eq!(site.post("/api/memory/conversations", &body).await.status, 201);
    }
    for path in [
        "/agents/assistant/history?",
        "/api/memory/conversations?userId=ann&",
        "/api/memory/conversations/c/messages?userId=ann&",
        "/api/memory/search?userId=ann&q=tea&",
    ] {
        let refused = site.get(&format!("{path}limit=4")).await;
        assert_eq!(refused.header("x-error-code"), Some("query_invalid"), "{path}");
        let error = refused.json()["error"].as_str().unwrap().to_owned();
        let before = "Invalid query parameter limit: must be at most ";
        let after = " here: the records have too many bytes for one page";
        let fits = error.strip_prefix(before).and_then(|it| it.strip_suffix(after));
        let fits: usize = fits.expect(&error).parse().unwrap();
        assert!((1..4).contains(&fits), "{path}: {error}");
        site.data(&format!("{path}limit={fits}")).await;
        site.data(&format!("{path}limit=1")).await;
        let without = site.data(path.trim_end_matches('&')).await;
        let limit = [&without["limit"], &without["pagination"]["limit"]];
        let limit = limit.into_iter().find_map(Value::as_u64).expect(path);
        assert!((1..4).contains(&limit), "{path}: {limit}");
        let shown = without.to_string().matches(&text).count();
        assert!((1..4).contains(&shown), "{path}: {without}");
    }
    let behind = site.get("/agents/assistant/history?page=1&limit=2").await;
    behind.assert_refusal(
        400,
        "Invalid query parameter limit: must be at most 1 here, with page=2: the records have too \
         many bytes for one page",
    );
    let behind = site.get("/agents/assistant/history?page=1").await;
    behind.assert_refusal(
        400,
        "Invalid query parameter limit: must be named behind the first page, which has 1 of 10 \
         records: more have too many bytes for one page",
    );
    let third = site.data("/agents/assistant/history?page=2&limit=1").await;
    assert_eq!(third["entries"].as_array().unwrap().len(), 1);
}
