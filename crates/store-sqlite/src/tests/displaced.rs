//! Files of an open store that are removed, renamed, replaced or cut.

use std::time::Instant;

use super::*;

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
    beside(path, ".aside")
}

fn log_of(path: &Path) -> PathBuf {
    beside(path, "-wal")
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
async fn files_out_of_place_are_told_by_a_look_and_not_backed_up() {
    let databases = DISPLACEMENTS.into_iter().filter(|it| it.name.contains("database"));
    for Displacement { name, displace, put_back, .. } in databases {
        let directory = tempfile::tempdir().unwrap();
        let path = database(&directory);
        let store = open(&path);
        let copies = tempfile::tempdir().unwrap();
        let copy = copies.path().join("copy.db");
        let link = copies.path().join("link.db");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        let is_displaced = || {
            let found = [&path, &link].map(|path| {
                let looked = crate::look(path).unwrap().is_displaced;
                let backed_up = crate::back_up(path, &copy);
                match looked {
                    true => {
                        let refusal = backed_up.unwrap_err().to_string();
                        assert!(refusal.contains("while a server has it open"), "{refusal}");
                        assert!(!copy.exists(), "{name}");
                    }
                    false => backed_up.map(|_| fs::remove_file(&copy).unwrap()).unwrap(),
                }
                looked
            });
            assert_eq!(found[0], found[1], "{name}: a link to the store");
            found[0]
        };
        assert!(!is_displaced(), "{name}: before");
        displace(&path);
        assert!(is_displaced(), "{name}");
        if let Some(put_back) = put_back {
            put_back(&path);
            assert!(!is_displaced(), "{name}: after");
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
