//! A server with the workflows that most of these tests call.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::program::Programs as _;
use support::server::{Home, Server};
use support::store::Store;

pub(super) const CONFIG: &str = r#"
[models.offline]
provider = "rehearsal"

[agents.assistant]
model = "offline"

[workflows.add]
input_schema = { type = "object", required = ["n"], properties = { n = { type = "integer" } } }
steps = [
    { id = "one", map = { n = "data.n + 1" } },
    { id = "two", map = { n = "data.n + 1" } },
    { id = "three", map = { n = "data.n + 1" } },
]

[workflows.approval]
resume_schema = { type = "object", required = ["approved"], properties = { approved = { type = "boolean" } } }
steps = [
    { id = "ask", map = { approved = "resume.approved" }, suspend = { reason = "{{ input.who }} asks", payload = { who = "input.who" }, deadline = "48h" } },
    { id = "after", map = { approved = "data.approved", who = "input.who" } },
]

[workflows.pair]
steps = [{ id = "both", type = "andAll", blocks = ["left", "right"] }]
blocks.left = [{ id = "l", suspend = { deadline = "48h" }, map = { l = "resume" } }]
blocks.right = [{ id = "r", suspend = { deadline = "48h" }, map = { r = "resume" } }]

[workflows.parent]
steps = [{ id = "child", type = "andWorkflow", workflow = "approval" }]

[workflows.failing]
steps = [{ id = "fine", map = 1 }, { id = "bad", map = { x = "data.missing.thing" } }]

[workflows.whole]
input_schema = { type = "integer" }
steps = [{ id = "same", map = "data" }]

[workflows.nap]
steps = [{ id = "nap", type = "andSleep", duration = "1h" }, { id = "after", map = 1 }]
"#;

/// A tool that calls the workflow `add` of [`CONFIG`].
pub(super) const ADD_TOOL: &str = r#"
[tools.add]
kind = "workflow"
workflow = "add"
description = "Adds three"
"#;

/// A server in a separate folder.
pub(super) struct Site {
    pub(super) home: Home,
    pub(super) server: Server,
}

impl Site {
    pub(super) fn start() -> Self {
        Self::with("")
    }

    /// Starts a server with tables that go before [`CONFIG`].
    pub(super) fn with(config: &str) -> Self {
        Self::on(Store::chosen(), config)
    }

    /// Starts a server with tables that go before [`CONFIG`], and with this kind of store.
    pub(super) fn on(store: Store, config: &str) -> Self {
        let home = Home::on(store, &format!("{config}\n{CONFIG}"));
        let server = Server::start(home.greenroom(&[]));
        Self { home, server }
    }

    /// Kills the server and restarts it over the same folder.
    pub(super) fn after_a_kill(self) -> Self {
        let Self { home, server } = self;
        server.kill();
        let server = Server::start(home.greenroom(&[]));
        Self { home, server }
    }

    /// Starts an execution with this id and returns the answer's data.
    pub(super) fn execute(&self, workflow: &str, id: &str, input: &Value) -> Value {
        let body = json!({ "input": input, "options": { "executionId": id } });
        let reply = self.server.post(&format!("/workflows/{workflow}/execute"), &body);
        assert_eq!(reply.header("x-execution-id"), Some(id));
        reply.data()
    }

    /// Starts an execution that neither ends nor suspends.
    pub(super) fn begin(&self, workflow: &str, id: &str, input: &Value) {
        let body = json!({ "input": input, "options": { "executionId": id } });
        let mut wire = support::client::Wire::open(self.server.address).unwrap();
        let path = format!("/workflows/{workflow}/stream");
        wire.send("POST", &path, &[], Some(body.to_string().as_bytes())).unwrap();
        assert_eq!(wire.head().unwrap().status, 200);
    }
}

impl std::ops::Deref for Site {
    type Target = Server;

    fn deref(&self) -> &Server {
        &self.server
    }
}

/// Returns the path of a resource of an execution.
pub(super) fn at(workflow: &str, id: &str, what: &str) -> String {
    format!("/workflows/{workflow}/executions/{id}/{what}")
}

/// Returns the API key of a user of [`api_keys`].
pub(super) fn key(name: &str) -> String {
    format!("the long and random key of {name}")
}

/// Returns the tables of users with a role each.
pub(super) fn api_keys(users: &[(&str, &str)]) -> String {
    let table = |(name, role): &(&str, &str)| {
        let digest = Sha256::digest(key(name));
        let hash: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        format!(
            "[[auth.api_keys]]\nid = \"{name}\"\nhash = \"sha256:{hash}\"\n\
             user = {{ roles = [\"{role}\"] }}\n"
        )
    };
    users.iter().map(table).collect()
}
