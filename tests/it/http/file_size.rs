//! A limit on the size of files, as set by `ulimit -f`, acts like a full disk.

use rustix::process::{Pid, Resource, Rlimit, prlimit};
use serde_json::json;

use super::site::Site;
use crate::program::Programs;
use support::eventually;
use support::server::Server;
use support::store::Store;

/// More executions, with inputs of some kilobytes, than the limit has room for.
const EXECUTIONS_MAX: usize = 1000;

fn limit(server: &Server, bytes: Option<u64>) {
    let pid = Pid::from_child(&server.child);
    prlimit(Some(pid), Resource::Fsize, Rlimit { current: bytes, maximum: None }).unwrap();
}

fn execute(server: &Server) -> u16 {
    let body = json!({ "input": { "n": 1, "text": "x".repeat(5000) } });
    server.post("/workflows/add/execute", &body).status
}

#[test]
fn at_the_file_size_limit_writes_are_refused_until_there_is_room() {
    let site = Site::on(Store::Sqlite, "");
    let log = std::fs::metadata(site.home.path("store.db-wal")).unwrap().len();
    limit(&site, Some(log + 100_000));
    let refused = (0..EXECUTIONS_MAX).map(|_| execute(&site)).find(|status| *status != 200);
    assert_eq!(refused, Some(503));
    let ready = site.get("/readyz");
    let why = "not ready\nthe store accepts no writes: check the database or the disk; the cause \
               is in the log\n";
    assert_eq!((ready.status, ready.text().as_str()), (503, why));
    limit(&site, None);
    eventually("room for the store", || (site.get("/readyz").status == 200).then_some(()));
    assert_eq!(execute(&site), 200);
}

#[test]
fn a_start_and_a_backup_without_room_report_the_reason() {
    let Site { home, mut server } = Site::on(Store::Sqlite, "");
    server.signal("TERM");
    assert!(server.ended().success());
    let rows = [
        ("serve", 8, "cannot open the store store.db: "),
        ("backup copy.db", 150, "cannot write copy.db: "),
    ];
    for (command, blocks, expected) in rows {
        let mut program = std::process::Command::new("sh");
        let greenroom = env!("CARGO_BIN_EXE_greenroom");
        let line = format!("ulimit -f {blocks}; exec {greenroom} {command}");
        program.args(["-c", &line]).current_dir(home.path(""));
        let output = home.run(program);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{command}: {said}");
        let told = said.lines().find(|line| line.starts_with("greenroom: ")).unwrap_or_default();
        assert!(told.contains(expected), "{command}: {said}");
    }
}
