//! Files that are locked, damaged, foreign or half made.

use super::*;

#[tokio::test]
async fn a_second_process_is_kept_out_and_the_lock_is_given_back() {
    let directory = tempfile::tempdir().unwrap();
    let path = database(&directory);
    let first = open(&path);
    let second = SqliteStore::open(&path, Durability::Full).unwrap_err();
    assert!(matches!(second, OpenError::InUse { .. }), "{second:?}");
    assert!(second.to_string().contains("greenroom.db.lock"), "{second}");
    drop(first);
    SqliteStore::open(&path, Durability::Full).unwrap();
}

#[tokio::test]
async fn another_name_of_the_file_is_no_way_around_the_lock() {
    let directory = tempfile::tempdir().unwrap();
    let path = database(&directory);
    let link = directory.path().join("link.db");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    let dangling = SqliteStore::open(&link, Durability::Full).unwrap_err();
    assert!(dangling.to_string().contains("the link cannot be followed"), "{dangling}");
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

/// A way in which a store's file can be wrong.
struct Case {
    name: &'static str,
    spoil: fn(&Path),
    says: &'static str,
}

fn rewrite(path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = fs::read(path).unwrap();
    change(&mut bytes);
    fs::write(path, bytes).unwrap();
}

fn execute(path: &Path, sql: &str) {
    Connection::open(path).unwrap().execute_batch(sql).unwrap();
}

const SPOILT: [Case; 12] = [
    Case {
        name: "a text",
        spoil: |path| fs::write(path, "hello ".repeat(1000)).unwrap(),
        says: "not a SQLite database",
    },
    Case {
        name: "a few bytes",
        spoil: |path| fs::write(path, "SQLite").unwrap(),
        says: "not a SQLite database",
    },
    Case {
        name: "a zeroed header",
        spoil: |path| rewrite(path, |bytes| bytes[..100].fill(0)),
        says: "not a SQLite database",
    },
    Case {
        name: "a truncated file",
        spoil: |path| rewrite(path, |bytes| bytes.truncate(bytes.len() / 2)),
        says: "damaged: it is shorter than it says",
    },
    Case {
        name: "a file cut inside its last page",
        spoil: |path| rewrite(path, |bytes| bytes.truncate(bytes.len() - 1)),
        says: "damaged: it is shorter than it says",
    },
    Case {
        name: "a garbled schema",
        spoil: |path| rewrite(path, |bytes| bytes[100..4096].fill(0x5a)),
        says: "damaged",
    },
    Case {
        name: "a garbled table",
        spoil: |path| rewrite(path, |bytes| bytes[4096..4200].fill(0xff)),
        says: "damaged",
    },
    Case {
        name: "a missing table",
        spoil: |path| execute(path, "DROP TABLE chunks"),
        says: "damaged",
    },
    Case {
        name: "a newer schema",
        spoil: |path| execute(path, "PRAGMA user_version = 1000"),
        says: "newer greenroom (schema 1000, this one knows 6)",
    },
    Case {
        name: "a database of another program",
        spoil: |path| execute(path, "PRAGMA application_id = 7"),
        says: "another program (application id 7)",
    },
    Case {
        name: "a database of nobody in particular",
        spoil: |path| {
            fs::remove_file(path).unwrap();
            execute(path, "CREATE TABLE notes (text TEXT)");
        },
        says: "another program (application id 0)",
    },
    Case {
        name: "a log without its database",
        spoil: |path| {
            fs::remove_file(path).unwrap();
            fs::write(path.with_extension("db-wal"), [0_u8; 64]).unwrap();
        },
        says: "no database",
    },
];

#[tokio::test]
async fn files_that_cannot_be_used_are_refused_and_left_alone() {
    for Case { name, spoil, says } in SPOILT {
        let directory = tempfile::tempdir().unwrap();
        let path = database(&directory);
        filled(&path).await;
        spoil(&path);
        let before = fs::read(&path).ok();
        let refusal = SqliteStore::open(&path, Durability::Full).expect_err(name).to_string();
        assert!(refusal.contains(says), "{name}: {refusal}");
        assert!(refusal.contains("greenroom.db"), "{name}: {refusal}");
        assert_eq!(fs::read(&path).ok(), before, "{name}: the file was changed");
    }
}

#[test]
fn a_directory_that_is_missing_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("no/such/greenroom.db");
    let refusal = SqliteStore::open(&path, Durability::Full).unwrap_err();
    assert!(refusal.to_string().contains("no/such does not exist"), "{refusal}");
    let refusal = SqliteStore::open(directory.path(), Durability::Full).unwrap_err();
    assert!(refusal.to_string().contains("it is a directory"), "{refusal}");
}

#[tokio::test]
async fn a_first_start_that_was_cut_off_is_made_up_for() {
    let directory = tempfile::tempdir().unwrap();
    let path = database(&directory);
    drop(schema::open_writer(&path, Durability::Full).unwrap());
    filled(&path).await;
}

#[tokio::test]
async fn rows_that_cannot_be_understood_are_errors() {
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
    assert_eq!(store.timers_due(Timestamp(5), 10).await, Ok(Vec::new()));
    assert!(store.definition("h").await.is_err());
    assert!(store.is_writable(), "reading says nothing of writing");
}
