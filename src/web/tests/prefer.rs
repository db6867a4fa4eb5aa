//! Requests that wait for their outcome when the server stops.

use super::*;

const WAITS: &str = "prefer: respond-async, wait=600\r\n";

/// Sends a request that waits, stops the runtime once `place` shows what it has begun, and returns
/// its answer.
async fn stopped_meanwhile(site: &Site, path: &str, body: &Value, place: &str) -> Answer {
    let body = body.to_string();
    let stop = async {
        while site.get(place).await.status != 200 {}
        site.runtime.drain(Duration::ZERO).await;
    };
    tokio::join!(site.send("POST", path, WAITS, Some(&body)), stop).0
}

#[actix_web::test]
async fn an_execution_is_accepted_if_its_outcome_and_its_state_cannot_be_read() {
    let site = Site::start(WebConfig::default()).await;
    let body = json!({ "input": {}, "options": { "executionId": "e" } });
    let place = "/workflows/waiting/executions/e/state";
    let answer = stopped_meanwhile(&site, "/workflows/waiting/execute", &body, place).await;
    assert_eq!((answer.status, &*answer.body), (202, ""), "{}", answer.head);
    assert_eq!(answer.header("location"), Some(place));
    assert_eq!(answer.header("x-execution-id"), Some("e"));
}

#[actix_web::test]
async fn a_generation_that_is_interrupted_is_named() {
    let site = Site::start(WebConfig::default()).await;
    let body = json!({ "input": "slow", "options": { "generationId": "g" } });
    let place = "/agents/assistant/generations/g";
    let answer = stopped_meanwhile(&site, "/agents/assistant/text", &body, place).await;
    assert_eq!(answer.status, 503, "{}", answer.body);
    assert_eq!(answer.header("x-generation-id"), Some("g"));
    assert!(answer.header("x-trace-id").is_some(), "{}", answer.head);
}
