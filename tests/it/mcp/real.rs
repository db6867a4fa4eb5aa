//! Servers of others: the reference servers over standard input and output, and the official SDK over
//! HTTP. `npm ci` in `tests/clients` installs them.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use support::server::{Home, Server};

use super::{call, ready, status_when, tool_names};
use crate::clients::missing;
use crate::program::Programs as _;

/// Returns the folder of the clients if everything is installed.
pub(super) fn clients(subject: &str) -> Option<PathBuf> {
    let clients = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients");
    match missing(&clients) {
        Some(missing) => {
            support::not_tested(subject, &missing);
            None
        }
        None => Some(clients),
    }
}

fn program(clients: &Path, name: &str) -> Value {
    json!(clients.join("node_modules/.bin").join(name))
}

#[test]
fn the_reference_servers_are_used_over_standard_input_and_output() {
    let Some(clients) = clients("the reference MCP servers") else { return };
    let home = Home::new("");
    std::fs::create_dir(home.path("shared")).unwrap();
    home.write("shared/note.txt", "remember the milk");
    let shared = home.path("shared").canonicalize().unwrap();
    let (everything, files) =
        (program(&clients, "mcp-server-everything"), program(&clients, "mcp-server-filesystem"));
    let note = json!(shared.join("note.txt"));
    home.configure(&format!(
        r#"
[mcp.everything]
command = [{everything}, "stdio"]

[mcp.files]
command = [{files}, {shared}]
tools = ["read_*", "list_*", "!read_media_file"]

[models.offline]
provider = "rehearsal"
rules = [
    {{ when = "tool_results", reply = "the note says {{{{ tool_results[-1] }}}}" }},
    {{ tool_call = {{ name = "files.read_text_file", args = {{ path = {path} }} }} }},
]

[agents.clerk]
model = "offline"
tools = ["files.read_text_file"]

[workflows.listing]
steps = [{{ id = "list", tool = "files.list_directory", args = {{ path = "input.path" }} }}]
"#,
        shared = json!(shared),
        path = json!(format!("'{}'", note.as_str().unwrap())),
    ));
    let server = Server::start(home.greenroom(&[]));
    for name in ["everything", "files"] {
        ready(&server, name);
    }
    let sum = call(&server, "everything.get-sum", &json!({ "a": 2, "b": 3 })).unwrap();
    assert!(sum.to_string().contains('5'), "{sum}");
    let structured = json!({ "location": "New York" });
    let weather = call(&server, "everything.get-structured-content", &structured).unwrap();
    assert!(weather["temperature"].is_number(), "{weather}");
    let image = call(&server, "everything.get-tiny-image", &json!({})).unwrap();
    assert_eq!(
        (&image["type"], &image["content"][1]["type"]),
        (&json!("content"), &json!("image"))
    );
    let names = tool_names(&server);
    assert!(!names.contains(&"files.write_file".to_owned()), "{names:?}");
    let read = call(&server, "files.read_text_file", &json!({ "path": note })).unwrap();
    assert!(read.to_string().contains("remember the milk"), "{read}");
    let outside = call(&server, "files.read_text_file", &json!({ "path": "/etc/passwd" }));
    assert!(outside.unwrap_err().contains("denied"));
    let answer = server.post("/agents/clerk/text", &json!({ "input": "read it" }));
    assert!(answer.data()["text"].as_str().unwrap().contains("the milk"), "{answer:?}");
    let input = json!({ "input": { "path": shared } });
    let listed = server.post("/workflows/listing/execute", &input).data();
    assert!(listed["result"].to_string().contains("note.txt"), "{listed}");
}

/// An MCP server over HTTP. It ends when this is dropped.
pub(super) struct Remote {
    child: Child,
    pub(super) url: String,
}

impl Remote {
    pub(super) fn start(clients: &Path, legacy: &str) -> Self {
        Self::of(clients, &["mcp-server.mjs", "t0ken-of-the-test", legacy])
    }

    /// Starts a program in the folder of the clients, which prints its address.
    pub(super) fn of(clients: &Path, arguments: &[&str]) -> Self {
        let mut command = Command::new("node");
        command.args(arguments).current_dir(clients);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut url = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut url).unwrap();
        Self { child, url: url.trim().to_owned() }
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn the_official_sdk_is_used_over_http() {
    let Some(clients) = clients("an MCP server over HTTP") else { return };
    let remote = Remote::start(&clients, "reject");
    let home = Home::new(&format!(
        "[mcp.remote]\nurl = \"{url}\"\nheaders = {{ authorization = \"Bearer secret:MCP_TOKEN\" }}\n\
         restart = {{ delay = \"10ms\", max_delay = \"50ms\" }}\n\
         [mcp.stranger]\nurl = \"{url}\"\n",
        url = remote.url
    ));
    let mut command = home.greenroom(&[]);
    command.env("MCP_TOKEN", "t0ken-of-the-test");
    let server = Server::start(command);
    let status = ready(&server, "remote");
    assert_eq!((&status["protocol"], &status["transport"]), (&json!("2026-07-28"), &json!("http")));
    let sum = call(&server, "remote.add", &json!({ "a": 2, "b": 3 }));
    assert_eq!(sum, Ok(json!({ "sum": 5 })));
    let refused = status_when(&server, "stranger", |status| status["state"] == "failed");
    let reason = refused["reason"].as_str().unwrap();
    assert!(reason.contains("it asks for authorization (status 401)"), "{reason}");
    drop(remote);
    let failure = call(&server, "remote.add", &json!({ "a": 2, "b": 3 })).unwrap_err();
    assert!(failure.contains("the MCP server remote"), "{failure}");
    status_when(&server, "remote", |status| status["state"] == "failed");
}

#[test]
fn a_server_is_spoken_to_with_the_older_protocol_if_that_is_configured() {
    let Some(clients) = clients("an MCP server over HTTP") else { return };
    let remote = Remote::start(&clients, "stateless");
    let lines = |name: &str, more: &str| {
        let url = &remote.url;
        format!(
            "[mcp.{name}]\nurl = \"{url}\"\n{more}\
             headers = {{ authorization = \"Bearer secret:MCP_TOKEN\" }}\n"
        )
    };
    let older = lines("older", "protocol = \"2025-11-25\"\n");
    let home = Home::new(&format!("{}{older}", lines("newest", "")));
    let mut command = home.greenroom(&[]);
    command.env("MCP_TOKEN", "t0ken-of-the-test");
    let server = Server::start(command);
    for (name, protocol) in [("newest", "2026-07-28"), ("older", "2025-11-25")] {
        assert_eq!(ready(&server, name)["protocol"], protocol, "{name}");
        let sum = call(&server, &format!("{name}.add"), &json!({ "a": 2, "b": 3 }));
        assert_eq!(sum, Ok(json!({ "sum": 5 })), "{name}");
    }
}
