//! Readiness of a member, and the servers as another program reads them in the database.

use support::eventually;
use support::postgres::Server as Database;

use super::{complete, execute, home, start};

#[test]
fn a_member_says_how_it_is() {
    let Some(database) = Database::start() else { return };
    let url = database.fresh_url();
    let homes = ["a", "b"].map(|name| home(&url, name));
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
