//! Tools that block their thread.

use std::panic::AssertUnwindSafe;
use std::sync::{Mutex, mpsc};
use std::thread;

use futures_util::FutureExt as _;
use greenroom_actors::agent::tool::ToolBody;
use greenroom_actors::domain::trace::TraceOrigin;
use greenroom_actors::observe::log_record::LogScope;
use greenroom_actors::runtime::{CallTool, CallToolError};
use tokio::sync::mpsc::unbounded_channel;

use super::*;

#[tokio::test]
async fn they_run_on_another_thread_in_the_scope_of_the_call_and_their_panics_are_passed_on() {
    let here = thread::current().id();
    let tool = Tool::blocking("there", "d", order(), move |arguments, _| {
        assert_ne!(arguments["panics"], true, "as wanted");
        assert_ne!(thread::current().id(), here);
        Ok(json!(LogScope::current().and_then(|scope| scope.user_id.clone())))
    });
    let greenroom = known().define_tool(tool);
    let ToolBody::Function(call) = &greenroom.registry.tools["there"].body else {
        panic!("another kind");
    };
    let scope = Arc::new(LogScope { user_id: Some("ann".into()), ..LogScope::default() });
    let ended = scope.during(call(json!({}), ToolContext::for_test())).await;
    assert_eq!(ended, Ok(json!("ann")));
    assert_eq!(call(json!({}), ToolContext::for_test()).await, Ok(json!(null)));
    let ended = call(json!({ "panics": true }), ToolContext::for_test());
    assert!(AssertUnwindSafe(ended).catch_unwind().await.is_err());
}

#[tokio::test]
async fn a_thread_counts_for_the_concurrency_until_it_has_ended() {
    let (begun, mut begins) = unbounded_channel();
    let (release, released) = mpsc::channel::<()>();
    let released = Mutex::new(released);
    let tool = Tool::blocking("slow", "d", json!({ "type": "object" }), move |_, _| {
        let _ = begun.send(());
        let _ = released.lock().unwrap().recv();
        Ok(json!("done"))
    });
    let server = Greenroom::new()
        .configure(|config| config.server.port = 0)
        .store(Arc::new(crate::store::MemoryStore::new()))
        .define_tool(tool.concurrency(1).timeout(Duration::from_millis(1)))
        .start()
        .await
        .unwrap();
    let handle = server.handle();
    let call = || async {
        let call = CallTool {
            name: "slow".to_owned(),
            input: json!({}),
            user_id: None,
            answerer: None,
            context: serde_json::Map::new(),
            trace: TraceOrigin::New,
            after: None,
        };
        match handle.runtime().call_tool(call).await {
            Err(CallToolError::Failed(why)) => why,
            other => panic!("did not fail: {other:?}"),
        }
    };
    assert!(call().await.starts_with("timed out after 1 ms"));
    begins.recv().await.unwrap();
    let why = call().await;
    assert!(why.ends_with(" ms of which it waited for a free slot"), "{why}");
    assert!(begins.try_recv().is_err(), "a second thread runs");

    release.send(()).unwrap();
    let permits = handle.runtime().registry().tools["slow"].permits.clone().unwrap();
    drop(permits.acquire().await.unwrap());
    server.stop().await.unwrap();
}
