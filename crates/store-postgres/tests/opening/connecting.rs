//! Failures to connect.

use std::net::TcpListener;
use std::thread;
use std::time::{Duration, Instant};

use greenroom_store_postgres::{Password, PostgresSettings};
use support::postgres::{Auth, Server};

use super::{at_database, open, refused, run, settings};

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
            "127.0.0.1:{port} has no database shop; create it: CREATE DATABASE shop OWNER \
             greenroom ENCODING 'UTF8' TEMPLATE template0"
        ),
    );
}

#[test]
fn a_refused_login_precedes_hosts_that_do_not_answer() {
    let Some(server) = Server::shared() else { return };
    let url = at_database(&server.url(), "shop").replace("@", "@127.0.0.1:1,");
    let begun = Instant::now();
    let patience = Duration::from_secs(60);
    let error = open(PostgresSettings { patience, ..settings(&url, "a") }).unwrap_err();
    assert!(error.to_string().contains("has no database shop"), "{error}");
    assert!(begun.elapsed() < Duration::from_secs(20), "it is no reason to wait");
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
