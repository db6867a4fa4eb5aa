//! The servers that tests get.

use std::io::{BufRead as _, BufReader};

use super::*;
use crate::eventually;
use crate::proxy::Proxy;

/// Environment variable of this test binary, started again to be killed.
const HOLDER: &str = "GREENROOM_TEST_HOLDS_POSTGRES";

#[test]
fn schemas_of_tests_are_apart() {
    let Some(server) = Server::shared() else { return };
    let (one, two) = (server.fresh_url(), fresh_url().unwrap());
    for url in [&one, &two] {
        let made = "CREATE TABLE t (n int, x text); INSERT INTO t VALUES (1, 'ä'), (2, NULL)";
        server.answer(url, made).unwrap();
        // what the store needs of its database
        let index = "CREATE INDEX ON t USING gin (n, x gin_trgm_ops)";
        server.answer(url, index).unwrap();
        assert_eq!(server.answer(url, "SELECT * FROM t ORDER BY n").unwrap(), "1|ä\n2|");
        assert_eq!(server.answer(url, "SELECT show_trgm('ä') <> '{}'").unwrap(), "t");
    }
    server.answer(&one, "DROP TABLE t").unwrap();
    assert_eq!(server.answer(&two, "SELECT count(*) FROM t").unwrap(), "2");
}

#[test]
fn a_database_of_a_test_belongs_to_its_role() {
    let Some(server) = Server::shared() else { return };
    for url in [server.url(), server.fresh_database()] {
        let extension = "CREATE EXTENSION IF NOT EXISTS pg_trgm; CREATE SCHEMA mine";
        server.answer(&url, extension).unwrap();
        let refused = server.answer(&url, "SELECT pg_read_file('PG_VERSION')").unwrap_err();
        assert!(refused.contains("permission denied"), "{refused}");
    }
    let extensions = "SELECT count(*) FROM pg_extension WHERE extname <> 'plpgsql'";
    assert_eq!(server.answer(&server.fresh_database(), extensions).unwrap(), "0");
    assert_eq!(server.sql(extensions), "2");
}

#[test]
fn a_server_keeps_what_was_committed_over_an_outage() {
    let Some(server) = Server::start_with(Auth::Trust, &[("max_connections", "20")]) else {
        return;
    };
    assert_eq!(server.sql("SHOW max_connections"), "20", "a setting of the test");
    let url = server.fresh_url();
    server.answer(&url, "CREATE TABLE t (n int); INSERT INTO t VALUES (7)").unwrap();
    let mut open = server.psql(&url, "BEGIN; INSERT INTO t VALUES (8); SELECT pg_sleep(60)");
    let open = open.stderr(Stdio::piped()).spawn().unwrap();
    let sleeps = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'";
    eventually("the open transaction", || (server.sql(sleeps) == "1").then_some(()));

    server.stop_immediate();
    let complaint = String::from_utf8(open.wait_with_output().unwrap().stderr).unwrap();
    assert!(complaint.contains("server closed the connection"), "{complaint}");
    let refused = server.answer(&url, "SELECT 1").unwrap_err();
    assert!(refused.contains("Connection refused"), "{refused}");

    server.start_again();
    assert_eq!(server.answer(&url, "SELECT n FROM t").unwrap(), "7");
}

#[test]
fn a_password_can_be_demanded() {
    let Some(server) = Server::start_with(Auth::Scram, &[]) else { return };
    let url = server.fresh_url();
    assert_eq!(server.answer(&url, "SELECT current_user").unwrap(), ROLE);
    let refused = server.answer(&url.replace(PASSWORD, "wrong"), "SELECT 1").unwrap_err();
    assert!(refused.contains("password authentication failed"), "{refused}");
}

#[test]
fn a_query_breaks_with_its_connection() {
    let Some(server) = Server::start() else { return };
    let proxy = Proxy::to(server.port());
    let url = proxy.through(&server.fresh_url());
    assert_eq!(server.answer(&url, "SELECT 1").unwrap(), "1");
    let query = server.psql(&url, "SELECT pg_sleep(60)").stderr(Stdio::piped()).spawn().unwrap();
    let sleeps = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'";
    eventually("the query", || (server.sql(sleeps) == "1").then_some(()));
    proxy.cut();
    let output = query.wait_with_output().unwrap();
    assert!(!output.status.success(), "{output:?}");
}

#[test]
fn a_dropped_server_leaves_nothing() {
    let Some(server) = Server::start() else { return };
    let (port, folder) = (server.port(), server.path(""));
    assert!(folder.exists());
    drop(server);
    assert!(!folder.exists());
    assert!(std::net::TcpStream::connect(("127.0.0.1", port)).is_err());
}

/// Holds a server until it is killed, where it is started again for that.
#[test]
fn a_holder_is_killed() {
    if std::env::var_os(HOLDER).is_none() {
        return;
    }
    let server = Server::start().unwrap();
    println!("\nholds {} {}", server.port(), server.path("").display());
    loop {
        std::thread::park();
    }
}

#[test]
fn a_killed_process_leaves_no_server() {
    if Installed::find().is_err() {
        // reported by the other tests
        return;
    }
    let mut holder = Command::new(std::env::current_exe().unwrap());
    holder.args(["--exact", "postgres::tests::a_holder_is_killed", "--nocapture"]);
    let mut holder = holder.env(HOLDER, "1").stdout(Stdio::piped()).spawn().unwrap();
    let said = BufReader::new(holder.stdout.take().unwrap()).lines().map_while(Result::ok);
    let held = said.filter_map(|line| line.strip_prefix("holds ").map(str::to_owned)).next();
    let held = held.expect("the holder has started its server");
    let (port, folder) = held.split_once(' ').unwrap();
    let (port, folder) = (port.parse::<u16>().unwrap(), Path::new(folder));
    assert!(std::net::TcpStream::connect(("127.0.0.1", port)).is_ok());
    assert!(folder.exists());

    holder.kill().unwrap();
    holder.wait().unwrap();
    eventually("the end of its server", || {
        let is_down = std::net::TcpStream::connect(("127.0.0.1", port)).is_err();
        (is_down && !folder.exists()).then_some(())
    });
}
