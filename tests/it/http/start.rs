//! Refused and accepted starts.

use std::process::{Command, Output};

use super::site::{CONFIG, Site};
use crate::program::Programs;
use support::eventually;
use support::server::{Home, Server};

fn said(output: &Output) -> (Option<i32>, String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn a_bare_file_argument_gets_a_hint_to_config() {
    let home = Home::new(CONFIG);
    home.write("own.toml", "");
    for arguments in [&["check", "own.toml"][..], &["own.toml"]] {
        let (code, _, stderr) = said(&home.run(home.greenroom(arguments)));
        assert_eq!(code, Some(2), "{stderr}");
        let hint = "to use this configuration: --config own.toml";
        assert!(stderr.lines().any(|line| line == hint), "{stderr}");
    }
    let (_, _, stderr) = said(&home.run(home.greenroom(&["check", "own"])));
    assert!(!stderr.contains("to use this configuration"), "{stderr}");
}

#[test]
fn a_problem_has_its_file_line_column_and_key() {
    let home = Home::new("");
    let rows = [
        ("[server]\nprot = 1\n", "bad.toml:2:1: server.prot: unknown key; did you mean port?"),
        ("[server]\nport = \"x\"\n", "bad.toml:2:8: server.port: "),
        ("[server]\nport = 70000\n", "bad.toml:2:8: server.port: "),
        ("[server\n", "bad.toml:1:8: unclosed table, expected `]`"),
        ("[store]\nurl = \"postgres\"\n", "bad.toml:2:7: store.url: must be "),
        ("[server]\nshutdown_grace = \"soon\"\n", "bad.toml:2:18: server.shutdown_grace: "),
        (
            "[workflows.w]\nsteps = [{ id = \"a\", map = \"data.\" }]\n",
            "bad.toml:2:28: workflows.w.steps.a.map: ",
        ),
        (
            "[workflows.w]\nsteps = [{ id = \"a\", run = \"charge\" }]\n",
            "bad.toml:2:28: workflows.w.steps.a.run: ",
        ),
        (
            "[workflows.executions]\nsteps = [{ id = \"a\", map = 1 }]\n",
            "bad.toml:1:1: workflows.executions: ",
        ),
        (
            "[agents.a]\nmodel = \"nope\"\n",
            "bad.toml:2:9: agents.a.model: model nope is not configured",
        ),
    ];
    for (text, expected) in rows {
        home.write("bad.toml", text);
        for command in ["serve", "check"] {
            let output = home.run(home.greenroom(&[command, "--config", "bad.toml"]));
            let (code, stdout, stderr) = said(&output);
            let screen = if command == "serve" { stderr } else { stdout };
            assert_eq!(code, Some(1), "{command} {text:?}: {screen}");
            assert!(screen.lines().any(|line| line.starts_with(expected)), "{text:?}: {screen}");
        }
    }
    assert!(!home.path("store.db").exists() && !home.path("greenroom.db").exists());
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    let home = Home::new("");
    std::fs::write(home.path("bytes.toml"), b"a = \"\xff\"").unwrap();
    for (file, expected) in
        [("none.toml", "none.toml: no such file"), ("bytes.toml", "bytes.toml"), (".", ".: ")]
    {
        let (code, _, stderr) = said(&home.run(home.greenroom(&["--config", file])));
        assert_eq!(code, Some(1), "{file}: {stderr}");
        assert!(stderr.starts_with(expected), "{file}: {stderr}");
    }
}

#[test]
fn without_a_file_the_built_in_examples_are_served() {
    let home = Home::new("");
    std::fs::remove_file(home.path("config.toml")).unwrap();
    let mut server = Server::start(home.greenroom(&["--port", "0"]));
    server.says("there is no config.toml here: serving the built-in examples");
    let workflows = server.get("/workflows").data();
    assert!(workflows.to_string().contains("expense-approval"), "{workflows}");
    server.signal("HUP");
    server.says("SIGHUP: stopping");
    assert!(server.ended().success());
    let (code, stdout, _) = said(&home.run(home.greenroom(&["check"])));
    assert_eq!(code, Some(1));
    assert!(stdout.contains("no such file") && stdout.contains("greenroom init"), "{stdout}");
}

#[test]
fn a_configuration_in_effect_is_shown_or_refused() {
    let home = Home::new("[agents.a]\nmodel = \"m\"\n[models.m]\nprovider = \"mock\"\n");
    let show = |options: &[&str]| {
        said(&home.run(home.greenroom(&[&["config", "show", "-o", "json"], options].concat())))
    };
    let (code, stdout, stderr) = show(&["--host", "::1", "--redacted"]);
    assert_eq!(code, Some(0), "{stderr}");
    let shown: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(shown["origins"]["server.host"], "command line", "{shown}");
    assert_eq!(shown["config"]["agents"]["a"]["model"], "m", "{shown}");
    std::fs::write(home.path("config.toml"), "[server]\nprot = 0\n").unwrap();
    let (code, stdout, stderr) = show(&[]);
    assert_eq!((code, stdout.as_str()), (Some(1), ""));
    assert!(stderr.contains("server.prot: unknown key"), "{stderr}");
}

#[test]
fn a_first_configuration_is_served_and_its_health_asked() {
    let home = Home::new("");
    let (code, stdout, stderr) = said(&home.run(home.greenroom(&["init", "shop"])));
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stdout.contains("cd shop"), "{stdout}");
    let again = said(&home.run(home.greenroom(&["init", "shop"])));
    assert_eq!(again.0, Some(1), "{again:?}");
    let at = ["--config", "shop/config.toml", "--port"];
    let mut server = Server::start(home.greenroom(&[&at[..], &["0"]].concat()));
    let order = serde_json::json!({ "input": { "item": "desk", "price": 900 } });
    let waiting = server.post("/workflows/order/execute", &order).data();
    assert_eq!(waiting["status"], "suspended", "{waiting}");
    // its agent speaks, and calls its tool when a person has agreed
    let says = |input: &str| {
        server.post("/agents/support/text", &serde_json::json!({ "input": input })).data()
    };
    assert_eq!(says("hello")["text"], "You said: hello");
    says("Please refund A-1");
    let asks = server.get("/inbox?kind=approval").data();
    let ask = asks["asks"][0]["askId"].as_str().unwrap();
    let yes = serde_json::json!({ "data": { "approved": true } });
    server.post(&format!("/inbox/{ask}/answer"), &yes).data();
    let told = eventually("the agent continues", || {
        let history = server.get("/agents/support/history").data().to_string();
        history.contains("Done: ").then_some(history)
    });
    assert!(told.contains("refunded"), "{told}");

    let port = server.address.port().to_string();
    let ask = |options: &[&str]| {
        let line = [&["healthcheck"], &at[..], &[&port], options].concat();
        said(&home.run(home.greenroom(&line)))
    };
    for options in [&[][..], &["--ready"]] {
        let (code, stdout, stderr) = ask(options);
        assert_eq!((code, stdout.lines().count()), (Some(0), 1), "{stderr}");
    }
    // what has the port may be something else
    let (code, _, stderr) = said(&home.run(home.greenroom(&["healthcheck", "--port", &page()])));
    assert_eq!(code, Some(1));
    assert!(stderr.contains("/livez answers something else"), "{stderr}");
    server.signal("TERM");
    server.ended();
    let (code, _, stderr) = ask(&[]);
    assert_eq!(code, Some(1));
    assert!(stderr.contains(&format!(":{port}/livez does not answer")), "{stderr}");
}

/// Returns the port of a server that answers one request with a page.
fn page() -> String {
    use std::io::{Read as _, Write as _};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let _ = stream.read(&mut [0; 4096]).unwrap();
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\n<html>").unwrap();
    });
    port
}

#[test]
fn a_truncated_configuration_never_starts_by_accident() {
    let home = Home::new("");
    let whole = "[server]\nport = 0\nhost = \"0.0.0.0\"\n[auth]\nprovider = \"none\"\n";
    let mut refused = 0;
    for cut in 0..whole.find("\"none\"").unwrap() {
        home.write("cut.toml", &whole[..cut]);
        let (code, stdout, _) = said(&home.run(home.greenroom(&["check", "--config", "cut.toml"])));
        // a cut after the public address but before the confirmation of its exposure must be
        // refused
        let is_exposed = whole[..cut].contains("\"0.0.0.0\"");
        assert!(!(is_exposed && code == Some(0)), "{:?}: {stdout}", &whole[..cut]);
        refused += usize::from(code == Some(1));
    }
    assert!(refused > 20, "{refused}");
}

#[test]
fn check_counts_and_starts_nothing() {
    let home = Home::new(CONFIG);
    let (code, stdout, stderr) = said(&home.run(home.greenroom(&["check"])));
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    // a store in PostgreSQL is explained before it
    assert!(stdout.ends_with("config.toml: ok, 7 workflows, 1 agent, 0 tools\n"), "{stdout}");
    assert!(!home.path("store.db").exists());
    home.write("two.toml", "[server]\nprot = 1\n[stroe]\n");
    let (code, stdout, _) = said(&home.run(home.greenroom(&["check", "--config", "two.toml"])));
    assert_eq!((code, stdout.lines().count()), (Some(1), 2), "{stdout}");
}

#[test]
fn a_public_address_needs_an_explicit_setting() {
    let home = Home::new("");
    let run = |arguments: &[&str]| said(&home.run(home.greenroom(arguments)));
    let (code, _, stderr) = run(&["--host", "0.0.0.0"]);
    assert_eq!(code, Some(1), "{stderr}");
    assert!(stderr.starts_with("--host: other machines can reach"), "{stderr}");
}

#[test]
fn port_in_the_environment_is_ignored() {
    let home = Home::new(CONFIG);
    let mut command: Command = home.greenroom(&[]);
    command.env("PORT", "1");
    let server = Server::start(command);
    assert_ne!(server.address.port(), 1);
    assert!(server.address.ip().is_loopback());
    assert_eq!(server.get("/livez").status, 200);
}

#[test]
fn the_environment_is_shown_and_never_disables_authentication() {
    for (value, expected) in
        [(Some("Production"), "production"), (Some("test"), "development"), (None, "development")]
    {
        let home = Home::new(CONFIG);
        let with = |mut command: Command| {
            match value {
                Some(value) => command.env("NODE_ENV", value),
                None => command.env_remove("NODE_ENV"),
            };
            command
        };
        let server = Server::start(with(home.greenroom(&[])));
        server.says(&format!("environment: {expected}"));
        assert_eq!(server.get("/observability/status").data()["environment"], expected);
        let ui = if expected == "production" { 404 } else { 200 };
        assert_eq!((server.get("/ui").status, server.get("/doc").status), (ui, 200));
        let (code, ..) = said(&home.run(with(home.greenroom(&["--host", "0.0.0.0"]))));
        assert_eq!(code, Some(1), "{value:?}");
    }
}

#[test]
fn a_port_in_use_is_named() {
    let site = Site::start();
    let home = Home::new(CONFIG);
    let port = site.address.port().to_string();
    let (code, _, stderr) = said(&home.run(home.greenroom(&["--port", &port])));
    assert_eq!(code, Some(1), "{stderr}");
    assert!(stderr.contains(&format!("cannot listen at 127.0.0.1:{port}: ")), "{stderr}");
}

#[test]
fn a_wrong_command_line_is_refused() {
    let home = Home::new("");
    for arguments in [&["--prot", "1"][..], &["--port", "x"], &["dance"], &["--port", "70000"]] {
        let (code, _, stderr) = said(&home.run(home.greenroom(arguments)));
        assert_eq!(code, Some(2), "{arguments:?}: {stderr}");
        assert!(stderr.starts_with("error: "), "{arguments:?}: {stderr}");
    }
    let (code, stdout, _) = said(&home.run(home.greenroom(&["--help"])));
    assert!(code == Some(0) && stdout.contains("check"), "{stdout}");
}
