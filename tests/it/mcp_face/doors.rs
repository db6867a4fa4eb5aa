//! The door through which work was started, as it is recorded and shown.

use serde_json::{Value, json};

use support::server::Home;

use super::{CONFIG, Site};

const MORE: &str = r#"
[faces.openai]
workflows = ["greet"]

[[faces.mcp]]
name = "desk"
agents = ["echo"]
tools = ["counted"]

[tools.counted]
kind = "workflow"
workflow = "number"
description = "Counts"
"#;

/// Returns the doors of the items of a list, the newest first.
fn doors(site: &Site, path: &str, member: &str) -> Vec<Value> {
    let list = site.server.get(path).data();
    let items = list[member].as_array().unwrap_or_else(|| panic!("{list}")).iter();
    items.map(|item| item["via"].clone()).collect()
}

#[test]
fn the_door_of_executions_and_generations_is_recorded() {
    let site = Site::with(Home::new(&format!("{CONFIG}{MORE}")));
    let greeting = json!({ "who": "Ann" });
    let input = json!({ "input": greeting });
    assert_eq!(site.server.post("/workflows/greet/execute", &input).status, 200);
    site.call("workflow_greet", &greeting, &json!({}));
    let at = |path: &str, tool: &str, arguments: &Value| {
        let params = json!({ "name": tool, "arguments": arguments });
        let answer = site.ask_at(path, "tools/call", &params, &json!({}));
        assert!(answer["result"]["isError"] != json!(true), "{answer}");
    };
    at("/mcp/ops/mcp", "workflow_greet", &greeting);
    let complete = |model: &str, content: &str| {
        let messages = json!([{ "role": "user", "content": content }]);
        let body = json!({ "model": model, "messages": messages });
        let reply = site.server.post("/v1/chat/completions", &body);
        assert_eq!(reply.status, 200, "{}", reply.text());
    };
    complete("workflow/greet", &greeting.to_string());
    let site = site.killed();
    let list = "/workflows/greet/executions";
    let expected = [json!("openai"), json!("mcp:ops"), json!("mcp"), Value::Null];
    assert_eq!(doors(&site, list, "executions"), expected);

    for (door, found) in [("openai", 1), ("mcp:ops", 1), ("mcp", 1), ("mcp:desk", 0)] {
        for list in ["/workflows/executions", list] {
            let selected = doors(&site, &format!("{list}?via={door}&limit=1"), "executions");
            assert_eq!(selected, vec![json!(door); found], "{list}");
        }
    }
    let refused = site.server.get("/workflows/executions?via=rest");
    let what = "must be openai, mcp, or mcp: and the name of a face, as mcp:desk";
    assert_eq!(refused.error(), format!("Invalid query parameter via: {what}"));
    assert_eq!(refused.status, 400);
    let bulk = "/workflows/executions/bulk?via=mcp%3Aops";
    let preview = site.server.post(bulk, &json!({ "action": "cancel", "dryRun": true })).data();
    assert_eq!((&preview["matched"], &preview["skipped"]), (&json!(0), &json!(0)), "{preview}");

    let items = site.server.get(list).data();
    let named = &items["executions"][1];
    assert!(items["executions"][3].get("via").is_none(), "absent, not null: {items}");
    let state = site.server.state("greet", named["executionId"].as_str().unwrap());
    assert_eq!(state["via"], "mcp:ops");
    let trace = state["traceId"].as_str().unwrap();
    let trace = site.server.get(&format!("/observability/traces/{trace}")).data();
    for span in trace["spans"].as_array().unwrap() {
        let is_root = span["name"] == "invoke_workflow greet";
        let door = span["attributes"].get("greenroom.via");
        assert_eq!(door, is_root.then_some(&json!("mcp:ops")), "{span}");
    }
}

#[test]
fn the_door_of_what_agents_and_tools_start_is_recorded() {
    let site = Site::with(Home::new(&format!("{CONFIG}{MORE}")));
    let prompt = json!({ "prompt": "Hi" });
    for (path, tool, arguments) in
        [("/mcp/desk/mcp", "agent_echo", &prompt), ("/mcp/desk/mcp", "counted", &json!({}))]
    {
        let params = json!({ "name": tool, "arguments": arguments });
        let answer = site.ask_at(path, "tools/call", &params, &json!({}));
        assert!(answer["result"]["isError"] != json!(true), "{answer}");
    }
    let messages = json!([{ "role": "user", "content": "Hi" }]);
    for is_stream in [false, true] {
        let body = json!({ "model": "echo", "messages": messages, "stream": is_stream });
        assert_eq!(site.server.post("/v1/chat/completions", &body).status, 200);
    }
    assert_eq!(site.server.post("/agents/echo/text", &json!({ "input": "Hi" })).status, 200);
    let expected = [Value::Null, json!("openai"), json!("openai"), json!("mcp:desk")];
    assert_eq!(doors(&site, "/agents/echo/history", "entries"), expected);
    let counted = doors(&site, "/workflows/number/executions", "executions");
    assert_eq!(counted, ["mcp:desk"]);
}
