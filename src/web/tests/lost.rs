//! Streams of an execution whose actor panics.

use std::sync::atomic::{AtomicBool, Ordering};

use greenroom_actors::domain::time::Timestamp;

use super::http::frames;
use super::*;

/// Panics at the next new id if it is armed: in the decision that starts a child.
#[derive(Default)]
struct FaultyClock {
    panics: AtomicBool,
}

impl Clock for FaultyClock {
    fn now(&self) -> Timestamp {
        SystemClock.now()
    }

    fn new_id(&self) -> Arc<str> {
        assert!(!self.panics.swap(false, Ordering::SeqCst), "there are no ids");
        SystemClock.new_id()
    }
}

/// The heartbeat is longer than any test.
#[actix_web::test]
async fn a_stream_continues_after_a_panic_without_waiting() {
    let workflow = Workflow::new("family")
        .step(Step::map("ask", json!({ "n": "resume.n" })).suspend(Suspend::always()))
        .step(Step::workflow("child", "noop"));
    let mut registry = registry();
    registry.workflows.insert("family".to_owned(), Arc::new(workflow.compile().unwrap()));
    let clock = Arc::new(FaultyClock::default());
    let config = WebConfig { heartbeat: Duration::from_secs(86_400), ..WebConfig::default() };
    let site = Site::with_clock(config, registry, Arc::clone(&clock) as _).await;

    let start = json!({ "input": {}, "options": { "executionId": "lost" } });
    let suspended = site.post("/workflows/family/execute", &start).await;
    assert_eq!(suspended.json()["data"]["status"], "suspended", "{}", suspended.body);
    let mut stream = site.connect().await;
    let path = "/workflows/family/executions/lost/stream";
    let head = format!("GET {path} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n", site.address);
    stream.write_all(format!("{head}\r\n").as_bytes()).await.unwrap();
    let begun = read_until(&mut stream, "workflow-suspended").await;

    clock.panics.store(true, Ordering::SeqCst);
    let path = "/workflows/family/executions/lost/resume";
    let lost = site.post(path, &json!({ "resumeData": { "n": 1 } })).await;
    assert_eq!(lost.status, 500, "{}", lost.body);
    let resumed = loop {
        let resumed = site.post(path, &json!({ "resumeData": { "n": 1 } })).await;
        // its caller may be faster than the end of the actor
        if resumed.status != 500 {
            break resumed;
        }
    };
    assert_eq!(resumed.json()["data"]["result"], json!({ "n": 3 }), "{}", resumed.body);
    let watched = begun + &read_until(&mut stream, "\r\n0\r\n\r\n").await;
    let watched = answer_of(watched.as_bytes()).body;
    let numbers: Vec<u64> = frames(&watched).iter().map(|(number, _)| *number).collect();
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>());
    let whole = site.get("/workflows/family/executions/lost/stream").await;
    assert_eq!(numbers.len(), frames(&whole.body).len());
}
