//! Restores over stores of every state.

use std::sync::Arc;

use greenroom_actors::ports::conformance::{Bench, Draft};

use super::super::tests::{assert_has, database, filled, open};
use super::*;

/// A backup of an empty store.
fn empty_backup(folder: &Path) -> PathBuf {
    let (store, backup) = (folder.join("empty.db"), folder.join("backup.db"));
    drop(open(&store));
    backup::back_up(&store, &backup).unwrap();
    backup
}

/// Makes a store as a killed server leaves it: what it has is in its write-ahead log.
async fn killed(folder: &Path, path: &Path) -> Vec<Draft> {
    let other = folder.join("running.db");
    let running = open(&other);
    let mut bench = Bench::new(Arc::clone(&running) as _);
    let drafts = ["a", "b"].map(|id| bench.creation(id)).to_vec();
    for draft in &drafts {
        bench.take(draft).await;
    }
    fs::copy(&other, path).unwrap();
    fs::copy(beside(&other, "-wal"), beside(path, "-wal")).unwrap();
    drafts
}

fn kept(path: &Path, number: u32) -> PathBuf {
    beside(path, &format!(".before-restore-{number}"))
}

#[tokio::test]
async fn a_restored_store_has_what_the_backup_has() {
    let (directory, copies) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let path = database(&directory);
    let drafts = filled(&path).await;
    let backup = copies.path().join("backup.db");
    let content = backup::back_up(&path, &backup).unwrap();
    // as archives keep backups: with several names, and not to be written
    fs::hard_link(&backup, copies.path().join("daily.db")).unwrap();
    fs::set_permissions(&backup, Permissions::from_mode(0o444)).unwrap();
    let target = database(&copies);
    let restored = restore(&backup, &target, false).unwrap();
    assert_eq!(restored, Restored { content, kept: None, left: Vec::new() });
    assert_eq!(fs::metadata(&target).unwrap().permissions().mode() & 0o777, 0o644);
    assert_has(&*open(&target), &drafts).await;
    assert!(backup.exists());
}

#[tokio::test]
async fn a_store_that_is_there_is_kept_whole() {
    let directory = tempfile::tempdir().unwrap();
    let backup = empty_backup(directory.path());
    let path = database(&directory);
    let drafts = killed(directory.path(), &path).await;
    fs::write(beside(&path, ".crashes"), "counts").unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();

    let refusal = restore(&backup, &path, false).unwrap_err();
    assert!(matches!(refusal, RestoreError::Exists { .. }), "{refusal}");
    for number in 1..=2 {
        let restored = restore(&backup, &path, true).unwrap();
        assert_eq!((restored.content.executions, restored.kept), (0, Some(kept(&path, number))));
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
        for suffix in BESIDE {
            assert!(!beside(&path, suffix).exists(), "{suffix}");
        }
        drop(open(&path));
    }
    assert_eq!(fs::read_to_string(beside(&kept(&path, 1), ".crashes")).unwrap(), "counts");
    assert_has(&*open(&kept(&path, 1)), &drafts).await;
    drop(open(&kept(&path, 2)));
}

#[tokio::test]
async fn an_interrupted_restore_is_repeated() {
    for moved in [false, true] {
        let directory = tempfile::tempdir().unwrap();
        let backup = empty_backup(directory.path());
        let path = database(&directory);
        let drafts = killed(directory.path(), &path).await;
        // what a failure of the machine leaves: the other name, perhaps with the log
        fs::hard_link(&path, kept(&path, 1)).unwrap();
        if moved {
            fs::rename(beside(&path, "-wal"), beside(&kept(&path, 1), "-wal")).unwrap();
        }
        let refusal = guard::inspect(&path).unwrap_err();
        assert!(refusal.to_string().contains("a restore was interrupted"), "{refusal}");
        let restored = restore(&backup, &path, true).unwrap();
        assert_eq!(restored.kept, Some(kept(&path, 1)), "{moved}");
        assert_has(&*open(&kept(&path, 1)), &drafts).await;
        drop(open(&path));
    }
}

#[tokio::test]
async fn a_store_that_cannot_be_kept_stays_as_it_is() {
    let directory = tempfile::tempdir().unwrap();
    let backup = empty_backup(directory.path());
    let path = database(&directory);
    let drafts = filled(&path).await;
    // not a file that can be removed
    fs::create_dir(beside(&path, "-shm")).unwrap();
    let refusal = restore(&backup, &path, true).unwrap_err();
    assert!(matches!(refusal, RestoreError::NotKept { .. }), "{refusal}");
    assert!(!kept(&path, 1).exists());
    fs::remove_dir(beside(&path, "-shm")).unwrap();
    assert_has(&*open(&path), &drafts).await;
}

#[tokio::test]
async fn a_log_without_its_database_is_kept_too() {
    let directory = tempfile::tempdir().unwrap();
    let path = database(&directory);
    let backup = empty_backup(directory.path());
    fs::write(beside(&path, "-wal"), "left over").unwrap();
    let refusal = restore(&backup, &path, false).unwrap_err().to_string();
    assert!(refusal.contains("greenroom.db-wal is there, of a store that is gone"), "{refusal}");
    let restored = restore(&backup, &path, true).unwrap();
    let log = beside(&kept(&path, 1), "-wal");
    assert_eq!((restored.kept, &restored.left), (None, &vec![log.clone()]), "no store was there");
    assert_eq!(fs::read_to_string(log).unwrap(), "left over");
    drop(open(&path));
}

#[tokio::test]
async fn what_is_no_backup_changes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let path = database(&directory);
    let drafts = filled(&path).await;
    let file = |name: &str| directory.path().join(name);
    fs::write(file("text.db"), "a text").unwrap();
    fs::write(file("empty.db"), "").unwrap();
    std::os::unix::fs::symlink(&path, file("link.db")).unwrap();
    for (backup, says) in [
        ("none.db", "there is no backup at"),
        ("text.db", "the backup cannot be used: "),
        ("empty.db", "is empty"),
        ("link.db", "the backup is the store itself"),
    ] {
        let refusal = restore(&file(backup), &path, true).unwrap_err();
        assert!(refusal.to_string().contains(says), "{backup}: {refusal}");
    }
    let server = open(&path);
    let other = file("other.db");
    filled(&other).await;
    let refusal = restore(&other, &path, true).unwrap_err();
    assert!(refusal.to_string().contains("in use by another process"), "{refusal}");
    assert_has(&*server, &drafts).await;
}
