//! Servers of different versions, and with different configurations.

use serde_json::json;
use support::eventually;
use support::postgres::Server as Database;
use support::server::Server;

use super::{SHORT, complete, execute, execute_with_key, home, start};
use crate::program::Programs as _;

/// A tool, and a workflow with it.
const PACKING: &str = "
[tools.pack]
kind = \"command\"
description = \"Packs\"
parameters = { type = \"object\" }
argv = [\"/bin/cat\"]

[[workflows.packing.steps]]
id = \"pack\"
tool = \"pack\"
";

#[test]
fn a_server_works_on_newer_tables_if_it_may() {
    let Some(database) = Database::shared() else { return };
    let url = database.fresh_url();
    let homes = ["a", "b"].map(|name| home(&url, name, SHORT));
    let [mut a, b] = homes.each_ref().map(start);
    execute(&a, "asking", "order-1");
    // as a newer version that only adds
    database.answer(&url, "UPDATE meta SET schema = 1000").unwrap();
    for server in [&a, &b] {
        eventually("the word of newer tables", || {
            let reply = server.get("/readyz");
            let says = reply.text().contains("\ntables: of a newer version, to which this server");
            (reply.status == 200 && says).then_some(())
        });
    }
    complete(&b, "order-1");
    drop(b);
    let b = start(&homes[1]);
    execute(&b, "asking", "order-2");
    // as one that takes something away, though nothing like this has gone
    database.answer(&url, "UPDATE meta SET schema_min = 1000").unwrap();
    assert_eq!(a.ended().code(), Some(75));
    let said = homes[0].run(homes[0].greenroom(&["serve"]));
    let said = String::from_utf8(said.stderr).unwrap();
    let expected = "the database was written by a newer version: its schema is 1000, and this \
        version knows ";
    assert!(said.contains(expected) && said.contains("; install the newer version"), "{said}");
}

#[test]
fn an_execution_waits_where_a_tool_is_missing_and_continues_where_it_is_not() {
    let Some(url) = Database::shared().map(Database::fresh_url) else { return };
    let [lacking, having] = ["a", "b"].map(|name| home(&url, name, SHORT));
    let config = std::fs::read_to_string(having.path("config.toml")).unwrap();
    having.write("config.toml", &format!("{config}{PACKING}"));
    let [a, b] = [&lacking, &having].map(start);
    let slots_of_a = || {
        let text = a.get("/readyz").text();
        (!text.contains("\nslots: 0 of") && !text.contains("slots: 4096 of")).then_some(())
    };
    eventually("both have slots", slots_of_a);
    let ids: Vec<_> = (0..12).map(|number| format!("pack-{number}")).collect();
    std::thread::scope(|scope| {
        let b = &b;
        let callers: Vec<_> =
            ids.iter().map(|id| scope.spawn(move || execute_with_key(b, "packing", id))).collect();
        // some of these are executed by the one that lacks the tool
        let waiting = ids.iter().filter(|id| waits_at_a(b, id)).count();
        assert_ne!(waiting, 0, "none is in a slot of a");
        let said = lacking.run(lacking.greenroom(&["nodes", "drain", "a"]));
        assert!(said.status.success());
        for caller in callers {
            let reply = caller.join().unwrap();
            assert_eq!(reply.status, 200, "{}", reply.text());
            assert_eq!(reply.data()["status"], "completed");
        }
    });
}

/// Waits until an execution ends, or waits for the tool; returns true for the latter.
fn waits_at_a(server: &Server, id: &str) -> bool {
    eventually("it ends, or waits", || {
        let reply = server.get(&format!("/workflows/packing/executions/{id}/why"));
        if reply.status != 200 {
            return None;
        }
        let why = reply.data();
        let waits = &why["waitsFor"][0];
        if why["status"] == "completed" {
            return Some(false);
        }
        (waits["kind"] == "missing").then(|| {
            let message = "tool pack is not registered at the server a";
            assert_eq!((&why["server"], &waits["message"]), (&json!("a"), &json!(message)));
            true
        })
    })
}
