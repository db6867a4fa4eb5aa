//! Access over MCP is that of the other routes.

use std::fmt::Write as _;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::listening::listen;
use super::{CONFIG, Site, answer_to, forms, question};
use support::server::{Home, Server};

const TASKS: &str = "io.modelcontextprotocol/tasks";

/// Rules for some workflows.
const RULES: &str = r#"
[auth]
ownership = { roles = ["manager"] }
rules = [
  { route = "POST /workflows/number/execute", roles = ["manager"] },
  { route = "POST /agents/*", roles = ["manager"] },
]
"#;

/// Keys of two users and of a manager, and rules for some workflows.
fn guarded() -> Site {
    Site::with(Home::new(&with_users(RULES)))
}

/// Returns the configuration with keys of two users and of a manager.
pub(super) fn with_users(auth: &str) -> String {
    let mut config = auth.to_owned();
    for (id, role) in [("ann", "staff"), ("ben", "staff"), ("eve", "manager")] {
        let hash: String = Sha256::digest(id).iter().map(|byte| format!("{byte:02x}")).collect();
        write!(
            config,
            "[[auth.api_keys]]\nid = \"{id}\"\nhash = \"sha256:{hash}\"\n\
             user = {{ roles = [\"{role}\"] }}\n"
        )
        .unwrap();
    }
    config + CONFIG
}

fn ask(site: &Site, user: &str, method: &str, params: &Value, abilities: &Value) -> Value {
    site.ask_as(&[("x-api-key", user)], method, params, abilities).json()
}

#[test]
fn tools_are_those_that_the_caller_may_use() {
    let site = guarded();
    let list = |user: &str| {
        let result = ask(&site, user, "tools/list", &json!({}), &json!({}))["result"].clone();
        assert_eq!(result["cacheScope"], "private");
        let tools = result["tools"].as_array().unwrap().iter();
        tools.map(|tool| tool["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let (ann, eve) = (list("ann"), list("eve"));
    for guarded in ["workflow_number", "agent_echo"] {
        assert!(eve.iter().any(|name| name == guarded), "{eve:?}");
        assert!(!ann.iter().any(|name| name == guarded), "{ann:?}");
        let arguments = if guarded == "agent_echo" { json!({ "prompt": "Hi" }) } else { json!({}) };
        let call = json!({ "name": guarded, "arguments": arguments });
        let refused = ask(&site, "ann", "tools/call", &call, &json!({}));
        assert_eq!(refused["error"]["code"], -32602, "{refused}");
        assert!(ask(&site, "eve", "tools/call", &call, &json!({})).get("error").is_none());
    }
    assert!(ann.iter().any(|name| name == "workflow_greet"), "{ann:?}");
    assert_eq!(site.ask_as(&[], "tools/list", &json!({}), &json!({})).status, 401);
}

#[test]
fn what_one_user_keeps_is_nothing_to_another() {
    let site = guarded();
    let expense = json!({ "name": "workflow_expense", "arguments": { "amount": 1 } });
    let asked = ask(&site, "ann", "tools/call", &expense, &forms());
    let asked = question(&asked["result"]);
    let call = ("workflow_expense", &expense["arguments"]);
    let answer = answer_to(call, &asked, &json!({ "approved": true }));
    let refused = ask(&site, "ben", "tools/call", &answer, &forms());
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    let abilities = json!({ "extensions": { TASKS: {} } });
    let task = ask(&site, "ann", "tools/call", &expense, &abilities)["result"]["taskId"].clone();
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        let refused = ask(&site, "ben", method, &json!({ "taskId": task }), &abilities);
        assert_eq!(refused["error"]["message"], "Invalid params: unknown task", "{method}");
    }
    let notifications = json!({ "taskIds": [task] });
    let agreed = |user| listen(&site, &[("x-api-key", user)], &notifications).1;
    assert_eq!((agreed("ben"), agreed("ann")), (json!({}), notifications.clone()));
    let done = ask(&site, "ann", "tools/call", &answer, &forms());
    assert_eq!(done["result"]["structuredContent"]["approved"], true, "{done}");
    // nor does the tool for answers reach the executions of others
    let state = ask(&site, "ann", "tools/call", &expense, &json!({}))["result"].clone();
    let execution = &state["structuredContent"]["executionId"];
    let resume = json!({ "name": "workflow_expense_resume", "arguments": {
        "executionId": execution, "data": { "approved": true } } });
    let refused = ask(&site, "ben", "tools/call", &resume, &json!({}))["result"].clone();
    assert_eq!(refused["isError"], true, "{refused}");
    let text = refused["content"][0]["text"].as_str().unwrap();
    assert!(text.ends_with("not found"), "{text}");
}

#[test]
fn clients_without_a_token_learn_where_they_get_one() {
    let face = "[[faces.mcp]]\nurl = \"https://green.example/mcp\"";
    let config = CONFIG.replacen("[[faces.mcp]]", face, 1);
    let home = Home::new(&format!("[auth.jwt]\nissuer = \"https://id.example\"\n{config}"));
    let mut command = super::command(&home);
    command.env("JWT_SECRET", super::KEY);
    let site = Site { server: Server::start(command), home };
    let metadata = "https://green.example/.well-known/oauth-protected-resource/mcp";
    let challenge = |headers: &[(&str, &str)]| {
        let reply = site.ask_as(headers, "tools/list", &json!({}), &json!({}));
        assert_eq!(reply.status, 401);
        reply.header("www-authenticate").unwrap().to_owned()
    };
    assert_eq!(challenge(&[]), format!("Bearer resource_metadata=\"{metadata}\""));
    let invalid = challenge(&[("authorization", "Bearer x")]);
    let expected = format!("Bearer error=\"invalid_token\", resource_metadata=\"{metadata}\"");
    assert_eq!(invalid, expected);
    let path = "/.well-known/oauth-protected-resource/mcp";
    let shown = site.server.get(path);
    let expected = json!({
        "resource": "https://green.example/mcp",
        "authorization_servers": ["https://id.example"],
        "bearer_methods_supported": ["header"],
    });
    assert_eq!((shown.status, shown.json()), (200, expected));
    for path in [format!("{path}/ops/mcp"), format!("{path}/none/mcp")] {
        assert_eq!(site.server.get(&path).status, 404, "{path}");
    }
    let other = site.server.post("/mcp/ops/mcp", &json!({}));
    assert_eq!((other.status, other.header("www-authenticate")), (401, Some("Bearer")));
    let elsewhere = site.server.post("/workflows/greet/execute", &json!({}));
    assert_eq!(elsewhere.header("www-authenticate"), Some("Bearer"));
}
