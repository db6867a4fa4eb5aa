//! Files that are locked, damaged, foreign or incomplete.

use super::*;

#[tokio::test]
async fn the_file_is_locked_until_the_store_is_dropped() {
    let directory = tempfile::tempdir().unwrap();
    let path = database(&directory);
    let first = open(&path);
    let second = SqliteStore::open(&path, Durability::Full).unwrap_err();
    assert!(matches!(second, OpenError::InUse { .. }), "{second:?}");
    assert!(second.to_string().contains("greenroom.db.lock"), "{second}");
    drop(first);
    SqliteStore::open(&path, Durability::Full).unwrap();
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_removed_lock_file_lets_no_other_in() {
    let directory = tempfile::tempdir().unwrap();
    let path = database(&directory);
    let backup = directory.path().join("backup.db");
    for start in ["of a new store", "of a store that is there"] {
        let first = open(&path);
        if start == "of a new store" {
            crate::back_up(&path, &backup).unwrap();
        }
        fs::remove_file(crate::beside(&path, ".lock")).unwrap();
        let second = SqliteStore::open(&path, Durability::Full).unwrap_err();
        assert!(matches!(second, OpenError::InUseUnlocked { .. }), "{start}: {second:?}");
        let restored = crate::restore(&backup, &path, true).unwrap_err().to_string();
        assert!(restored.contains("whose lock"), "{start}: {restored}");
        assert!(crate::look(&path).unwrap().is_in_use, "{start}");
        drop(first);
        assert!(!crate::look(&path).unwrap().is_in_use, "{start}");
    }
}

#[tokio::test]
async fn links_do_not_bypass_the_lock() {
    let directory = tempfile::tempdir().unwrap();
    let path = database(&directory);
    let link = directory.path().join("link.db");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    let dangling = SqliteStore::open(&link, Durability::Full).unwrap_err();
    assert!(dangling.to_string().contains("cannot follow the link"), "{dangling}");
    let first = open(&path);
    let second = SqliteStore::open(&link, Durability::Full).unwrap_err();
    assert!(matches!(second, OpenError::InUse { .. }), "{second:?}");
    drop(first);
    drop(open(&link));
    let hard = directory.path().join("hard.db");
    fs::hard_link(&path, &hard).unwrap();
    for path in [&path, &hard] {
        let refused = SqliteStore::open(path, Durability::Full).unwrap_err();
        assert!(matches!(refused, OpenError::Linked { names: 2, .. }), "{refused:?}");
    }
    fs::remove_file(&hard).unwrap();
    drop(open(&path));
}

/// Damage of a store's file, and the expected error.
struct Case {
    name: &'static str,
    damage: fn(&Path),
    error: &'static str,
}

fn rewrite(path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = fs::read(path).unwrap();
    change(&mut bytes);
    fs::write(path, bytes).unwrap();
}

fn execute(path: &Path, sql: &str) {
    Connection::open(path).unwrap().execute_batch(sql).unwrap();
}

const CASES: [Case; 12] = [
    Case {
        name: "a text",
        damage: |path| fs::write(path, "hello ".repeat(1000)).unwrap(),
        error: "not a SQLite database",
    },
    Case {
        name: "a few bytes",
        damage: |path| fs::write(path, "SQLite").unwrap(),
        error: "not a SQLite database",
    },
    Case {
        name: "a zeroed header",
        damage: |path| rewrite(path, |bytes| bytes[..100].fill(0)),
        error: "not a SQLite database",
    },
    Case {
        name: "a truncated file",
        damage: |path| rewrite(path, |bytes| bytes.truncate(bytes.len() / 2)),
        error: "damaged: it is shorter than its header says",
    },
    Case {
        name: "a file cut inside its last page",
        damage: |path| rewrite(path, |bytes| bytes.truncate(bytes.len() - 1)),
        error: "damaged: it is shorter than its header says",
    },
    Case {
        name: "a garbled schema",
        damage: |path| rewrite(path, |bytes| bytes[100..4096].fill(0x5a)),
        error: "damaged",
    },
    Case {
        name: "a garbled table",
        damage: |path| rewrite(path, |bytes| bytes[4096..4200].fill(0xff)),
        error: "damaged",
    },
    Case {
        name: "a missing table",
        damage: |path| execute(path, "DROP TABLE chunks"),
        error: "damaged",
    },
    Case {
        name: "a newer schema",
        damage: |path| execute(path, "PRAGMA user_version = 1000"),
        error: "newer greenroom (schema 1000, this one knows 11)",
    },
    Case {
        name: "a database of another program",
        damage: |path| execute(path, "PRAGMA application_id = 7"),
        error: "another program (application id 7)",
    },
    Case {
        name: "a database without an application id",
        damage: |path| {
            fs::remove_file(path).unwrap();
            execute(path, "CREATE TABLE notes (text TEXT)");
        },
        error: "another program (application id 0)",
    },
    Case {
        name: "a log without its database",
        damage: |path| {
            fs::remove_file(path).unwrap();
            fs::write(path.with_extension("db-wal"), [0_u8; 64]).unwrap();
        },
        error: "no database",
    },
];

#[tokio::test]
async fn unusable_files_are_rejected_and_left_unchanged() {
    for Case { name, damage, error } in CASES {
        let directory = tempfile::tempdir().unwrap();
        let path = database(&directory);
        filled(&path).await;
        damage(&path);
        let before = fs::read(&path).ok();
        let refusal = SqliteStore::open(&path, Durability::Full).expect_err(name).to_string();
        assert!(refusal.contains(error), "{name}: {refusal}");
        assert!(refusal.contains("greenroom.db"), "{name}: {refusal}");
        assert_eq!(fs::read(&path).ok(), before, "{name}: the file was changed");
    }
}

#[test]
fn the_error_names_a_missing_directory() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("no/such/greenroom.db");
    let refusal = SqliteStore::open(&path, Durability::Full).unwrap_err();
    assert!(refusal.to_string().contains("no/such does not exist"), "{refusal}");
    let refusal = SqliteStore::open(directory.path(), Durability::Full).unwrap_err();
    assert!(refusal.to_string().contains("it is a directory"), "{refusal}");
}

#[tokio::test]
async fn a_start_after_an_interrupted_first_start_succeeds() {
    let directory = tempfile::tempdir().unwrap();
    let path = database(&directory);
    drop(schema::open_writer(&path, Durability::Full).unwrap());
    filled(&path).await;
}

#[tokio::test]
async fn damaged_rows_are_errors() {
    let directory = tempfile::tempdir().unwrap();
    let path = database(&directory);
    filled(&path).await;
    for sql in [
        "UPDATE executions SET events = x'5b7b' WHERE id = 'a'",
        "UPDATE executions SET status = 77 WHERE id = 'b'",
        "UPDATE executions SET last_seq = -1 WHERE id = 'c'",
        "INSERT INTO timers VALUES ('a', 'what', 1)",
        "INSERT INTO definitions VALUES ('h', x'00')",
    ] {
        Connection::open(&path).unwrap().execute_batch(sql).unwrap();
    }
    let store = open(&path);
    for id in ["a", "b", "c"].map(ExecutionId::trusted) {
        assert!(store.load(&id).await.is_err(), "{id}");
    }
    assert!(store.facts(&ExecutionId::trusted("a"), 0, 10).await.is_err());
    assert_eq!(store.timers_due(&SlotSet::all(), Timestamp(5), 10).await, Ok(Vec::new()));
    assert!(store.definition("h").await.is_err());
    assert!(store.is_writable(), "failed reads do not affect writes");
}

#[tokio::test]
async fn a_look_leaves_no_files() {
    let directory = tempfile::tempdir().unwrap();
    // names that mean something in an address
    let folder = directory.path().join("a b?immutable=0#%41é");
    fs::create_dir(&folder).unwrap();
    let path = folder.join("greenroom.db");
    filled(&path).await;
    let names = || {
        let entries = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name());
        entries.collect::<std::collections::BTreeSet<_>>()
    };
    let before = names();
    let looked = crate::look(&path).unwrap();
    assert_eq!((looked.version, looked.is_in_use), (Some(schema::VERSION), false));
    assert_eq!(names(), before);

    let store = open(&path);
    let before = names();
    assert!(crate::look(&path).unwrap().is_in_use);
    assert_eq!(names(), before);
    drop(store);
}

#[tokio::test]
async fn a_look_reads_the_log_of_a_killed_server() {
    let (directory, killed) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (path, left) = (database(&directory), database(&killed));
    let store = open(&path);
    execute(&path, "PRAGMA user_version = 1000");
    fs::copy(&path, &left).unwrap();
    fs::copy(beside(&path, "-wal"), beside(&left, "-wal")).unwrap();
    assert!(matches!(crate::look(&left), Err(OpenError::Newer { found: 1000, .. })));
    drop(store);
}
