//! Changes of the files, and their effects.

use serde_json::{Value, json};

use crate::program::Programs as _;
use support::eventually;
use support::server::{Home, Server};
use support::store::Store;

/// Reloads only on SIGHUP.
const ASKED: &str = "system.reload_every = \"0s\"\n";
const TAKEN: &str = "reloaded the configuration";
const REFUSED: &str = "rejected the changed configuration";

fn start(home: &Home) -> Server {
    Server::start(home.greenroom(&[]))
}

fn workflow(id: &str, steps: &str) -> String {
    format!("[workflows.{id}]\nsteps = [{steps}]\n")
}

fn gives(id: &str, word: &str) -> String {
    workflow(id, &format!("{{ id = \"a\", map = \"'{word}'\" }}"))
}

fn asks(id: &str, word: &str) -> String {
    let asks = "{ id = \"ask\", map = \"resume\", suspend = { deadline = \"1h\" } }";
    workflow(id, &format!("{asks}, {{ id = \"end\", map = \"'{word}'\" }}"))
}

/// Writes the configuration, reloads it, and waits for the outcome in the log.
fn edit(home: &Home, server: &Server, text: &str, outcome: &str) -> String {
    home.configure(&format!("{ASKED}{text}"));
    server.signal("HUP");
    server.says(outcome)
}

fn result(server: &Server, workflow: &str) -> Value {
    let reply = server.post(&format!("/workflows/{workflow}/execute"), &json!({ "input": {} }));
    reply.data()["result"].clone()
}

fn readiness(server: &Server) -> String {
    let reply = server.get("/readyz");
    assert_eq!(reply.status, 200, "a server is ready whatever became of an edit");
    reply.text()
}

#[test]
fn an_accepted_change_applies_everywhere() {
    let home = Home::new(&format!("{ASKED}{}", gives("w", "old")));
    let server = start(&home);
    assert_eq!(result(&server, "w"), json!("old"));
    let models = "[models.m]\nprovider = \"rehearsal\"\n";
    let agents = "[agents.helper]\nmodel = \"m\"\ntools = [\"again\"]\n";
    let tools = "[tools.again]\nkind = \"workflow\"\nworkflow = \"v\"\ndescription = \"Again\"\n";
    let text = format!("{}{}{models}{agents}{tools}", gives("w", "new"), gives("v", "another"));
    let said = edit(&home, &server, &text, TAKEN);
    assert!(said.contains("agents: added helper"), "{said}");
    assert!(said.contains("workflows: added v, changed w"), "{said}");
    assert_eq!((result(&server, "w"), result(&server, "v")), (json!("new"), json!("another")));
    let listed = |path: &str| server.get(path).data();
    assert_eq!(listed("/workflows").as_array().map(Vec::len), Some(2));
    assert_eq!(listed("/agents")[0]["id"], "helper");
    assert_eq!(listed("/tools")[0]["name"], "again");
    let text = server.post("/agents/helper/text", &json!({ "input": "echo" })).data();
    assert_eq!(text["text"], "echo");
    for path in ["/doc", "/"] {
        assert!(server.get(path).text().contains("helper"), "{path}");
    }
    let metrics = server.get("/metrics").text();
    assert!(metrics.contains("greenroom_executions_started_total{workflow=\"v\"} 1"), "{metrics}");
    assert!(metrics.contains("greenroom_config_reloads_total{outcome=\"taken\"} 1"), "{metrics}");
}

#[test]
fn an_invalid_change_is_refused_and_reported() {
    let home = Home::new(&format!("{ASKED}{}", gives("w", "old")));
    let server = start(&home);
    assert_eq!(readiness(&server), "ready\n");
    let broken = gives("w", "new").replace("map", "mpa");
    edit(&home, &server, &broken, REFUSED);
    server.says("workflows.w.steps.a.mpa: unknown key; did you mean map?");
    // what the configuration contains is in the log alone
    let told = "ready\nthe new configuration was rejected; see the log\n";
    assert_eq!(readiness(&server), told);
    assert_eq!(result(&server, "w"), json!("old"));
    edit(&home, &server, "[workflows.w\n", REFUSED);
    server.says("config.toml:5:");
    // an MCP server, which a reload would not start, is checked like everything else
    let misspelt = format!("{}[mcp.own]\ncomand = [\"true\"]\n", gives("w", "new"));
    edit(&home, &server, &misspelt, REFUSED);
    server.says("mcp.own: needs");
    assert_eq!(readiness(&server), told);
    let has = |line: &str| server.get("/metrics").text().lines().any(|it| it == line);
    assert!(has("greenroom_config_last_reload_successful 0"));
    edit(&home, &server, &gives("w", "old"), TAKEN);
    assert_eq!(readiness(&server), "ready\n");
    assert!(has("greenroom_config_reloads_total{outcome=\"refused\"} 3"));
    assert!(has("greenroom_config_last_reload_successful 1"));
}

#[test]
fn a_change_whose_step_lacks_its_secret_is_refused() {
    let home = Home::new(&format!("{ASKED}{}", gives("w", "old")));
    let server = start(&home);
    let headers = "{ authorization = \"Bearer secret:GREENROOM_NO_SUCH\" }";
    let call = format!("http = {{ url = \"https://a.example\", headers = {headers} }}");
    edit(&home, &server, &workflow("w", &format!("{{ id = \"a\", {call} }}")), REFUSED);
    let missing = "workflows.w.steps.a.http.headers.authorization: the environment variable \
                   GREENROOM_NO_SUCH is not set";
    server.says(missing);
    assert_eq!(result(&server, "w"), json!("old"));
}

#[test]
fn changes_that_need_a_restart_are_named_and_the_rest_applied() {
    let home = Home::new(&format!("{ASKED}{}", gives("w", "old")));
    let server = start(&home);
    let text = format!("limits.value_bytes_max = 2000\n{}", gives("w", "new"));
    home.configure(&format!("{ASKED}{text}"));
    server.signal("HUP");
    server.says("[limits] has changed: restart the server to apply it");
    server.says(TAKEN);
    assert_eq!(result(&server, "w"), json!("new"));
}

#[test]
fn an_execution_keeps_its_definition_after_its_workflow_is_removed() {
    let home = Home::new(&format!("{ASKED}{}", asks("w", "as it began")));
    let mut server = start(&home);
    let begun = server.post("/workflows/w/execute", &json!({ "input": {} })).data();
    let id = begun["executionId"].as_str().unwrap().to_owned();
    assert_eq!(begun["status"], "suspended");
    edit(&home, &server, &gives("other", "other"), TAKEN);
    assert_eq!(server.post("/workflows/w/execute", &json!({ "input": {} })).status, 404);
    server.kill();
    server = start(&home);
    let path = format!("/workflows/w/executions/{id}/resume");
    let rest = server.post(&path, &json!({ "resumeData": {} })).data();
    assert_eq!((&rest["status"], &rest["result"]), (&json!("completed"), &json!("as it began")));
}

#[test]
fn a_change_that_the_store_does_not_take_is_in_use_after_the_outage() {
    let home = Home::on(Store::Sqlite, &format!("{ASKED}{}", gives("w", "old")));
    let server = start(&home);
    // so that writes are refused
    std::fs::rename(home.path("store.db"), home.path("moved.db")).unwrap();
    edit(&home, &server, &gives("w", "new"), "the changed configuration is not in use yet");
    let rejected = "greenroom_config_reloads_total{outcome=\"refused\"}";
    assert_eq!(server.figure(rejected), Some(0.0));
    std::fs::rename(home.path("moved.db"), home.path("store.db")).unwrap();
    server.says(TAKEN);
    assert_eq!(result(&server, "w"), json!("new"));
    assert_eq!(server.figure(rejected), Some(0.0));
}

#[test]
fn a_pipe_in_place_of_the_file_is_refused_and_a_file_is_read_again() {
    let home = Home::new(&format!("{ASKED}{}", gives("a", "first")));
    let server = start(&home);
    let file = home.path("config.toml");
    let kept = std::fs::read_to_string(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(&file).status().unwrap().success());
    server.signal("HUP");
    server.says(REFUSED);
    server.says("not a regular file");
    std::fs::remove_file(&file).unwrap();
    std::fs::write(&file, kept.replace("first", "second")).unwrap();
    server.signal("HUP");
    server.says(TAKEN);
    assert_eq!(result(&server, "a"), json!("second"));
}

#[test]
fn changed_files_are_reloaded_automatically() {
    let home = Home::new("system.reload_every = \"20ms\"\ninclude = [\"more/*.toml\"]\n");
    std::fs::create_dir(home.path("more")).unwrap();
    home.write("more/a.toml", &gives("a", "first"));
    let server = start(&home);
    // as editors do it: another file replaces this one
    home.write("more/.a.swp", &gives("a", "second"));
    std::fs::rename(home.path("more/.a.swp"), home.path("more/a.toml")).unwrap();
    server.says("workflows: changed a");
    home.write("more/b.toml", &gives("b", "third"));
    server.says("workflows: added b");
    assert_eq!((result(&server, "a"), result(&server, "b")), (json!("second"), json!("third")));
    std::fs::remove_dir_all(home.path("more")).unwrap();
    server.says("no file matches \"more/*.toml\"");
    assert_eq!(result(&server, "a"), json!("second"));
    std::fs::create_dir(home.path("more")).unwrap();
    home.write("more/b.toml", &gives("b", "fourth"));
    server.says("workflows: changed b, removed a");
    eventually("the refusal is gone", || (readiness(&server) == "ready\n").then_some(()));
}
