//! The console of the real program in a browser: its views, and the stories of people who use it. The
//! tests are in `console/tests`, and start and kill the program themselves; `npm ci` there installs
//! what they need.

use std::path::Path;
use std::process::Command;

use crate::clients::{missing, path_of};
use crate::program::browser;

#[test]
fn the_console_works_in_a_browser() {
    let subject = "the console in a browser";
    let Some(browser) = browser(subject) else { return };
    let console = Path::new(env!("CARGO_MANIFEST_DIR")).join("console");
    if let Some(missing) = missing(&console) {
        support::not_tested(subject, &missing);
        return;
    }
    let run = Command::new("npm")
        .args(["run", "--silent", "walk"])
        .current_dir(&console)
        .env("GREENROOM_PROGRAM", env!("CARGO_BIN_EXE_greenroom"))
        .env("GREENROOM_BROWSER", path_of(browser))
        .output()
        .unwrap();
    let (shown, faults) =
        (String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
    assert!(run.status.success(), "{}\n{faults}", failed_tests(&shown));
}

/// Returns the part of the report (TAP) about tests that failed, or the whole of one without any.
fn failed_tests(report: &str) -> String {
    let blocks = report.split("# Subtest: ");
    let failed: Vec<_> =
        blocks.filter(|block| block.lines().any(|line| line.starts_with("not ok "))).collect();
    if failed.is_empty() { report.to_owned() } else { failed.join("\n") }
}

#[test]
fn the_report_of_a_failure_is_about_the_failed_tests() {
    let passed = "# Subtest: a\nok 1 - a\n";
    let failed = "b\nnot ok 2 - b\n  error: 'timed out'\n";
    assert_eq!(failed_tests(&format!("{passed}# Subtest: {failed}{passed}")), failed);
    assert_eq!(failed_tests(passed), passed);
}
