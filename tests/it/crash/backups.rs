//! Copies made while the server works, and restores from them.

use std::path::Path;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use serde_json::json;

use crate::program::Programs as _;
use support::eventually;
use support::server::{Home, Server};
use support::store::Store;

const CALLERS: usize = 4;

fn back_up(home: &Home, target: &Path) -> Output {
    home.greenroom(&["backup"]).arg(target).output().unwrap()
}

/// Stops the callers however a test ends.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

fn said(output: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

#[test]
fn a_backup_under_load_has_all_acknowledged_work() {
    let (home, restored) = (Home::on(Store::Sqlite, ""), Home::on(Store::Sqlite, ""));
    let server = Server::start(home.test_server());
    let answered: [AtomicUsize; CALLERS] = Default::default();
    let is_over = AtomicBool::new(false);
    let call = |caller: usize| {
        let mut n = 0;
        while !is_over.load(Ordering::SeqCst) {
            for workflow in ["chain", "approval"] {
                let id = format!("{workflow}-{caller}-{n}");
                let body = json!({ "input": { "n": 0 }, "options": { "executionId": id } });
                server.post(&format!("/workflows/{workflow}/execute"), &body).data();
            }
            n += 1;
            answered[caller].store(n, Ordering::SeqCst);
        }
    };
    let before: Vec<usize> = std::thread::scope(|scope| {
        let over = Over(&is_over);
        let call = &call;
        (0..CALLERS).for_each(|caller| drop(scope.spawn(move || call(caller))));
        eventually("some executions of every caller", || {
            answered.iter().all(|it| it.load(Ordering::SeqCst) >= 5).then_some(())
        });
        let before = answered.iter().map(|it| it.load(Ordering::SeqCst)).collect();
        let output = back_up(&home, &restored.path("store.db"));
        drop(over);
        assert!(output.status.success(), "{}", said(&output));
        assert!(said(&output).contains("store.db: ok, "), "{}", said(&output));
        before
    });
    let again = back_up(&home, &restored.path("store.db"));
    assert_eq!(again.status.code(), Some(1));
    assert!(said(&again).contains("a backup does not overwrite files"), "{}", said(&again));
    server.kill();

    let connection = rusqlite::Connection::open(restored.path("store.db")).unwrap();
    let check = "PRAGMA integrity_check";
    let verdict: String = connection.query_row(check, [], |row| row.get(0)).unwrap();
    assert_eq!(verdict, "ok");
    drop(connection);
    let server = Server::start(restored.test_server());
    for (caller, count) in before.into_iter().enumerate() {
        for n in 0..count {
            let chain = server.state("chain", &format!("chain-{caller}-{n}"));
            assert_eq!(chain["status"], "completed", "{caller} {n}");
            let id = format!("approval-{caller}-{n}");
            assert_eq!(server.state("approval", &id)["status"], "suspended", "{id}");
        }
        let path = format!("/workflows/approval/executions/approval-{caller}-0/resume");
        let data = server.post(&path, &json!({ "resumeData": { "approved": true } })).data();
        assert_eq!(data["status"], "completed", "caller {caller}");
    }
}

#[test]
fn a_backup_that_fails_says_why() {
    let home = Home::on(Store::Sqlite, "");
    let target = home.path("copy.db");
    for (config, target, says) in [
        ("", target.clone(), "there is no store at store.db"),
        ("store.url = \"memory:\"\n", target.clone(), "\"memory:\", which cannot be backed up"),
        ("store.url = \"sqlite://config.toml\"\n", target.clone(), "is not a SQLite database"),
        ("store.url = \"sqlite://config.toml\"\n", home.path("config.toml"), "exists"),
        ("store.url = \"sqlite://config.toml\"\n", home.path("no/copy.db"), "no does not exist"),
        ("store.urk = 1\n", target, "unknown key"),
    ] {
        let base = if config.is_empty() { "store.url = \"sqlite://store.db\"\n" } else { config };
        home.write("config.toml", base);
        let output = back_up(&home, &target);
        assert_eq!(output.status.code(), Some(1), "{config}: {}", said(&output));
        assert!(output.stdout.is_empty(), "{config}: {}", said(&output));
        assert!(said(&output).contains(says), "{config}: {}", said(&output));
        assert!(!home.path("copy.db").exists(), "{config}");
    }
    let output = Command::new(env!("CARGO_BIN_EXE_greenroom")).arg("backup").output().unwrap();
    assert_eq!(output.status.code(), Some(2), "no file: {}", said(&output));
}
