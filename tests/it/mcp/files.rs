//! Pictures in results: for the model of an agent, before and after a kill, for clients of MCP, and for
//! direct callers.

use serde_json::{Value, json};
use support::provider::{Deed, Provider, piece, stream_end, stream_head};
use support::server::{Home, Server};

use super::{call, ready, scripted};
use crate::program::Programs as _;
use crate::providers::{event, says};

const PICTURE: &str = "iVBORw0KGgou";

/// An answer of Anthropic's that calls `own.picture`.
fn looks() -> Vec<Deed> {
    let block = json!({ "type": "tool_use", "id": "t1", "name": "own_picture", "input": {} });
    let frames = [
        json!({ "type": "content_block_start", "index": 0, "content_block": block }),
        json!({ "type": "content_block_stop", "index": 0 }),
        json!({ "type": "message_delta", "delta": { "stop_reason": "tool_use" } }),
        json!({ "type": "message_stop" }),
    ];
    let frames = frames.iter().map(|frame| piece(&event(frame)));
    [stream_head()].into_iter().chain(frames).chain([stream_end()]).collect()
}

fn start(home: &Home) -> Server {
    let mut command = home.greenroom(&[]);
    command.env("ANTHROPIC_API_KEY", "k3y-of-the-test-0123456789");
    let server = Server::start(command);
    ready(&server, "own");
    server
}

#[test]
fn pictures_reach_models_clients_of_mcp_and_direct_callers() {
    let provider = Provider::start([
        looks(),
        says("anthropic", "a red dot"),
        says("anthropic", "still a red dot"),
    ]);
    let home = Home::new("");
    let own = scripted::config("own", "good", &home.path("asked"));
    home.configure(&format!(
        "{own}[models.eyes]\nprovider = \"anthropic\"\nmodel = \"m-1\"\nbase_url = \"{}\"\n\
         [agents.seer]\nmodel = \"eyes\"\ntools = [\"own.picture\"]\nmemory = true\n\
         [[faces.mcp]]\ntools = [\"own.picture\"]\n",
        provider.base_url()
    ));
    let server = start(&home);
    let parts = json!([
        { "type": "text", "text": "look" },
        { "type": "image", "mimeType": "image/png", "data": PICTURE },
    ]);
    let whole = json!({ "type": "content", "content": parts });
    assert_eq!(call(&server, "own.picture", &json!({})), Ok(whole));
    let large = call(&server, "own.picture", &json!({ "n": 300_000 }));
    assert_eq!(large, Ok(json!("look\n[image: image/png, 300009 bytes]")));

    let asked = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call",
                        "params": { "name": "own.picture", "arguments": {} } });
    let accepted = [
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
        ("mcp-protocol-version", "2025-11-25"),
    ];
    let answer = server.send("POST", "/mcp", &accepted, Some(asked.to_string().as_bytes()));
    assert_eq!(answer.json()["result"]["content"], parts, "{}", answer.text());

    let ask = |server: &Server, text: &str| {
        let options = json!({ "conversationId": "c1", "userId": "ann" });
        let body = json!({ "input": text, "options": options });
        server.post("/agents/seer/text", &body).data()["text"].clone()
    };
    assert_eq!(ask(&server, "what is it?"), "a red dot");
    server.kill();
    let server = start(&home);
    assert_eq!(ask(&server, "and now?"), "still a red dot");
    let source = json!({ "type": "base64", "media_type": "image/png", "data": PICTURE });
    let shown = json!([{ "type": "text", "text": "look" }, { "type": "image", "source": source }]);
    let results: Vec<Value> =
        provider.asked()[1..].iter().map(|asked| asked.body["messages"][2].clone()).collect();
    for result in results {
        assert_eq!(result["content"][0]["content"], shown, "{result}");
    }
}
