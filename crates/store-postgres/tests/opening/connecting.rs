//! Failures to connect.

use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::SeqCst;
use std::thread;
use std::time::Duration;

use greenroom_store_postgres::{Password, PostgresSettings};
use support::postgres::{Auth, Server};

use super::{advised, at_database, open, refused, run, settings};

#[test]
fn hosts_that_do_not_answer_are_listed() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    let url = format!("postgres://ann@127.0.0.1:1,no-such-host.invalid:7,127.0.0.1:{port}/shop");
    let error = open(settings(&format!("{url}?sslmode=disable"), "a")).unwrap_err().to_string();
    let parts = [
        "cannot connect to the database: 127.0.0.1:1: error connecting to server: Connection refused",
        "; no-such-host.invalid:7: error connecting to server: failed to lookup address",
        &format!("; 127.0.0.1:{port}: no answer within 5s; check that PostgreSQL runs there"),
    ];
    for part in parts {
        assert!(error.contains(part), "{error}\nlacks\n{part}");
    }
}

#[test]
fn passwords_are_checked_and_never_shown() {
    let Some(server) = Server::start_with(Auth::Scram, &[]) else { return };
    let right = server.fresh_url();
    let port = server.port();
    let wrong = right.replace(":not-a-secret", ":hidden");
    let error = open(settings(&wrong, "a")).unwrap_err();
    let text = error.to_string();
    let expected = format!(
        "127.0.0.1:{port} refuses the login: password authentication failed for user \
         \"greenroom\" (SQLSTATE 28P01); check the user"
    );
    assert!(text.starts_with(&expected), "{text}");
    assert!(!format!("{text} {error:?} {:?}", settings(&wrong, "a")).contains("hidden"));
    let none = right.replace(":not-a-secret", "");
    refused(
        settings(&none, "a"),
        &format!("127.0.0.1:{port} asks for a password: set `password` under [store], or"),
    );
    // that of the settings precedes that of the address
    let password = Some(Password("not-a-secret".to_owned()));
    for url in [wrong, none] {
        open(PostgresSettings { password: password.clone(), ..settings(&url, "a") }).unwrap();
    }
}

#[test]
fn roles_and_databases_must_exist() {
    let Some(server) = Server::shared() else { return };
    let port = server.port();
    refused(
        settings(&server.fresh_url().replace("greenroom@", "stranger@"), "a"),
        &format!(
            "127.0.0.1:{port} refuses the login: role \"stranger\" does not exist (SQLSTATE 28000)"
        ),
    );
    refused(
        settings(&at_database(&server.url(), "shop"), "a"),
        &format!(
            "127.0.0.1:{port} has no database shop; create it: CREATE DATABASE \"shop\" OWNER \
             \"greenroom\" ENCODING 'UTF8' LC_COLLATE 'C' LC_CTYPE 'C.UTF-8' TEMPLATE template0"
        ),
    );
}

#[test]
fn a_database_that_was_created_as_advised_can_be_used() {
    let Some(server) = Server::shared() else { return };
    let url = at_database(&server.url(), "My%20shop");
    let refusal = open(settings(&url, "a")).unwrap_err();
    server.sql(&advised(&refusal));
    drop(open(settings(&url, "a")).unwrap());
}

#[test]
fn a_role_that_may_not_connect_is_granted_it_as_advised() {
    let Some(server) = Server::shared() else { return };
    let url = server.fresh_database();
    server.sql("CREATE ROLE \"Guest\" LOGIN");
    let name = url.rsplit('/').next().unwrap();
    run(server, &url, &format!("REVOKE CONNECT ON DATABASE {name} FROM PUBLIC"));
    let guest = url.replace("greenroom@", "Guest@");
    let refusal = open(settings(&guest, "a")).unwrap_err();
    let expected = format!(
        "127.0.0.1:{} does not let Guest connect to the database {name}; let its owner run: GRANT",
        server.port()
    );
    assert!(refusal.to_string().starts_with(&expected), "{refusal}");
    server.answer(&url, &advised(&refusal)).unwrap();
    refused(settings(&guest, "a"), "the role Guest may not create the extension");
}

#[test]
fn refused_settings_lead_to_the_options_of_the_address() {
    let Some(server) = Server::shared() else { return };
    let (url, port) = (server.url(), server.port());
    for (setting, reason) in [
        ("nope%3D1", "unrecognized configuration parameter \"nope\" (SQLSTATE 42704)"),
        ("work_mem%3Dmuch", "invalid value for parameter \"work_mem\": \"much\" (SQLSTATE 22023)"),
        (
            "log_statement%3Dall",
            "permission denied to set parameter \"log_statement\" (SQLSTATE 42501)",
        ),
    ] {
        let text = format!("127.0.0.1:{port} refuses the connection: {reason}; check `options` in");
        refused(settings(&format!("{url}?options=-c%20{setting}"), "a"), &text);
    }
}

#[test]
fn a_limit_of_connections_is_waited_for_and_named() {
    let Some(server) = Server::shared() else { return };
    server.sql("CREATE ROLE crowded LOGIN CONNECTION LIMIT 0");
    let port = server.port();
    let text = format!(
        "no host has room for a connection: 127.0.0.1:{port}: too many connections for role \
         \"crowded\" (SQLSTATE 53300); raise max_connections there, or the limit of the role"
    );
    let url = server.url().replace("greenroom@", "crowded@");
    refused(settings(&url, "a"), &text);
}

#[test]
fn a_refused_login_precedes_hosts_that_do_not_answer() {
    let Some(server) = Server::shared() else { return };
    // it ends each connection at once
    let absent = TcpListener::bind("127.0.0.1:0").unwrap();
    let host = absent.local_addr().unwrap();
    let has_ended = Arc::new(AtomicBool::new(false));
    let ended = Arc::clone(&has_ended);
    let attempts =
        thread::spawn(move || absent.incoming().take_while(|_| !ended.load(SeqCst)).count());
    let url = at_database(&server.url(), "shop").replace("@", &format!("@{host},"));
    let patience = Duration::from_secs(60);
    let error = open(PostgresSettings { patience, ..settings(&url, "a") }).unwrap_err();
    assert!(error.to_string().contains("has no database shop"), "{error}");
    has_ended.store(true, SeqCst);
    drop(TcpStream::connect(host).unwrap());
    assert_eq!(attempts.join().unwrap(), 1, "it is no reason to wait and try again");
}

#[test]
fn another_host_is_used_if_the_first_does_not_answer() {
    let Some(server) = Server::shared() else { return };
    let url = server.fresh_url().replace("@", "@127.0.0.1:1,");
    let store = open(settings(&url, "a")).unwrap();
    assert_eq!(run(server, &server.url(), "SELECT 1"), "1");
    drop(store);
}

#[test]
fn a_database_that_starts_is_waited_for() {
    let Some(server) = Server::start() else { return };
    let url = server.fresh_url();
    server.stop_immediate();
    let port = TcpListener::bind(("127.0.0.1", server.port())).unwrap();
    let patience = Duration::from_secs(60);
    let waiting = settings(&url, "a");
    let opening = thread::spawn(move || open(PostgresSettings { patience, ..waiting }).map(drop));
    // the first attempts fail: one meets a connection that ends at once
    drop(port.accept().unwrap());
    drop(port);
    server.start_again();
    opening.join().unwrap().unwrap();
}
