//! Readiness of a member, and the servers as another program reads them in the database.

use serde_json::{Value, json};
use support::eventually;
use support::postgres::{Auth, PASSWORD, Server as Database};
use support::server::{Home, Server};

use super::{SHORT, complete, execute, home, members, start};
use crate::program::Programs as _;

#[test]
fn a_member_says_how_it_is() {
    let Some(database) = Database::start() else { return };
    let url = database.fresh_url();
    let homes = ["a", "b"].map(|name| home(&url, name, SHORT));
    let [a, _b] = homes.each_ref().map(start);
    let says = |status: u16, parts: &[&str]| {
        eventually(parts[0], || {
            let reply = a.get("/readyz");
            let text = reply.text();
            let has_all = parts.iter().all(|part| text.contains(part));
            (reply.status == status && has_all).then_some(text)
        })
    };
    let text = says(200, &["ready\nslots: ", "servers: 2\nlease: valid\nleaving: no\n"]);
    assert_eq!(text.lines().count(), 5, "{text}");
    database.stop_immediate();
    says(503, &["not ready\nthe store accepts no writes", "lease: over"]);
    assert_eq!(a.get("/livez").status, 200);
    database.start_again();
    says(200, &["ready\nslots: ", "lease: valid"]);
    // as another program does, which has it leave
    database.answer(&url, "UPDATE nodes SET state = 1 WHERE name = 'a'").unwrap();
    says(503, &["not ready\nthe server is leaving", "slots: 0 of 4096\n", "leaving: yes\n"]);
    execute(&a, "asking", "through-a");
    complete(&a, "through-a");
}

/// Returns what `greenroom nodes` prints, or its problem.
fn nodes(home: &Home, arguments: &[&str]) -> Result<String, String> {
    let output = home.run(home.greenroom(&[&["nodes"], arguments].concat()));
    let text = |bytes| String::from_utf8(bytes).unwrap();
    if output.status.success() { Ok(text(output.stdout)) } else { Err(text(output.stderr)) }
}

/// Returns the servers that `greenroom nodes --json` shows: state, sign of life, slots.
fn shown(home: &Home) -> Vec<(Value, Value, u64)> {
    let report: Value = serde_json::from_str(&nodes(home, &["--json"]).unwrap()).unwrap();
    assert_eq!(report["shared"], true);
    let nodes = report["nodes"].as_array().unwrap().iter();
    let shown =
        nodes.map(|it| (it["state"].clone(), it["beats"].clone(), it["slots"].as_u64().unwrap()));
    shown.collect()
}

#[test]
fn servers_are_listed_and_drained_by_another_program() {
    let Some([(home, a), (_, b)]) = members(["a", "b"]) else { return };
    execute(&a, "asking", "order-1");
    let table = nodes(&home, &[]).unwrap();
    // at first they have no connection, which further lines may say
    let lines: Vec<_> =
        table.lines().take(3).map(|line| line.split_whitespace().collect()).collect();
    let [head, of_a, of_b]: [Vec<&str>; 3] = lines.try_into().unwrap();
    assert_eq!(head, ["NAME", "NODE", "VERSION", "ADDRESS", "STATE", "BEATS", "SLOTS"]);
    assert_eq!((of_a[0], of_a[2], of_a[4]), ("a", env!("CARGO_PKG_VERSION"), "active"), "{table}");
    assert!(of_a[3].starts_with("127.0.0.1:") && of_b[0] == "b", "{table}");

    let unknown = nodes(&home, &["drain", "c"]).unwrap_err();
    assert_eq!(unknown, "greenroom: the database knows no server c; it knows a, b\n");
    let said = nodes(&home, &["drain", "a"]).unwrap();
    assert!(said.starts_with("a hands its slots over to the other servers; stop it"), "{said}");
    let said = nodes(&home, &["drain", "a", "--wait"]).unwrap();
    assert_eq!(said, "a has handed its slots over, and can be stopped\n");
    let yes = json!(true);
    let drained = [(json!("leaving"), yes.clone(), 0), (json!("active"), yes, 4096)];
    assert_eq!(shown(&home), drained);
    assert_eq!(a.get("/readyz").status, 503);
    complete(&a, "order-1");
    let last = nodes(&home, &["drain", "b"]).unwrap_err();
    assert!(last.starts_with("greenroom: no other server is active"), "{last}");
    drop((a, b));
    let killed = shown(&home);
    assert!(killed.iter().all(|(_, beats, _)| *beats == json!(false)), "{killed:?}");
}

#[test]
fn servers_without_a_connection_are_named() {
    let Some(url) = Database::shared().map(Database::fresh_url) else { return };
    let homes = ["a", "b"].map(|name| home(&url, name, SHORT));
    let config = std::fs::read_to_string(homes[1].path("config.toml")).unwrap();
    // where nothing listens
    let config = config.replace("[cluster]\n", "[cluster]\nadvertise = \"127.0.0.1:1\"\n");
    homes[1].write("config.toml", &config);
    let _servers = homes.each_ref().map(start);
    let is_said =
        || nodes(&homes[0], &[]).ok()?.contains("\na has no connection to b\n").then_some(());
    eventually("the word of it", is_said);
    // at first the other one has no connection either
    eventually("the connection of the other", || {
        let report: Value = serde_json::from_str(&nodes(&homes[0], &["--json"]).unwrap()).unwrap();
        let unreachable = |number: usize| report["nodes"][number]["unreachable"].clone();
        ((unreachable(0), unreachable(1)) == (json!(["b"]), json!([]))).then_some(())
    });
}

#[test]
fn a_database_with_one_server_says_so_and_no_output_has_a_password() {
    let Some(database) = Database::start_with(Auth::Scram, &[]) else { return };
    let url = database.fresh_url();
    let home = Home::at(&url, "");
    let empty = nodes(&home, &[]).unwrap_err();
    assert!(empty.starts_with("greenroom: the database has no store"), "{empty}");
    let server = Server::start(home.greenroom(&[]));
    let table = nodes(&home, &[]).unwrap();
    assert!(table.ends_with("\ntested has the database for itself\n"), "{table}");
    let json = nodes(&home, &["--json"]).unwrap();
    let report: Value = serde_json::from_str(&json).unwrap();
    let alone = &report["nodes"][0];
    assert_eq!(
        (&report["shared"], &alone["slots"], &alone["beats"]),
        (&json!(false), &json!(null), &json!(true))
    );
    let drained = nodes(&home, &["drain", "tested"]).unwrap_err();
    assert!(drained.starts_with("greenroom: tested has the database for itself, so"), "{drained}");
    drop(server);
    database.stop_immediate();
    let away = nodes(&home, &[]).unwrap_err();
    assert!(away.starts_with("greenroom: cannot connect to the database: "), "{away}");
    for output in [empty, table, json, drained, away] {
        assert!(!output.contains(PASSWORD), "{output}");
    }
}
