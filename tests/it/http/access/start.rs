//! Refused starts, warnings at the start, and secrets that are never printed.

use std::io::{BufRead, BufReader};
use std::process::{Command, Output, Stdio};

use tokio_tungstenite::tungstenite::Message;

use super::*;
use crate::http::sockets::Socket;

fn said(output: &Output) -> String {
    String::from_utf8([&output.stdout[..], &output.stderr].concat()).unwrap()
}

#[test]
fn secrets_are_checked_before_the_start_and_never_shown() {
    let home = Home::new(&format!("[auth.jwt]\n{CONFIG}"));
    let rows = [
        (None, "config.toml:4:1: auth.jwt: the environment variable JWT_SECRET is not set"),
        (Some(""), "config.toml:4:1: auth.jwt: the environment variable JWT_SECRET is empty"),
        (
            Some("canary"),
            "config.toml:4:1: auth.jwt: the environment variable JWT_SECRET: the secret has 6 \
             bytes; it must have at least 32",
        ),
    ];
    for (secret, expected) in rows {
        for argument in ["serve", "check"] {
            let mut command = home.greenroom(&[argument]);
            command.env_remove("JWT_SECRET");
            command.envs(secret.map(|secret| ("JWT_SECRET", secret)));
            let output = home.run(command);
            assert_eq!((output.status.code(), said(&output).trim_end()), (Some(1), expected));
        }
    }
    assert!(!home.path("store.db").exists());
}

#[test]
fn a_pattern_without_a_route_prevents_the_start() {
    let auth = "[auth]\npublic = [\"GET /agents\", \"GET /agnets\"]\n\
                rules = [{ route = \"POST /update\", roles = [\"a\"] }]\n[auth.jwt]\n";
    let home = Home::new(&format!("{auth}{CONFIG}"));
    for argument in ["serve", "check"] {
        let mut command = home.greenroom(&[argument]);
        command.env("JWT_SECRET", SECRET);
        let output = home.run(command);
        let expected = "config.toml:5:26: auth.public[1]: matches no route; did you mean GET \
                        /agents?\n\
                        config.toml:6:20: auth.rules[0].route: matches no route; did you mean \
                        POST /updates?\n";
        assert_eq!((output.status.code(), said(&output).as_str()), (Some(1), expected));
    }
}

/// Returns the output of a server until it listens; it is killed then.
fn said_at_start(mut command: Command) -> Vec<String> {
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    let lines = lines.take_while(|line| !line.contains("greenroom listens at")).collect();
    child.kill().unwrap();
    child.wait().unwrap();
    lines
}

#[test]
fn a_public_address_starts_with_a_warning_about_open_routes() {
    let none = "[auth]\nprovider = \"none\"";
    // configuration, and texts in the warning beside `none`
    let rows = [
        ("", None),
        ("[auth.jwt]", Some(("/executions/:executionId/resume", "/execute,"))),
        (none, Some(("POST /workflows/:id/execute,", "GET"))),
        ("[auth]\ndefault = \"private\"\n[auth.jwt]", None),
    ];
    for (auth, warned_of) in rows {
        let home = Home::new(&format!("{auth}\n{CONFIG}"));
        let command = |argument| {
            let mut command = home.greenroom(&["--host", "0.0.0.0", argument]);
            command.env("JWT_SECRET", SECRET);
            command
        };
        let checked = home.run(command("check")).status.code();
        if auth.is_empty() {
            assert_eq!((checked, home.run(command("serve")).status.code()), (Some(1), Some(1)));
            continue;
        }
        assert_eq!(checked, Some(0), "{auth}");
        let said = said_at_start(command("serve"));
        let warnings: Vec<_> =
            said.iter().filter(|it| it.contains("any client of 0.0.0.0 may call")).collect();
        match (warned_of, &warnings[..]) {
            (None, []) => {}
            (Some((open, other)), [line]) => {
                assert!(line.contains("WARN") && line.contains(open), "{line}");
                assert!(!line.contains(other), "{line}");
            }
            _ => panic!("{auth}: {said:#?}"),
        }
    }
}

/// Tries an upgrade; returns the status of the answer.
fn upgrade(site: &Site, path: &str) -> u16 {
    let headers = [
        ("connection", "upgrade"),
        ("upgrade", "websocket"),
        ("sec-websocket-version", "13"),
        ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
    ];
    let mut wire = Wire::open(site.address).unwrap();
    wire.send("GET", path, &headers, None).unwrap();
    wire.head().unwrap().status
}

#[test]
fn a_token_in_an_address_is_in_no_line_of_the_log() {
    let mut site = guarded_with("default = \"private\"", "", &["--log", "trace"]);
    let good = token("ann", &[]);
    let forged = signed(&json!({ "sub": "ann" }), &SECRET.replace('a', "b"));
    let expired = signed(&json!({ "sub": "ann", "exp": now() - 60 }), SECRET);
    let tokens = [&good, &forged, &expired];
    let mut socket = Socket::open(&site, &format!("/ws?token={good}"));
    assert_eq!(socket.next()["data"]["userId"], "ann");
    socket.0.send(Message::text("{")).unwrap();
    assert_eq!(socket.next()["type"], "ERROR");
    for (token, status) in [(&good, 101), (&forged, 401), (&expired, 401)] {
        for path in ["/ws", "/ws/observability"] {
            assert_eq!(upgrade(&site, &format!("{path}?token={token}")), status, "{path}");
        }
    }
    assert_eq!(upgrade(&site, &format!("/ws/observability?token={good}&entityType=x")), 400);
    for token in tokens {
        // invalid tokens of all kinds, some of which cause log lines
        for path in ["/agents", "/nope", "/agents/assistant/history", "/workflows/%ff"] {
            for query in ["", "&limit=x", "&x=%ff", "&x=%"] {
                let path = format!("{path}?token={token}{query}");
                let refused = site.get(&path);
                assert!(matches!(refused.status, 401 | 404), "{path}");
                assert!(!refused.text().contains(token.as_str()), "{}", refused.text());
                let known = ask(&site, &good, "GET", &path, &json!({}));
                assert!(!known.text().contains(token.as_str()), "{}", known.text());
            }
        }
        let body = json!({ "input": { "n": 1 } });
        ask(&site, &good, "POST", &format!("/workflows/add/execute?token={token}"), &body).data();
        ask(&site, &good, "POST", &format!("/workflows/failing/execute?token={token}"), &body);
    }
    site.server.signal("TERM");
    assert!(site.server.ended().success());
    let log = site.server.log.lock().unwrap().iter().collect::<Vec<_>>().join("\n");
    assert!(log.contains("TRACE") && log.lines().count() > 100, "{log}");
    for token in tokens {
        // Neither the whole token nor its signature.
        let signature = token.rsplit('.').next().unwrap();
        assert!(!log.contains(token.as_str()) && !log.contains(signature), "{log}");
    }
}
