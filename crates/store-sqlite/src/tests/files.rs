//! Files that are locked, damaged, foreign or incomplete.

use std::time::Instant;

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

/// A change to the files of a store that is open, and how it is undone.
struct Displacement {
    name: &'static str,
    displace: fn(&Path),
    /// `None` where it cannot be undone.
    put_back: Option<fn(&Path)>,
    /// True if the file has all that was acknowledged, once the store is closed.
    is_kept: bool,
}

fn aside(path: &Path) -> PathBuf {
    crate::beside(path, ".aside")
}

fn log_of(path: &Path) -> PathBuf {
    crate::beside(path, "-wal")
}

const DISPLACEMENTS: [Displacement; 6] = [
    Displacement {
        name: "a removed database",
        displace: |path| fs::remove_file(path).unwrap(),
        put_back: None,
        is_kept: false,
    },
    Displacement {
        name: "a removed folder",
        displace: |path| fs::remove_dir_all(path.parent().unwrap()).unwrap(),
        put_back: None,
        is_kept: false,
    },
    Displacement {
        name: "a removed log",
        displace: |path| fs::remove_file(log_of(path)).unwrap(),
        put_back: None,
        is_kept: true,
    },
    Displacement {
        name: "a renamed database",
        displace: |path| fs::rename(path, aside(path)).unwrap(),
        put_back: Some(|path| fs::rename(aside(path), path).unwrap()),
        is_kept: true,
    },
    Displacement {
        name: "a replaced database",
        displace: |path| {
            fs::rename(path, aside(path)).unwrap();
            fs::copy(aside(path), path).unwrap();
        },
        put_back: Some(|path| fs::rename(aside(path), path).unwrap()),
        is_kept: true,
    },
    Displacement {
        name: "a link to the database, which was moved",
        displace: |path| {
            fs::rename(path, aside(path)).unwrap();
            std::os::unix::fs::symlink(aside(path), path).unwrap();
        },
        put_back: Some(|path| fs::rename(aside(path), path).unwrap()),
        is_kept: true,
    },
];

#[tokio::test]
async fn nothing_is_acknowledged_that_files_out_of_place_would_lose() {
    for Displacement { name, displace, put_back, is_kept } in DISPLACEMENTS {
        for is_idle in [false, true] {
            let parent = tempfile::tempdir().unwrap();
            let folder = parent.path().join("data");
            fs::create_dir(&folder).unwrap();
            let path = folder.join("greenroom.db");
            let store = open(&path);
            let mut bench = Bench::new(store.clone());
            let mut taken = vec![bench.creation("before")];
            bench.take(&taken[0]).await;

            displace(&path);
            let there = fs::read(&path).ok();
            let deadline = Instant::now() + Duration::from_secs(60);
            while is_idle && store.is_writable() {
                assert!(Instant::now() < deadline, "{name}: it is not noticed");
                std::thread::yield_now();
            }
            let refused = bench.creation("refused");
            for _ in 0..3 {
                let refusal = bench.append(&refused).await.expect_err(name).to_string();
                assert!(refusal.contains("while it is open"), "{name}: {refusal}");
                assert!(!store.is_writable(), "{name}");
            }
            if name == "a removed log" {
                assert!(!log_of(&path).exists(), "{name}: it is not made anew");
            } else if !path.is_symlink() {
                assert!(fs::read(&path).ok() == there, "{name}: nothing is made or changed there");
            }

            if let Some(put_back) = put_back {
                put_back(&path);
                taken.push(append_until_taken(&mut bench, &refused).await);
                displace(&path);
                let later = bench.creation("later");
                bench.append(&later).await.expect_err(name);
                put_back(&path);
            }
            drop((bench, store));
            if is_kept {
                assert_has(&*open(&path), &taken).await;
            } else {
                assert!(!path.exists(), "{name}");
            }
        }
    }
}

#[tokio::test]
async fn another_file_in_place_of_the_store_is_not_read() {
    let directory = tempfile::tempdir().unwrap();
    let path = database(&directory);
    let store = open(&path);
    fs::rename(&path, aside(&path)).unwrap();
    fs::copy(aside(&path), &path).unwrap();
    let read = store.describe(&ExecutionId::trusted("a")).await;
    assert!(read.unwrap_err().to_string().contains("while it is open"));
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_look_tells_files_out_of_place() {
    let databases = DISPLACEMENTS.into_iter().filter(|it| it.name.ends_with("database"));
    for Displacement { name, displace, put_back, .. } in databases {
        let directory = tempfile::tempdir().unwrap();
        let path = database(&directory);
        let store = open(&path);
        assert!(!crate::look(&path).unwrap().is_displaced, "{name}: before");
        displace(&path);
        assert!(crate::look(&path).unwrap().is_displaced, "{name}");
        if let Some(put_back) = put_back {
            put_back(&path);
            assert!(!crate::look(&path).unwrap().is_displaced, "{name}: after");
        }
        drop(store);
    }
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_removed_store_is_rescued_from_its_server() {
    let directory = tempfile::tempdir().unwrap();
    let path = database(&directory);
    let store = open(&path);
    let mut bench = Bench::new(store.clone());
    let taken = bench.creation("taken");
    bench.take(&taken).await;
    let read = store.describe(&taken.header.id).await;
    assert!(read.unwrap().is_some(), "a reader has the files open");
    fs::remove_file(&path).unwrap();
    let refused = bench.creation("refused");
    bench.append(&refused).await.expect_err("it is refused");

    let name = format!("{} (deleted)", path.display());
    let mut open_files = fs::read_dir("/proc/self/fd").unwrap().map(|file| file.unwrap().path());
    let left = open_files.find(|file| fs::read_link(file).is_ok_and(|it| *it == *name)).unwrap();
    let rescued = directory.path().join("rescued.db");
    while fs::metadata(log_of(&path)).is_ok_and(|log| log.len() > 0) {
        std::thread::yield_now();
    }
    fs::copy(left, &rescued).unwrap();
    drop((bench, store));
    crate::restore(&rescued, &path, true).unwrap();
    assert_has(&*open(&path), &[taken]).await;
}
