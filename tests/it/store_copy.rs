//! `greenroom store copy`: a store moves to PostgreSQL and back between stops of its server.

use std::process::Output;

use serde_json::json;
use support::postgres::{Auth, PASSWORD, Server as Database};
use support::server::{Home, Server};

use super::program::Programs as _;

/// Asks once, and ends with the answer.
const WORKFLOW: &str = "
[[workflows.asking.steps]]
id = \"ask\"
map = \"resume\"
suspend = { deadline = \"1h\" }
";

/// Writes the configuration of a server with this store into a folder.
fn configure(home: &Home, url: &str) {
    let config = format!("[server]\nport = 0\n[store]\nurl = \"{url}\"\n{WORKFLOW}");
    home.write("config.toml", &config);
}

fn start(home: &Home, url: &str) -> Server {
    configure(home, url);
    Server::start(home.greenroom(&["serve"]))
}

fn stop(mut server: Server) {
    server.signal("TERM");
    assert!(server.ended().success());
}

fn execute(server: &Server, id: &str) {
    let body = json!({ "input": {}, "options": { "executionId": id } });
    let reply = server.post("/workflows/asking/execute", &body);
    assert_eq!(reply.status, 200, "{}", reply.text());
}

fn copy(home: &Home, from: &str, to: &str) -> Output {
    home.run(home.greenroom(&["store", "copy", from, to]))
}

#[track_caller]
fn copied(home: &Home, from: &str, to: &str) -> String {
    let output = copy(home, from, to);
    let [result, progress] =
        [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    assert_eq!(output.status.code(), Some(0), "{progress}");
    assert!(progress.contains("copied 2 of 2 executions\n"), "{progress}");
    assert!(progress.contains("checked 2 of 2 executions\n"), "{progress}");
    result
}

#[track_caller]
fn refused(output: &Output, says: &str) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains(says), "{said}");
}

#[test]
fn a_store_moves_to_postgresql_and_back() {
    let Some(database) = Database::shared() else { return };
    let (home, url) = (Home::new(""), database.fresh_url());
    let server = start(&home, "sqlite://first.db");
    execute(&server, "one");
    execute(&server, "two");
    refused(&copy(&home, "sqlite://first.db", &url), "is in use by another process");
    stop(server);
    let result = copied(&home, "sqlite://first.db", &url);
    assert!(result.contains("/greenroom: ok, definitions: 2, executions: 2, "), "{result}");

    let server = start(&home, &url);
    let path = "/workflows/asking/executions/one/resume";
    let reply = server.post(path, &json!({ "resumeData": 7 }));
    assert_eq!(reply.status, 200, "{}", reply.text());
    server.state_when("asking", "one", |state| state["status"] == "completed");
    refused(&copy(&home, &url, "sqlite://second.db"), "the database is in use by greenroom");
    assert!(!home.path("second.db").exists());
    stop(server);
    copied(&home, &url, "sqlite://second.db");

    let server = start(&home, "sqlite://second.db");
    assert_eq!(server.state("asking", "one")["status"], "completed");
    assert_eq!(server.state("asking", "two")["status"], "suspended");
}

#[test]
fn targets_that_are_not_empty_are_left_alone() {
    let Some(database) = Database::shared() else { return };
    let (home, url) = (Home::new(""), database.fresh_url());
    for store in ["sqlite://a.db", &url] {
        let server = start(&home, store);
        execute(&server, "one");
        stop(server);
    }
    refused(&copy(&home, &url, "sqlite://a.db"), "a.db exists; a copy overwrites nothing");
    let says = "the database has a store that is not empty (definitions, executions, ";
    refused(&copy(&home, "sqlite://a.db", &url), says);
    for store in ["sqlite://a.db", &url] {
        assert_eq!(start(&home, store).state("asking", "one")["status"], "suspended");
    }
    refused(&copy(&home, "sqlite://none.db", &url), "there is no store at none.db");
}

#[test]
fn the_variable_of_a_missing_password_is_named_with_its_database() {
    let Some(database) = Database::start_with(Auth::Scram, &[]) else { return };
    let url = database.fresh_url().replace(&format!(":{PASSWORD}@"), "@");
    let home = Home::new("");
    home.write("config.toml", "[store]\npassword = \"secret:MOVING_PASSWORD\"\n");
    let copy = |password: Option<&str>| {
        let mut command = home.greenroom(&["store", "copy", &url, "sqlite://new.db"]);
        command.env_remove("PGPASSWORD");
        command.envs(password.map(|password| ("MOVING_PASSWORD", password)));
        home.run(command)
    };
    let port = database.port();
    for (password, problem) in [(None, "is not set"), (Some(""), "is empty")] {
        let says = format!(
            "greenroom: postgres://greenroom@127.0.0.1:{port}/greenroom: 127.0.0.1:{port} asks for \
             a password, and the environment variable MOVING_PASSWORD {problem}; `password` under \
             [store] names it"
        );
        refused(&copy(password), &says);
    }
    refused(&copy(Some(PASSWORD)), "the database has no store; check its address");
}
