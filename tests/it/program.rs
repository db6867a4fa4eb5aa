//! The program under test, in the folder of a test.

use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use support::server::Home;
use support::{PATIENCE, PAUSE};

/// Methods to run programs in a folder.
pub(crate) trait Programs {
    /// Returns the command of the server.
    fn greenroom(&self, arguments: &[&str]) -> Command;

    /// Runs a program until it exits by itself.
    ///
    /// # Panics
    ///
    /// After [`PATIENCE`].
    fn run(&self, command: Command) -> Output;
}

impl Programs for Home {
    fn greenroom(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_greenroom"));
        command.args(arguments).current_dir(self.path(""));
        command
    }

    fn run(&self, mut command: Command) -> Output {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        if !exits_within(&mut child, PATIENCE) {
            child.kill().unwrap();
            panic!("{command:?} runs on: {:?}", child.wait_with_output());
        }
        child.wait_with_output().unwrap()
    }
}

/// Returns a browser of this machine. If none is installed, [`support::not_tested`] reports it.
pub(crate) fn browser(subject: &str) -> Option<&'static str> {
    let known = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
    let runs = |program: &&str| {
        let version = Command::new(program).arg("--version").stderr(Stdio::null()).output();
        version.is_ok_and(|output| output.status.success())
    };
    let found = known.into_iter().find(runs);
    if found.is_none() {
        support::not_tested(subject, &format!("Install one of {known:?}."));
    }
    found
}

/// Waits for a process; false if it still runs after `time`.
pub(crate) fn exits_within(child: &mut Child, time: Duration) -> bool {
    let deadline = Instant::now() + time;
    while child.try_wait().unwrap().is_none() {
        if Instant::now() > deadline {
            return false;
        }
        std::thread::sleep(PAUSE);
    }
    true
}
