//! MCP's own conformance suite against this server as a client: each scenario is an MCP server, and
//! starts this test binary again to drive the real program.

use serde_json::{Map, Value, json};
use support::server::{Home, Server};

use super::asking::{answer, open_ask};
use super::{call, ready, status_when};
use crate::mcp_face::conformance;
use crate::program::Programs as _;

/// Environment variable: this binary, for the shell of the suite, which then drives the program.
const DRIVER: &str = "GREENROOM_TEST_MCP_CLIENT";
/// Environment variable: what a scenario says to the driver.
const CONTEXT: &str = "MCP_CONFORMANCE_CONTEXT";
/// Scenario that belongs to no version of the protocol.
const EXTENSION: &str = "auth/client-credentials-basic";
/// Environment variable of the program: the secret of its client.
const SECRET: &str = "TEST_CLIENT_SECRET";

/// Runs a scenario at a version of the protocol. What is expected to fail is named with its reason in
/// a file beside the suite.
fn conforms(version: &str, scenario: &str) {
    let Some(mut suite) = conformance::suite() else { return };
    let driver = format!("\"${DRIVER}\" drive_as_mcp_client --exact --nocapture --test-threads=1");
    let forced = (scenario == EXTENSION).then_some("--force");
    let run = suite
        .args(["client", "--scenario", scenario, "--spec-version", version])
        .args(forced)
        .args(["--command", &driver, "--expected-failures"])
        .arg(conformance::expected(version))
        .env(DRIVER, std::env::current_exe().unwrap())
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (said, errors) = (text(&run.stdout), text(&run.stderr));
    // an expected failure must not hide that the driver broke off
    let is_driven = !errors.contains("Client exited with code") && !said.contains("SKIPPED");
    assert!(run.status.success() && is_driven, "{scenario} of {version}:\n{said}\n{errors}");
}

/// Drives the program if the suite asked for it, and then never returns.
pub(crate) fn drive_if_asked() {
    if std::env::var_os(DRIVER).is_none() {
        return;
    }
    let url = std::env::args().next_back().unwrap();
    drive(&std::env::var("MCP_CONFORMANCE_SCENARIO").unwrap(), &url);
    std::process::exit(0);
}

fn drive(scenario: &str, url: &str) {
    if let Some(scenario) = scenario.strip_prefix("auth/") {
        return authorize(scenario, url);
    }
    let client = Client::start(url);
    let none = json!({});
    match scenario {
        "tools_call" => client.call("add_numbers", &json!({ "a": 2, "b": 3 })),
        "sse-retry" => client.call("test_reconnection", &none),
        "http-standard-headers" => {
            client.call("test_headers", &none);
            client.call("my-hyphenated-tool", &none);
        }
        "http-custom-headers" => client.call_as_asked(),
        "http-invalid-tool-headers" => {
            let arguments = json!({ "region": "eu", "value": "a", "data": {}, "items": [],
                                    "nil": null, "score": 1, "field1": "a", "field2": "b" });
            client.tools().iter().for_each(|tool| client.call(tool, &arguments));
        }
        "json-schema-2020-12-preservation" => {
            let schema = client.schema("json_schema_2020_12_tool");
            client.call("json_schema_echo", &json!({ "schema": schema }));
        }
        "sep-2322-client-request-state" => {
            client.ask_in_step("test_mrtr_echo_state");
            client.call("test_mrtr_unrelated", &none);
            client.answer_with_defaults();
            client.ask_in_step("test_mrtr_no_state");
            client.answer_with_defaults();
            client.call("test_mrtr_no_result_type", &none);
        }
        "elicitation-sep1034-client-defaults" => {
            client.ask_in_step("test_client_elicitation_defaults");
            client.answer_with_defaults();
        }
        // the connection and its list are all of it
        _ => {}
    }
}

/// Connects with the credentials of a scenario. Its servers are on this machine, where metadata leads
/// only if that is configured.
fn authorize(scenario: &str, url: &str) {
    let context = std::env::var(CONTEXT).ok().and_then(|it| serde_json::from_str(&it).ok());
    let context: Value = context.unwrap_or_default();
    let id = context["client_id"].as_str().unwrap_or("none");
    let home = Home::new(&format!(
        "[limits]\noutgoing_hosts = [\"localhost\", \"127.0.0.1\", \"::1\"]\n\
         [mcp.remote]\nurl = \"{url}\"\n\
         oauth = {{ client_id = \"{id}\", client_secret = \"secret:{SECRET}\" }}\n\
         restart = {{ delay = \"1m\", max_delay = \"1m\" }}\n",
    ));
    let mut command = home.greenroom(&[]);
    command.env(SECRET, context["client_secret"].as_str().unwrap_or("none"));
    let server = Server::start(command);
    match scenario {
        "client-credentials-basic" => _ = ready(&server, "remote"),
        _ => {
            let status = status_when(&server, "remote", |status| status["state"] == "failed");
            let reason = status["reason"].as_str().unwrap();
            assert!(reason.contains("another one"), "{reason}");
        }
    }
}

/// The program with the server of a scenario as `remote`.
struct Client {
    // before its folder
    server: Server,
    _home: Home,
}

impl Client {
    fn start(url: &str) -> Self {
        let asking =
            ["test_mrtr_echo_state", "test_mrtr_no_state", "test_client_elicitation_defaults"];
        let workflow = |tool: &str| {
            format!(
                "[workflows.{tool}]\n\
                 steps = [{{ id = \"call\", tool = \"remote.{tool}\", args = {{}} }}]\n"
            )
        };
        let home = Home::new(&format!(
            "[mcp.remote]\nurl = \"{url}\"\n\
             restart = {{ delay = \"10ms\", max_delay = \"50ms\" }}\n{}",
            asking.map(workflow).concat()
        ));
        let server = Server::start(home.greenroom(&[]));
        ready(&server, "remote");
        Self { server, _home: home }
    }

    fn call(&self, tool: &str, arguments: &Value) {
        call(&self.server, &format!("remote.{tool}"), arguments).unwrap();
    }

    /// Makes the calls that the suite describes, without what is null in them: the schemas of its tools
    /// refuse that.
    fn call_as_asked(&self) {
        let context = std::env::var(CONTEXT).unwrap();
        let context: Value = serde_json::from_str(&context).unwrap();
        for asked in context["toolCalls"].as_array().unwrap() {
            let arguments = asked["arguments"].as_object().unwrap().iter();
            let said: Map<_, _> = arguments
                .filter(|(_, value)| !value.is_null())
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect();
            self.call(asked["name"].as_str().unwrap(), &Value::Object(said));
        }
    }

    /// Returns the names of the tools that are used.
    fn tools(&self) -> Vec<String> {
        let status = ready(&self.server, "remote");
        let names = status["tools"].as_array().unwrap().iter();
        let names = names.map(|name| name.as_str().unwrap().strip_prefix("remote.").unwrap());
        names.map(str::to_owned).collect()
    }

    fn schema(&self, tool: &str) -> Value {
        let tools = self.server.get("/tools").data();
        let name = format!("remote.{tool}");
        let found = tools.as_array().unwrap().iter().find(|tool| tool["name"] == name.as_str());
        found.unwrap()["parameters"].clone()
    }

    /// Executes the workflow whose step calls a tool that asks.
    fn ask_in_step(&self, tool: &str) {
        let path = format!("/workflows/{tool}/execute");
        let options = json!({ "executionId": tool });
        let body = json!({ "input": {}, "options": options });
        let executed = self.server.post(&path, &body).data();
        assert_eq!(executed["status"], "suspended", "{executed}");
    }

    /// Answers the open question as a person does who changes nothing in its form but the boxes without
    /// a default, and waits for the end of the execution.
    fn answer_with_defaults(&self) {
        let ask = open_ask(&self.server);
        let fields = ask["schema"]["properties"].as_object().unwrap().iter();
        let data: Map<_, _> = fields
            .map(|(name, field)| {
                (name.clone(), field.get("default").cloned().unwrap_or(json!(true)))
            })
            .collect();
        assert_eq!(answer(&self.server, &ask, &Value::Object(data)), 200);
        let workflow = ask["of"]["workflowId"].as_str().unwrap();
        self.server.state_when(workflow, workflow, |state| state["status"] == "completed");
    }
}

#[test]
fn the_newest_version_is_spoken_to_servers_as_required() {
    for scenario in [
        "tools_call",
        "request-metadata",
        "sep-2322-client-request-state",
        "http-standard-headers",
        "http-custom-headers",
        "http-invalid-tool-headers",
        "json-schema-ref-no-deref",
        "json-schema-2020-12-preservation",
    ] {
        conforms("2026-07-28", scenario);
    }
}

#[test]
fn tokens_are_fetched_with_credentials_as_required() {
    for scenario in [EXTENSION, "auth/resource-mismatch", "auth/metadata-issuer-mismatch"] {
        conforms("2026-07-28", scenario);
    }
}

#[test]
fn the_version_with_a_handshake_is_spoken_to_servers_as_required() {
    for scenario in [
        "initialize",
        "tools_call",
        "elicitation-sep1034-client-defaults",
        "sse-retry",
        "json-schema-2020-12-preservation",
    ] {
        conforms("2025-11-25", scenario);
    }
}
