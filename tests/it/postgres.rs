//! The program with a store in PostgreSQL.

mod outages;
mod refusals;

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};

use serde_json::json;
use support::client::Wire;
use support::clock::WrongClock;
use support::eventually;
use support::postgres::{Auth, PASSWORD, Server as Database};
use support::proxy::Proxy;
use support::server::{Home, Server};

use super::program::Programs as _;

/// Asks once, and ends with the answer.
const WORKFLOW: &str = "
[[workflows.asking.steps]]
id = \"ask\"
map = \"resume\"
suspend = { deadline = \"1h\" }
";

/// Returns a folder with the configuration of a server by this name.
fn home(url: &str, name: &str) -> Home {
    let home = Home::new("");
    let config = format!(
        "[server]\nport = 0\nname = \"{name}\"\n[store]\nurl = \"{url}\"\npatience = \"1s\"\n\
         {WORKFLOW}"
    );
    home.write("config.toml", &config);
    home
}

fn start(home: &Home) -> Server {
    Server::start(home.greenroom(&["serve"]))
}

/// Condition of locks that only a [`Blocker`] has.
const HELD: &str = "granted AND mode IN ('ShareLock', 'AccessExclusiveLock')";

/// A session that holds a lock on a table, until it is dropped or its server stops.
struct Blocker<'d> {
    database: &'d Database,
    url: &'d str,
    table: &'static str,
    session: Child,
}

impl<'d> Blocker<'d> {
    /// Keeps others from writing executions.
    fn of_writes(database: &'d Database, url: &'d str) -> Self {
        Self::new(database, url, "executions", "SHARE")
    }

    fn new(database: &'d Database, url: &'d str, table: &'static str, mode: &str) -> Self {
        let lock = format!("BEGIN; LOCK TABLE {table} IN {mode} MODE; SELECT pg_sleep(60)");
        let session = database.psql(url, &lock).stderr(Stdio::null()).spawn().unwrap();
        let blocker = Self { database, url, table, session };
        blocker.until_there_is(HELD);
        blocker
    }

    /// Waits until another session waits.
    fn until_one_waits(&self) {
        self.until_there_is("NOT granted");
    }

    fn until_there_is(&self, condition: &str) {
        let count = format!(
            "SELECT count(*) FROM pg_locks
            WHERE relation = '{}'::regclass AND {condition}",
            self.table
        );
        let is_there = || (self.database.answer(self.url, &count).unwrap() != "0").then_some(());
        eventually(condition, is_there);
    }
}

impl Drop for Blocker<'_> {
    fn drop(&mut self) {
        let end = format!(
            "SELECT pg_terminate_backend(pid) FROM pg_locks
            WHERE relation = '{}'::regclass AND {HELD}",
            self.table
        );
        // an error: it has ended with its server
        let _ = self.database.answer(self.url, &end);
        let _ = self.session.wait();
    }
}

/// Executes a workflow while the store does not answer; the answer may come earlier than the end.
fn execute_patiently(server: &Server, id: &str) {
    let body = json!({ "input": {}, "options": { "executionId": id } });
    server.post("/workflows/asking/execute", &body);
    server.state_when("asking", id, |state| state["status"] == "suspended");
}

fn execute(server: &Server, id: &str) {
    let body = json!({ "input": {}, "options": { "executionId": id } });
    let reply = server.post("/workflows/asking/execute", &body);
    assert_eq!(reply.status, 200, "{}", reply.text());
}

#[test]
fn executions_survive_a_kill() {
    let Some(database) = Database::shared() else { return };
    let home = home(&database.fresh_url(), "a");
    let server = start(&home);
    let port = database.port();
    server.says(&format!(
        "store: PostgreSQL at 127.0.0.1:{port} (TLS off), database greenroom, user greenroom"
    ));
    execute(&server, "one");
    let status = server.get("/observability/status").data();
    assert_eq!(
        (&status["storage"], &status["storagePersistent"]),
        (&json!("postgres"), &json!(true))
    );
    server.kill();

    let server = start(&home);
    assert_eq!(server.state("asking", "one")["status"], "suspended");
    let path = "/workflows/asking/executions/one/resume";
    let reply = server.post(path, &json!({ "resumeData": 7 }));
    assert_eq!(reply.status, 200, "{}", reply.text());
    server.state_when("asking", "one", |state| state["status"] == "completed");
    let folder = std::fs::read_dir(home.path("")).unwrap();
    let names = folder.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let marks = names.filter(|name| name.starts_with("greenroom-") && name.ends_with(".crashes"));
    assert_eq!(marks.count(), 1, "the file of crash marks");
}

#[test]
fn a_second_server_does_not_start() {
    let Some(database) = Database::shared() else { return };
    let url = database.fresh_url();
    let (first, second) = (home(&url, "first"), home(&url, "second"));
    let server = start(&first);
    let refused = second.run(second.greenroom(&["serve"]));
    assert_eq!(refused.status.code(), Some(1));
    let said = String::from_utf8(refused.stderr).unwrap();
    let reason = format!(
        "greenroom: the database is in use by greenroom {} (first), which is running; stop it \
         first",
        env!("CARGO_PKG_VERSION")
    );
    assert!(said.contains(&reason), "{said}");
    execute(&server, "one");
}

#[test]
fn a_server_at_the_same_port_of_another_address_does_not_start() {
    let Some(database) = Database::shared() else { return };
    let url = database.fresh_url();
    let home = |host: &str, port: u16| {
        let home = Home::new("");
        let server = format!("[server]\nhost = \"{host}\"\nport = {port}\n");
        home.write("config.toml", &format!("{server}[store]\nurl = \"{url}\"\n{WORKFLOW}"));
        home
    };
    let first = home("127.0.0.1", 0);
    let server = start(&first);
    let second = home("127.0.0.2", server.address.port());
    let refused = second.run(second.greenroom(&["serve"]));
    assert_eq!(refused.status.code(), Some(1));
    let said = String::from_utf8(refused.stderr).unwrap();
    assert!(said.contains(&format!(":{}), which is running; stop it", server.address)), "{said}");
    execute(&server, "one");
}

#[test]
fn a_killed_server_does_not_wait_for_itself() {
    let Some(database) = Database::shared() else { return };
    let home = home(&database.fresh_url(), "a");
    let server = start(&home);
    execute(&server, "one");
    server.kill();
    let server = start(&home);
    let log: Vec<_> = server.log.lock().unwrap().try_iter().collect();
    let has = |text: &str| log.iter().any(|line| line.contains(text));
    let taken = "(a) has the name of this server and has not given the database up; this server \
                 takes over";
    assert!(has(taken), "{log:#?}");
    assert!(!has("waiting up to"), "{log:#?}");
    assert_eq!(server.state("asking", "one")["status"], "suspended");
}

#[test]
fn a_silent_server_loses_its_database() {
    let Some(database) = Database::shared() else { return };
    let url = database.fresh_url();
    let (first, second) = (home(&url, "first"), home(&url, "second"));
    let mut silent = start(&first);
    execute(&silent, "one");
    silent.signal("STOP");
    let server = start(&second);
    server.says("(first) shows no sign of life; this server takes over");
    let path = "/workflows/asking/executions/one/resume";
    assert_eq!(server.post(path, &json!({ "resumeData": 7 })).data()["status"], "completed");

    silent.signal("CONT");
    assert_eq!(silent.ended().code(), Some(75));
    silent.says(
        "(second) has taken the database over, because this server (first) did not show that it \
         was alive",
    );
    assert_eq!(server.state("asking", "one")["result"], 7);
}

#[test]
fn a_server_whose_database_was_taken_over_ends_with_a_code_of_its_own() {
    let Some(database) = Database::shared() else { return };
    let url = database.fresh_url();
    let (first, second) = (home(&url, "same"), home(&url, "same"));
    let mut old = start(&first);
    execute(&old, "one");
    let new = start(&second);
    new.says("(same) has the name of this server and has not given the database up; this server");
    assert_eq!(old.ended().code(), Some(75));
    old.says("greenroom: another server with the name of this one, greenroom ");
    assert_eq!(new.state("asking", "one")["status"], "suspended");
}

#[test]
fn an_orderly_stop_leaves_the_database_to_the_next_server() {
    let Some(database) = Database::shared() else { return };
    let url = database.fresh_url();
    let (first, second) = (home(&url, "first"), home(&url, "second"));
    let mut server = start(&first);
    execute(&server, "one");
    server.signal("TERM");
    assert!(server.ended().success());
    assert_eq!(database.answer(&url, "SELECT count(*) FROM nodes").unwrap(), "0");
    assert_eq!(start(&second).state("asking", "one")["status"], "suspended");
}

#[test]
fn a_server_is_not_ready_while_its_database_is_away() {
    let Some(database) = Database::start() else { return };
    let home = home(&database.fresh_url(), "a");
    let server = start(&home);
    let ready = |status: u16| {
        eventually("readiness", || (server.get("/readyz").status == status).then_some(()));
    };
    let writable = || counted(&server, "greenroom_store_writable");
    ready(200);
    assert_eq!(writable(), 1);
    database.stop_immediate();
    ready(503);
    assert_eq!((writable(), server.get("/livez").status), (0, 200));
    database.start_again();
    ready(200);
    assert_eq!(writable(), 1);
    execute(&server, "one");
}

#[test]
fn an_outage_is_logged_once_with_the_reason_of_each_host() {
    let Some(database) = Database::start() else { return };
    let url = database.fresh_url().replace("@", "@127.0.0.1:1,");
    let home = home(&url, "a");
    let server = Server::start(home.greenroom(&["serve", "--log", "info,greenroom=debug"]));
    let blocker = Blocker::of_writes(&database, &url);
    // a writer notices it, and so do the beats and readers
    std::thread::scope(|scope| {
        scope.spawn(|| execute_patiently(&server, "one"));
        blocker.until_one_waits();
        database.stop_immediate();
        let failures = "greenroom_journal_failures_total 1";
        let is_counted = || server.get("/metrics").text().contains(failures).then_some(());
        eventually("a failed write", is_counted);
        assert_eq!(server.get("/workflows/asking/executions/two/state").status, 503);
        database.start_again();
    });
    let mut log = Vec::new();
    eventually("the end of the outage", || {
        log.extend(server.log.lock().unwrap().try_iter());
        let is_end = |line: &String| line.contains("the database accepts writes again, after ");
        log.iter().any(is_end).then_some(())
    });
    let errors: Vec<_> = log.iter().filter(|line| line.contains("ERROR")).collect();
    let [error] = errors.as_slice() else { panic!("{log:#?}") };
    let reasons = [
        "writes wait for the database: ".to_owned(),
        "127.0.0.1:1: error connecting to server: Connection refused".to_owned(),
        // it may still be stopping
        format!("127.0.0.1:{}: ", database.port()),
    ];
    assert!(reasons.iter().all(|reason| error.contains(reason)), "{error}");
    let unread = log.iter().find(|line| line.contains("execution two cannot be loaded")).unwrap();
    let reason = error.split_once(reasons[0].as_str()).unwrap().1;
    assert!(unread.contains("DEBUG") && unread.contains(reason), "{unread}: {error}");
}

#[test]
fn a_read_that_the_database_refuses_is_in_the_log() {
    let Some(database) = Database::shared() else { return };
    let url = database.fresh_url();
    let home = home(&url, "a");
    let server = start(&home);
    // beats do not need this one: without executions, a beat could find an outage first
    database.answer(&url, "ALTER TABLE generations RENAME TO gone").unwrap();
    let refused = server.get("/observability/traces");
    assert_eq!(refused.status, 503, "{}", refused.text());
    server.says("the database refused a request: relation \"generations\" does not exist");
}

#[test]
fn a_start_that_waits_for_a_lock_says_so() {
    let Some(database) = Database::shared() else { return };
    let url = database.fresh_url();
    let home = home(&url, "a");
    start(&home).kill();
    let blocker = Blocker::new(database, &url, "meta", "ACCESS EXCLUSIVE");
    let mut starting = home.greenroom(&["serve"]).stderr(Stdio::piped()).spawn().unwrap();
    let mut log = BufReader::new(starting.stderr.take().unwrap()).lines().map_while(Result::ok);
    let is_told = |line: &String| line.contains("another session may hold a lock on its tables");
    let told = log.find(|line| is_told(line) || line.contains("greenroom listens at ")).unwrap();
    assert!(is_told(&told), "{told}");
    drop(blocker);
    assert!(log.any(|line| line.contains("greenroom listens at ")));
    starting.kill().unwrap();
    starting.wait().unwrap();
}

/// Returns the value of a series.
fn counted(server: &Server, series: &str) -> u64 {
    let metrics = server.get("/metrics").text();
    let value = metrics.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    value.unwrap_or_else(|| panic!("{series} is missing: {metrics}")).parse().unwrap()
}

#[test]
fn broken_connections_and_the_outcomes_of_their_commits_are_counted() {
    let Some(database) = Database::shared() else { return };
    let url = database.fresh_url();
    let proxy = Proxy::to(database.port());
    let home = home(&proxy.through(&url), "a");
    let server = start(&home);
    let reconnects = "greenroom_store_reconnects_total";
    let [committed, not_committed] = ["committed", "not_committed"]
        .map(|result| format!("greenroom_store_outcome_unknown_total{{result=\"{result}\"}}"));
    assert_eq!([reconnects, &committed, &not_committed].map(|it| counted(&server, it)), [0; 3]);
    let has_beaten =
        || (database.answer(&url, "SELECT beat FROM nodes").unwrap() != "0").then_some(());
    eventually("a beat", has_beaten);
    std::thread::scope(|scope| {
        let blocker = Blocker::of_writes(database, &url);
        scope.spawn(|| execute_patiently(&server, "one"));
        blocker.until_one_waits();
        proxy.cut();
        // from then on the first connection commits nothing
        let next = "SELECT max(session) > 1 FROM lanes WHERE lane >= 0";
        eventually("a session", || (database.answer(&url, next).unwrap() == "t").then_some(()));
    });
    assert_eq!([&committed, &not_committed].map(|it| counted(&server, it)), [0, 1]);
    server.says("connector::losses] lost a connection to the database: greenroom/");
    // that of a writer, and that of the beats
    eventually("the connections", || (counted(&server, reconnects) >= 2).then_some(()));
    assert_eq!(counted(&server, "greenroom_store_history_lost_total"), 0);
}

#[test]
fn a_password_comes_from_the_environment_and_is_not_logged() {
    let Some(database) = Database::start_with(Auth::Scram, &[]) else { return };
    let url = database.fresh_url();
    let home = home(&url.replace(&format!(":{PASSWORD}@"), "@"), "a");
    let refused = home.run(home.greenroom(&["serve"]));
    let said = String::from_utf8(refused.stderr).unwrap();
    assert!(said.contains("asks for a password: set `password` under [store]"), "{said}");
    let mut command = home.greenroom(&["serve", "--log", "trace"]);
    command.env("PGPASSWORD", PASSWORD);
    let server = Server::start(command);
    execute(&server, "one");
    let log = server.log.lock().unwrap();
    let lines: Vec<_> = log.try_iter().collect();
    assert!(lines.iter().any(|line| line.contains("tokio_postgres")), "the driver is logged");
    assert!(lines.iter().all(|line| !line.contains(PASSWORD)), "{lines:#?}");
}

#[test]
fn a_request_in_an_outage_takes_effect_once() {
    let Some(database) = Database::start() else { return };
    let home = Home::at(&database.fresh_url(), "");
    let server = Server::start(home.test_server());
    let body = json!({ "input": { "n": 0 }, "options": { "executionId": "c1" } }).to_string();
    let send = |wire: &mut Wire| {
        let headers = [("content-type", "application/json"), ("idempotency-key", "k")];
        wire.send("POST", "/workflows/chain/execute", &headers, Some(body.as_bytes())).unwrap();
    };
    let mut wire = Wire::open(server.address).unwrap();
    database.stop_immediate();
    send(&mut wire);
    eventually("the outage", || (server.get("/readyz").status == 503).then_some(()));
    database.start_again();
    let answer = eventually("an answer", || {
        let reply = wire.reply().unwrap();
        if reply.status == 200 {
            return Some(reply.data());
        }
        assert_eq!(reply.header("x-error-code"), Some("store_unavailable"), "{reply:?}");
        send(&mut wire);
        None
    });
    assert_eq!(answer["result"]["n"], 3);
    let ledger = home.ledger_lines();
    let begun = ledger.iter().filter(|line| !line.ends_with(" ended"));
    assert_eq!(begun.count(), 3, "{ledger:?}");
}

#[test]
fn a_wrong_clock_is_reported() {
    let Some(database) = Database::shared() else { return };
    let Some(clock) = WrongClock::find() else { return };
    let home = home(&database.fresh_url(), "late");
    let mut command = home.greenroom(&["serve"]);
    clock.set(&mut command, "-1d");
    let server = Server::start(command);
    WrongClock::remove_files(server.child.id());
    server.says("the wall clock of this server is 86400.");
    let metrics = server.get("/metrics").text();
    let line =
        metrics.lines().find_map(|line| line.strip_prefix("greenroom_clock_offset_seconds "));
    let ahead: f64 = line.expect("it is measured").parse().unwrap();
    assert!((-86_402.0..-86_398.0).contains(&ahead), "{ahead}");
}
