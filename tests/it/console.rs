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
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(run.status.success(), "{}\n{}", text(&run.stdout), text(&run.stderr));
}
