//! MCP servers that die, hang, flood, speak no JSON or are not there, and kills of our own server.

use std::time::Instant;

use serde_json::{Value, json};
use support::provider::{Asked, Deed, Provider, whole};
use support::server::{Home, Server};
use support::{PATIENCE, eventually};

use super::asking::{answer, open_ask};
use super::{CALLERS, Site, call, ready, scripted, status_when, tool_names};
use crate::program::Programs as _;

const INTERRUPTED: &str = "the call was interrupted; it may have happened";

#[test]
fn a_call_whose_server_dies_is_repeated_only_if_that_does_no_harm() {
    let site = Site::start("");
    let failure = site.call("die", &json!({})).unwrap_err();
    assert_eq!(failure, format!("Failed to execute tool: {INTERRUPTED}"));
    // it waits for the next connection
    assert_eq!(site.call("die_once", &json!({})), Ok(json!("die_once is done")));
    let answer = site.server.post("/agents/clerk/text", &json!({ "input": "die" }));
    assert!(answer.data()["text"].as_str().unwrap().contains(INTERRUPTED), "{answer:?}");
}

#[test]
fn messages_that_cost_too_much_end_the_connection() {
    let site = Site::start("");
    for (tool, reason) in [
        ("flood", "it sent a message of over 4194304 bytes"),
        ("deep", "it sent a message that is nested deeper than 120 levels"),
        ("chatter", "it sent over 10000 requests and notifications within 10 seconds"),
    ] {
        let failure = site.call(tool, &json!({})).unwrap_err();
        assert_eq!(failure, format!("Failed to execute tool: {INTERRUPTED}"));
        site.server.says(reason);
    }
    assert_eq!(site.call("sum", &json!({ "n": 1 })), Ok(json!({ "sum": 2 })));
}

#[test]
fn servers_that_cannot_be_connected_are_shown_with_the_reason_and_delay_nothing() {
    let home = Home::new("");
    let file = home.path("asked");
    let dead = (0..50).map(|number| format!("[mcp.dead{number}]\ncommand = [\"/nowhere/mcp\"]\n"));
    let mut text: String = dead.collect();
    text += "[mcp.closed]\nurl = \"http://127.0.0.1:9/mcp\"\n";
    text += &scripted::config("noise", "noise", &file);
    text += &scripted::config("silent", "silent", &file);
    text += "connect_timeout = \"300ms\"\n";
    text += &scripted::config("broken", "broken", &file);
    text += &scripted::config("odd", "odd", &file);
    text += &scripted::config("own", "good", &file);
    home.configure(&format!("{text}{CALLERS}"));
    let begun = Instant::now();
    let server = Server::start(home.greenroom(&[]));
    assert_eq!(server.get("/readyz").status, 200);
    ready(&server, "own");
    assert!(begun.elapsed() < PATIENCE / 2);
    assert_eq!(call(&server, "own.sum", &json!({ "n": 1 })), Ok(json!({ "sum": 2 })));
    for (name, reason) in [
        ("dead7", "the program /nowhere/mcp does not exist"),
        ("closed", "it cannot be reached"),
        ("noise", "it prints text that is not JSON: "),
        ("silent", "it did not answer within 300ms"),
        ("odd", "its tool list is invalid"),
        (
            "broken",
            "the program ended with exit code 3: no key in TOKEN=[redacted] password=[redacted] [redacted]",
        ),
    ] {
        let has_failed = |status: &Value| {
            let said = status["reason"].as_str().unwrap_or_default();
            status["state"] == "failed" && said.contains(reason)
        };
        let status = status_when(&server, name, has_failed);
        assert_eq!(status["tools"], json!([]), "{name}");
    }
}

/// Answers like a server of an older version that has an empty result for what it does not know.
fn answer_everything(asked: &Asked) -> Vec<Deed> {
    let Some(method) = asked.body["method"].as_str() else { return whole(405, &[], "") };
    let id = &asked.body["id"];
    if id.is_null() {
        return whole(202, &[], "");
    }
    let result = match method {
        "initialize" => json!({ "protocolVersion": "2025-11-25", "capabilities": { "tools": {} },
                                "serverInfo": { "name": "older", "version": "1" } }),
        "tools/list" => {
            json!({ "tools": [{ "name": "count", "inputSchema": { "type": "object" } }] })
        }
        _ => json!({}),
    };
    let answer = json!({ "jsonrpc": "2.0", "id": id, "result": result });
    whole(200, &[("content-type", "application/json")], &answer.to_string())
}

#[test]
fn a_server_over_http_that_answers_what_it_does_not_know_gets_a_handshake() {
    let older = Provider::choosing(answer_everything);
    let home = Home::new(&format!(
        "[mcp.older]\nurl = \"{}\"\nrestart = {{ delay = \"10ms\", max_delay = \"50ms\" }}\n",
        older.base_url()
    ));
    let server = Server::start(home.greenroom(&[]));
    let status = ready(&server, "older");
    assert_eq!(
        (&status["protocol"], &status["tools"]),
        (&json!("2025-11-25"), &json!(["older.count"]))
    );
    let asked: Vec<_> = older.asked().iter().map(|asked| asked.body["method"].clone()).collect();
    assert_eq!(asked[..2], [json!("server/discover"), json!("initialize")]);
}

#[test]
fn tools_of_a_server_that_is_away_stay_and_say_so() {
    let home = Home::new("");
    let text = format!("[mcp.own]\ncommand = [\"/nowhere/mcp\"]\n{CALLERS}");
    home.configure(&text);
    let server = Server::start(home.greenroom(&[]));
    status_when(&server, "own", |status| status["state"] == "failed");
    assert_eq!(
        tool_names(&server),
        [
            "own.ask",
            "own.die",
            "own.report",
            "own.sign",
            "own.stay",
            "own.stay_once",
            "own.sum",
            "own.vote"
        ]
    );
    let away = "the MCP server own is not connected; try again later";
    let failure = call(&server, "own.sum", &json!({})).unwrap_err();
    assert_eq!(failure, format!("Failed to execute tool: {away}"));
    let answer = server.post("/agents/clerk/text", &json!({ "input": "the sum, please" }));
    assert!(answer.data()["text"].as_str().unwrap().contains(away), "{answer:?}");
    let restart = |name: &str| server.post(&format!("/tools/mcp/{name}/restart"), &json!({}));
    assert_eq!(restart("own").data(), json!({ "name": "own" }));
    let url = format!("http://{}", server.address);
    let run = |arguments: &[&str]| {
        let ran = home.greenroom(&[arguments, &["--server", &url]].concat()).output().unwrap();
        (ran.status.success(), String::from_utf8(ran.stdout).unwrap())
    };
    let (is_listed, listed) = run(&["tools", "servers"]);
    let line = listed.lines().last().unwrap();
    let line: Vec<_> = line.split_whitespace().collect();
    let [name, state, _since, tools, running, calls, failed, remark @ ..] = &*line else {
        panic!("{listed}")
    };
    assert!(is_listed, "{listed}");
    let cells = [*name, *state, *tools, *running, *calls, *failed];
    assert_eq!(cells, ["own", "failed", "0", "0", "2", "2"]);
    assert_eq!(remark.join(" "), "the program /nowhere/mcp does not exist");
    assert_eq!(run(&["tools", "restart", "own"]), (true, "connecting own again\n".to_owned()));
    assert!(!run(&["tools", "restart", "elephant"]).0);
    let unknown = restart("elephant");
    assert_eq!((unknown.status, unknown.error().as_str()), (404, "MCP server elephant not found"));
}

#[test]
fn the_call_with_an_answer_waits_for_a_server_that_is_away() {
    let site = Site::start("");
    let begin = json!({ "input": {}, "options": { "executionId": "e1" } });
    let executed = site.server.post("/workflows/signing/execute", &begin).data();
    assert_eq!(executed["status"], "suspended", "{executed}");
    let page = open_ask(&site.server);
    site.home.write(scripted::AWAY, "");
    site.call("die", &json!({})).unwrap_err();
    site.status_when("own", |status| status["state"] == "failed");
    assert_eq!(answer(&site.server, &page, &json!("done")), 200);
    eventually("the call of the step", || {
        let why = site.server.get("/workflows/signing/executions/e1/why").data();
        (why["waitsFor"][0]["tool"] == "own.sign").then_some(())
    });
    let other = site.call("sum", &json!({ "n": 1 })).unwrap_err();
    assert!(other.ends_with("the MCP server own is not connected; try again later"), "{other}");
    let state = site.server.state("signing", "e1");
    assert_eq!(state["status"], "running", "it has not failed: {state}");
    std::fs::remove_file(site.home.path(scripted::AWAY)).unwrap();
    let has_ended = |state: &Value| state["status"] != "running";
    let state = site.server.state_when("signing", "e1", has_ended);
    assert_eq!(state["result"], "sign is done", "{state}");
}

#[test]
fn a_restart_begins_another_connection() {
    let site = Site::start("");
    site.call("grow", &json!({})).unwrap();
    eventually("the tool", || {
        tool_names(&site.server).contains(&"own.grown".to_owned()).then_some(())
    });
    assert_eq!(site.server.post("/tools/mcp/own/restart", &json!({})).status, 200);
    site.server.says("MCP server own: connecting again, as requested");
    // the new process has not grown
    eventually("the tool is gone", || {
        (!tool_names(&site.server).contains(&"own.grown".to_owned())).then_some(())
    });
    assert_eq!(site.call("sum", &json!({ "n": 1 })), Ok(json!({ "sum": 2 })));
}

#[test]
fn after_a_kill_a_step_repeats_a_call_only_if_that_does_no_harm() {
    let site = Site::start("");
    for (workflow, note) in [("staying", "stay"), ("reading", "stay_once")] {
        let body = json!({ "input": {}, "options": { "executionId": workflow } });
        let path = format!("/workflows/{workflow}/execute");
        let headers = [("content-type", "application/json"), ("prefer", "respond-async")];
        let begun = site.server.send("POST", &path, &headers, Some(body.to_string().as_bytes()));
        assert_eq!(begun.status, 202);
        site.noted(note);
        let why = site.server.get(&format!("/workflows/{workflow}/executions/{workflow}/why"));
        let awaited = &why.data()["waitsFor"][0];
        assert_eq!((&awaited["kind"], &awaited["attempt"]), (&json!("step"), &json!(1)));
        assert_eq!(awaited["tool"], format!("own.{note}"), "{awaited}");
        assert!(awaited["since"].is_string(), "{awaited}");
    }
    let Site { home, server } = site;
    server.kill();
    let server = Server::start(home.greenroom(&[]));
    let ended = |workflow: &str, status: &str| {
        server.state_when(workflow, workflow, |state| state["status"] == status)
    };
    let failed = ended("staying", "error");
    assert!(failed["error"].to_string().contains(INTERRUPTED), "{failed}");
    let completed = ended("reading", "completed");
    assert_eq!(completed["result"], "stay_once is done");
    let noted = std::fs::read_to_string(home.path("asked")).unwrap();
    let times = |what: &str| noted.lines().filter(|line| *line == what).count();
    assert_eq!((times("stay"), times("stay_once")), (1, 2));
}

#[cfg(target_os = "linux")]
#[test]
fn programs_end_with_the_server() {
    let site = Site::start("");
    let threads = format!("/proc/{}/task", site.server.child.id());
    let threads = std::fs::read_dir(threads).unwrap().map(|thread| thread.unwrap().path());
    let children = threads.filter_map(|it| std::fs::read_to_string(it.join("children")).ok());
    let child = children.collect::<String>().trim().to_owned();
    assert!(!child.is_empty());
    let Site { home: _home, mut server } = site;
    server.signal("TERM");
    assert!(server.ended().success());
    let is_running = std::path::Path::new("/proc").join(&child).exists();
    assert!(!is_running, "{child}");
}
