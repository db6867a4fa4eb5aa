//! A server, and a user who calls it from the command line.

use std::io::Write as _;
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

use crate::program::Programs as _;
use support::listener::reserved_port;
use support::server::{Home, Server};

/// Workflows and agents that these tests call.
const CONFIG: &str = r#"
[models.offline]
provider = "mock"
rules = [
    { when = "'ADD' in prompt and not tool_results", tool_call = { name = "add", args = { n = "4" } } },
    { when = "'PAY' in prompt and not tool_results", tool_call = { name = "pay", args = { n = "4" } } },
    { when = "'WAIT' in prompt", reply = "later", delay = "60s" },
]

[agents.assistant]
description = "Answers"
model = "offline"
memory = true
tools = ["add", "pay"]

[agents.silent]
model = "offline"

[agents.payer]
model = "offline"
tools = ["pay"]

[tools.add]
kind = "workflow"
workflow = "add"
description = "Adds two"

[tools.pay]
kind = "workflow"
workflow = "add"
description = "Pays"
approval = { reason = "Pay {{ args.n }}" }

[workflows.add]
purpose = "Adds two"
input_schema = { type = "object", required = ["n"], properties = { n = { type = "integer" } } }
steps = [{ id = "one", map = { n = "data.n + 1" } }, { id = "two", map = { n = "data.n + 1" } }]

[workflows.approval]
resume_schema = { type = "object", required = ["approved"], properties = { approved = { type = "boolean" } } }
steps = [
    { id = "ask", map = { approved = "resume.approved" }, suspend = { reason = "{{ input.who }} asks", payload = { who = "input.who" } } },
    { id = "after", map = { approved = "data.approved" } },
]

[workflows.failing]
steps = [{ id = "fine", map = 1 }, { id = "bad", map = { x = "data.missing.thing" } }]

[workflows.trip]
input_schema = { type = "object", required = ["to"], properties = { days = { type = "integer" } } }
steps = [{ id = "go", map = 1 }]

[workflows.nap]
steps = [{ id = "nap", type = "andSleep", duration = "1h" }, { id = "after", map = 1 }]

[workflows.echo]
steps = [{ id = "same", map = "data" }]

[workflows.fork]
steps = [{ id = "both", type = "andAll", blocks = ["left", "right"] }, { id = "last", map = 1 }]
blocks.left = [{ id = "l", map = 1 }]
blocks.right = [{ id = "r", type = "andAgent", agent = "assistant", prompt = "hello" }]
"#;

/// A server and the folder of a user.
pub(super) struct Seat {
    home: Home,
    pub(super) server: Server,
}

/// Exit code and outputs of a command.
#[derive(Debug)]
pub(super) struct Ran {
    pub(super) code: i32,
    pub(super) stdout: String,
    pub(super) stderr: String,
}

impl Seat {
    pub(super) fn new() -> Self {
        Self::with("")
    }

    /// Starts a server with tables that go before [`CONFIG`].
    pub(super) fn with(config: &str) -> Self {
        let home = Home::new(&format!("{config}\n{CONFIG}"));
        // one that stays free for a restart
        let port = reserved_port().to_string();
        let server = Server::start(home.greenroom(&["--port", &port]));
        Self { home, server }
    }

    /// Kills the server, and starts it again at the same address.
    pub(super) fn restart(&mut self) {
        let port = self.server.address.port().to_string();
        self.server.child.kill().unwrap();
        self.server.child.wait().unwrap();
        self.server = Server::start(self.home.greenroom(&["--port", &port]));
    }

    /// Returns a command of the user: without terminal, profiles and variables of this process.
    pub(super) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.home.greenroom(arguments);
        for name in ["GREENROOM_TOKEN", "NO_COLOR", "CLICOLOR_FORCE", "CLICOLOR", "TERM"] {
            command.env_remove(name);
        }
        command.env("GREENROOM_SERVER", self.url());
        command.env("XDG_CONFIG_HOME", self.home.path("settings"));
        command.stdin(Stdio::null());
        command
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}", self.server.address)
    }

    pub(super) fn path(&self, name: &str) -> std::path::PathBuf {
        self.home.path(name)
    }

    /// Runs a command to its end.
    pub(super) fn run(&self, arguments: &[&str]) -> Ran {
        self.end(self.command(arguments))
    }

    /// Runs a prepared command to its end.
    pub(super) fn end(&self, command: Command) -> Ran {
        Ran::of(self.home.run(command))
    }

    /// Runs a command to its end with these bytes as stdin.
    pub(super) fn run_with(&self, arguments: &[&str], stdin: impl AsRef<[u8]>) -> Ran {
        let mut child = self.spawn(self.command(arguments).stdin(Stdio::piped()));
        child.stdin.take().unwrap().write_all(stdin.as_ref()).unwrap();
        Ran::of(child.wait_with_output().unwrap())
    }

    /// Starts a command with piped outputs.
    pub(super) fn spawn(&self, command: &mut Command) -> Child {
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// Runs a command that succeeds, and returns the JSON that it prints.
    pub(super) fn json(&self, arguments: &[&str]) -> Value {
        let ran = self.run(&[arguments, &["-o", "json"]].concat());
        assert_eq!(ran.code, 0, "{arguments:?}: {ran:?}");
        serde_json::from_str(&ran.stdout).unwrap()
    }
}

impl Ran {
    pub(super) fn of(output: Output) -> Self {
        Self {
            // a signal ended it
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}
