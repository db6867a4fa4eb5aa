//! Commands of operators: the real program beside a real server, and alone.

use std::net::TcpListener;
use std::process::Command;

use serde_json::{Value, json};

use super::seat::{Ran, Seat};
use crate::program::Programs as _;
use support::server::{Home, Server};
use support::store::Store;

const SECRET: &str = "0123456789abcdef0123456789abcdef";

fn ran(home: &Home, arguments: &[&str]) -> Ran {
    Ran::of(home.run(home.greenroom(arguments)))
}

#[test]
fn an_issued_token_is_let_in() {
    let home = Home::new("[auth.jwt]\n[workflows.w]\nsteps = [{ id = \"a\", map = 1 }]\n");
    let with_secret = |mut command: Command| {
        command.env("JWT_SECRET", SECRET);
        command
    };
    let server = Server::start(with_secret(home.greenroom(&[])));
    let run = |arguments: &[&str]| Ran::of(home.run(with_secret(home.greenroom(arguments))));
    let issued = run(&["token", "issue", "ann", "--role", "admin", "--expires-in", "5m"]);
    assert_eq!(issued.code, 0, "{issued:?}");
    assert!(issued.stderr.starts_with("user ann, roles admin, valid until 2"), "{issued:?}");
    let token = issued.stdout.trim();
    let bearer = format!("Bearer {token}");
    for (headers, status) in [
        (&[][..], 401),
        (&[("authorization", "Bearer x")], 401),
        (&[("authorization", &*bearer)], 200),
    ] {
        let mut headers = headers.to_vec();
        headers.push(("content-type", "application/json"));
        let reply = server.send("POST", "/workflows/w/execute", &headers, Some(b"{\"input\":{}}"));
        assert_eq!(reply.status, status, "{}", reply.text());
    }
    let inspected = run(&["token", "inspect", token, "-o", "json"]);
    let seen: Value = serde_json::from_str(&inspected.stdout).unwrap();
    assert_eq!((inspected.code, &seen["accepted"]), (0, &json!(true)));
    assert_eq!(seen["user"], json!({ "id": "ann", "roles": ["admin"] }));
    let other = run(&["token", "inspect", &format!("{token}x")]);
    assert_eq!(other.code, 1);
    assert!(other.stdout.ends_with("refused   Invalid token: invalid signature\n"), "{other:?}");
}

#[test]
fn the_document_is_that_of_the_server() {
    let seat = Seat::new();
    let printed = seat.run_with(&["openapi"], "");
    assert_eq!(printed.code, 0, "{printed:?}");
    let printed: Value = serde_json::from_str(&printed.stdout).unwrap();
    assert!(printed == seat.server.get("/doc").json(), "the two documents differ");
}

#[test]
fn a_backup_is_restored_in_the_place_of_a_store() {
    let home = Home::on(Store::Sqlite, "[workflows.w]\nsteps = [{ id = \"a\", map = 1 }]\n");
    let executed = |server: &Server, id: &str| {
        let body = json!({ "input": {}, "options": { "executionId": id } });
        assert_eq!(server.post("/workflows/w/execute", &body).status, 200);
    };
    let server = Server::start(home.greenroom(&[]));
    executed(&server, "before");
    assert_eq!(ran(&home, &["backup", "copy.db"]).code, 0);
    executed(&server, "after");
    let refused = ran(&home, &["restore", "copy.db", "--replace"]);
    assert_eq!(refused.code, 1);
    assert!(refused.stderr.contains("in use by another process"), "{refused:?}");
    server.kill();

    let refused = ran(&home, &["restore", "copy.db"]);
    assert_eq!(refused.code, 1);
    assert!(refused.stderr.contains("with --replace it is kept under another name"), "{refused:?}");
    let restored = ran(&home, &["restore", "copy.db", "--replace"]);
    assert_eq!(restored.code, 0, "{restored:?}");
    assert!(restored.stdout.contains(", 1 execution, "), "{restored:?}");
    assert!(restored.stdout.contains(".before-restore-1\n"), "{restored:?}");
    let server = Server::start(home.greenroom(&[]));
    let status = |id: &str| server.get(&format!("/workflows/w/executions/{id}/state")).status;
    assert_eq!((status("before"), status("after")), (200, 404));
}

#[test]
fn the_doctor_says_what_is_missing() {
    let model = "[models.m]\nprovider = \"openai\"\nmodel = \"m\"\nbase_url = ";
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let gone = silent.local_addr().unwrap();
    drop(silent);
    let home = Home::on(
        Store::Sqlite,
        &format!(
            "{model}\"http://{gone}/v1\"
[auth.jwt]
secret = \"secret:NO_SUCH_KEY\"
"
        ),
    );
    let sick = ran(&home, &["doctor"]);
    assert_eq!(sick.code, 1, "{sick:?}");
    for says in [
        "the environment variable NO_SUCH_KEY is not set",
        &format!("http://{gone} cannot be reached, for models.m: "),
        "is made at the first start",
        "a commit takes ",
    ] {
        assert!(sick.stdout.contains(says), "{says}: {}", sick.stdout);
    }

    let server = Server::start(Home::new("").greenroom(&[]));
    home.configure(&format!("{model}\"http://{}/v1\"\n", server.address));
    let well = ran(&home, &["doctor", "-o", "json"]);
    let report: Value = serde_json::from_str(&well.stdout).unwrap();
    assert_eq!((well.code, &report["ok"]), (0, &json!(true)), "{report:#}");
    let texts: Vec<_> = report["findings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["text"].as_str().unwrap())
        .collect();
    let reached = format!("http://{} answers (", server.address);
    assert!(texts.iter().any(|text| text.starts_with(&reached)), "{texts:#?}");

    home.configure("[cors]\norigin = []\n");
    let broken = ran(&home, &["doctor", "--offline"]);
    assert_eq!(broken.code, 1);
    assert!(broken.stdout.contains("unknown key"), "{broken:?}");
}

#[test]
fn the_doctor_asks_the_server_beside_it_whether_it_takes_work() {
    let home = Home::on(Store::Sqlite, "[workflows.w]\nsteps = [{ id = \"a\", map = 1 }]\n");
    let server = Server::start(home.greenroom(&[]));
    let port = server.address.port().to_string();
    let doctor = || ran(&home, &["doctor", "--offline", "--port", &port]);
    let well = doctor();
    assert_eq!(well.code, 0, "{well:?}");
    assert!(well.stdout.contains("ok       server         the one that listens takes work"));

    std::fs::rename(home.path("store.db"), home.path("moved.db")).unwrap();
    assert_eq!(server.post("/workflows/w/execute", &json!({ "input": {} })).status, 503);
    let sick = doctor();
    assert_eq!(sick.code, 1, "{sick:?}");
    let says = "not ready: the store accepts no writes: check the database or the disk";
    assert!(sick.stdout.contains(says), "{sick:?}");
    let refused = ran(&home, &["backup", "copy.db"]);
    assert_eq!(refused.code, 1);
    let says = "was removed, renamed or replaced while a server has it open";
    assert!(refused.stderr.contains(says), "{refused:?}");
    std::fs::rename(home.path("moved.db"), home.path("store.db")).unwrap();
}

#[test]
fn dev_says_what_to_try_and_reads_what_is_saved() {
    let workflow = |id: &str| format!("[workflows.{id}]\nsteps = [{{ id = \"a\", map = 1 }}]\n");
    let home = Home::new(&workflow("one"));
    let server = Server::start(home.greenroom(&["dev", "--fresh"]));
    let line = server.says(" one --watch");
    let words: Vec<_> = line.split_whitespace().skip_while(|word| *word != "workflows").collect();
    let tried = ran(&home, &words);
    assert_eq!((tried.code, tried.stdout.ends_with("1\n")), (0, true), "{tried:?}");
    home.configure(&workflow("two"));
    support::eventually("the new workflow", || {
        (server.get("/workflows/two").status == 200).then_some(())
    });
    // what a file for production has is no reason to reject it either
    let production = "[server]\nhost = \"0.0.0.0\"\n[store]\nurl = \"postgres://ann@db.example/shop\"\n\
                      password = \"secret:GREENROOM_NO_SUCH\"\n";
    home.write("config.toml", &format!("{}{production}", workflow("three")));
    server.says("[server] has changed: restart the server to apply it");
    server.says("[store] has changed: restart the server to apply it");
    server.says("workflows: added three, removed two");
    assert_eq!(server.get("/workflows/three").status, 200);
}

#[test]
fn a_bench_compares_with_the_barest_answer() {
    let seat = Seat::new();
    let nothing = seat.run(&["bench"]);
    assert_eq!(nothing.code, 2);
    assert!(nothing.stderr.contains("the server has workflows add, "), "{nothing:?}");
    let wrong = seat.run(&["bench", "--workflow", "nope", "--time", "10ms"]);
    assert_eq!(wrong.code, 3, "{wrong:?}");
    let all = [
        "bench",
        "--workflow",
        "approval",
        "-i",
        "{\"who\":\"a\"}",
        "--resume",
        "{\"approved\":true}",
        "--agent",
        "silent",
        "--connections",
        "2",
        "--time",
        "10ms",
    ];
    let measured = seat.json(&all);
    let rows = measured.as_array().unwrap();
    let work: Vec<_> = rows.iter().map(|row| row["work"].as_str().unwrap()).collect();
    assert_eq!(work, ["livez", "execute and resume approval", "text silent", "stream silent"]);
    for row in rows {
        assert!(row["perSecond"].as_f64().unwrap() > 0.0, "{row}");
        assert_eq!((&row["connections"], &row["errors"]), (&json!(2), &json!(0)), "{row}");
    }
    let counts = seat.server.get("/workflows/executions?status=completed&limit=1").data();
    assert_eq!(counts["executions"][0]["workflowId"], "approval");
}
