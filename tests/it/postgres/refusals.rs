//! Databases that the server refuses to use: it says what to do, repeats no password and leaves them
//! unchanged.

use support::postgres::{Auth, PASSWORD, Server as Database};
use support::server::{Home, Server};

use crate::program::Programs as _;

/// Starts a server that has to refuse; returns its stderr.
fn refusal_of(home: &Home, password: Option<&str>) -> String {
    let mut command = home.greenroom(&[]);
    command.env_remove("PGPASSWORD").envs(password.map(|password| ("PGPASSWORD", password)));
    let output = home.run(command);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    stderr
}

#[test]
fn refusals_of_databases_say_what_to_do() {
    let Some(database) = Database::start_with(Auth::Scram, &[]) else { return };
    let [empty, foreign, newer] = [(); 3].map(|()| database.fresh_database());
    database.answer(&foreign, "CREATE TABLE diary (text text)").unwrap();
    drop(Server::start(Home::at(&newer, "").greenroom(&[])));
    database.answer(&newer, "UPDATE meta SET schema = 99, schema_min = 99").unwrap();

    let wrong = "wrong-secret";
    let with = |url: &str, password: &str| url.replace(&format!(":{PASSWORD}@"), password);
    let bare = |url: &str| with(url, "@");
    let rows = [
        (bare(&empty), Some(wrong), "refuses the login: password authentication failed"),
        (with(&empty, &format!(":{wrong}@")), None, "refuses the login: password authentication"),
        (bare(&empty), None, "asks for a password: set `password` under [store]"),
        (
            bare(&empty).replace("greenroom@", "stranger@"),
            Some(PASSWORD),
            "check the user in the address, its password",
        ),
        (
            format!("{}x", bare(&empty)),
            Some(PASSWORD),
            "create it: CREATE DATABASE \"fresh_0x\" OWNER",
        ),
        (
            bare(&foreign),
            Some(PASSWORD),
            "has what another program put there (diary), and is left alone",
        ),
        (bare(&newer), Some(PASSWORD), "was written by a newer version: its schema is 99"),
    ];
    for (url, password, expected) in rows {
        let said = refusal_of(&Home::at(&url, ""), password);
        let line = said.lines().find(|line| line.starts_with("greenroom: ")).unwrap_or_default();
        assert!(line.contains(expected), "{url}: {said}");
        let is_shown = |secret: &&str| said.contains(*secret);
        assert_eq!([wrong, PASSWORD].iter().find(|it| is_shown(it)), None, "{url}: {said}");
    }
    let tables = "SELECT string_agg(tablename, ',') FROM pg_tables WHERE schemaname = 'public'";
    assert_eq!(database.answer(&foreign, tables).as_deref(), Ok("diary"));
    assert_eq!(database.answer(&newer, "SELECT schema FROM meta").as_deref(), Ok("99"));
}
