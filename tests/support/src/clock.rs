//! A wrong clock for one process: `libfaketime`, which is put between a program and the system.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::not_tested;

/// The library.
#[derive(Debug)]
pub struct WrongClock(PathBuf);

impl WrongClock {
    /// Finds the library; `None` where it is not installed, which is reported.
    pub fn find() -> Option<Self> {
        let folders = fs::read_dir("/usr/lib").into_iter().flatten().flatten();
        let mut files = folders.map(|folder| folder.path().join("faketime/libfaketimeMT.so.1"));
        let found = files.find(|file| file.exists()).map(Self);
        if found.is_none() {
            not_tested("Wrong clocks", "libfaketime is not installed (package faketime)");
        }
        found
    }

    /// Sets the wall clock of a process that is to be started, such as `+1d`. Its monotonic clock is
    /// that of the system.
    pub fn set(&self, command: &mut Command, offset: &str) {
        command.env("LD_PRELOAD", &self.0).env("FAKETIME", offset);
        command.env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
    }

    /// Removes the files for the children of a process, which the library leaves behind. A process
    /// without children needs them no longer once it has started.
    pub fn remove_files(process: u32) {
        for name in [format!("faketime_shm_{process}"), format!("sem.faketime_sem_{process}")] {
            // an error: the process has none
            let _ = fs::remove_file(Path::new("/dev/shm").join(name));
        }
    }
}
