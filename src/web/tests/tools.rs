//! Tools over HTTP.

use greenroom_actors::agent::tool::{ToolBody, ToolDefinition, ToolError, ToolFunction};
use greenroom_actors::ports::model::ToolSpec;
use tokio::sync::Notify;

use super::*;

fn tool(name: &str, function: ToolFunction) -> (String, Arc<ToolDefinition>) {
    let spec = ToolSpec {
        name: name.to_owned(),
        description: format!("Does {name}"),
        parameters: json!({ "type": "object", "required": ["n"],
                            "properties": { "n": { "type": "integer" } } }),
    };
    (name.to_owned(), Arc::new(ToolDefinition::new(spec, ToolBody::Function(function)).unwrap()))
}

/// Notifies when a call has begun and when it was dropped.
#[derive(Default)]
struct CallEvents {
    begun: Notify,
    dropped: Notify,
}

struct Guard(Arc<CallEvents>);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.dropped.notify_one();
    }
}

async fn site(events: &Arc<CallEvents>) -> Site {
    let double: ToolFunction = Arc::new(|input, _| {
        Box::pin(async move { Ok(json!({ "n": input["n"].as_i64().unwrap_or(0) * 2 })) })
    });
    let fail: ToolFunction = Arc::new(|_, _| Box::pin(async { Err(ToolError::from("it broke")) }));
    let events = Arc::clone(events);
    let wait: ToolFunction = Arc::new(move |_, _| {
        let guard = Guard(Arc::clone(&events));
        Box::pin(async move {
            guard.0.begun.notify_one();
            std::future::pending().await
        })
    });
    let mut registry = registry();
    registry.tools = [tool("double", double), tool("fail", fail), tool("wait", wait)].into();
    let assistant = registry.agents.get_mut("assistant").unwrap();
    Arc::make_mut(assistant).tools =
        greenroom_actors::agent::Choice::Fixed(vec!["double".to_owned()]);
    Site::over(WebConfig::default(), registry).await
}

#[actix_web::test]
async fn tools_are_listed_with_their_agents() {
    let site = site(&Arc::default()).await;
    let tools = site.get("/tools").await.json();
    let tools = tools["data"].as_array().unwrap();
    let names: Vec<_> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["double", "fail", "wait"]);
    let expected = json!({
        "name": "double", "description": "Does double",
        "parameters": { "type": "object", "required": ["n"],
                        "properties": { "n": { "type": "integer" } } },
        "agents": ["assistant"]
    });
    assert_eq!((&tools[0], &tools[1]["agents"]), (&expected, &json!([])));
}

#[actix_web::test]
async fn a_tool_is_called_directly() {
    let site = site(&Arc::default()).await;
    let answer = site.post("/tools/double/execute", &json!({ "input": { "n": 21 } })).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    let data = &answer.json()["data"];
    assert_eq!((&data["toolName"], &data["result"]), (&json!("double"), &json!({ "n": 42 })));
    assert!(data["executionTime"].is_u64() && data["timestamp"].is_string(), "{data}");
}

#[actix_web::test]
async fn refusals_have_their_texts() {
    let site = site(&Arc::default()).await;
    let rows = [
        ("/tools/nope/execute", "{", 404, "tool_not_found", "Tool nope not found"),
        ("/tools/%ff/execute", "{}", 404, "tool_not_found", "Tool %ff not found"),
        (
            "/tools/double/execute",
            "{}",
            400,
            "body_invalid",
            "Invalid request body: input: missing",
        ),
        (
            "/tools/fail/execute",
            "{\"input\":{\"n\":1}}",
            500,
            "tool_failed",
            "Failed to execute tool: it broke",
        ),
    ];
    for (path, body, status, code, text) in rows {
        let answer = site.send("POST", path, "", Some(body)).await;
        answer.assert_refusal(status, text);
        assert_eq!(answer.header("x-error-code"), Some(code));
    }
    let wrong = site.post("/tools/double/execute", &json!({ "input": { "n": "x" } })).await;
    let text = wrong.json()["error"].as_str().unwrap().to_owned();
    assert_eq!((wrong.status, wrong.header("x-error-code")), (400, Some("tool_input_invalid")));
    assert!(text.starts_with("Invalid tool input: n: "), "{text}");
}

#[actix_web::test]
async fn a_tool_call_ends_when_its_client_disconnects() {
    let events = Arc::new(CallEvents::default());
    let site = site(&events).await;
    let mut stream = site.connect().await;
    let body = "{\"input\":{\"n\":1}}";
    let length = body.len();
    let request = format!(
        "POST /tools/wait/execute HTTP/1.1\r\nhost: localhost\r\ncontent-length: {length}\r\n\r\n\
         {body}"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    tokio::time::timeout(PATIENCE, events.begun.notified()).await.unwrap();
    drop(stream);
    tokio::time::timeout(PATIENCE, events.dropped.notified()).await.unwrap();
}
