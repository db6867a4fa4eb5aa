//! The AI SDK's own clients, in Node.js, against the real program. They are in `tests/clients`;
//! `npm ci` there installs what they need.

#[cfg(test)]
mod clients {
    #[path = "../rig/rig.rs"]
    #[expect(dead_code, reason = "of the rig, these tests need the process alone")]
    mod rig;

    use std::io::Write;
    use std::path::{Path, PathBuf};
    use std::process::Command;

    use rig::server::{Home, Server};

    const CONFIG: &str = include_str!("clients/server.toml");
    /// The oldest Node.js that the packages run on.
    const NODE_MAJOR_MIN: u32 = 20;

    #[test]
    fn the_ai_sdks_clients_work_unchanged() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients");
        if let Some(missing) = missing(&folder) {
            let is_ci = std::env::var_os("CI").is_some_and(|value| value == "true");
            assert!(!is_ci, "{missing}");
            // Past the harness, which keeps to itself what a test says that passes.
            writeln!(std::io::stderr(), "\n*** NOT TESTED: the AI SDK's clients. {missing}\n")
                .unwrap();
            return;
        }
        let home = Home::new(CONFIG);
        let mut program = Command::new(env!("CARGO_BIN_EXE_greenroom"));
        program.current_dir(home.path(""));
        let server = Server::start(program);
        let run = Command::new("node")
            .args(["--test", "--test-concurrency=1", "--test-timeout=120000"])
            .args(tests_in(&folder))
            .current_dir(&folder)
            .env("GREENROOM_URL", format!("http://{}", server.address))
            .output()
            .unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert!(run.status.success(), "{}\n{}", text(&run.stdout), text(&run.stderr));
    }

    /// What the tests cannot run without, in words.
    fn missing(folder: &Path) -> Option<String> {
        let version = Command::new("node").arg("--version").output();
        let version = version.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
        let Ok(version) = version else {
            return Some(format!("Node.js {NODE_MAJOR_MIN} or newer is missing."));
        };
        let major = version.trim().trim_start_matches('v').split('.').next();
        if major
            .and_then(|major| major.parse().ok())
            .is_none_or(|major: u32| major < NODE_MAJOR_MIN)
        {
            return Some(format!("Node.js is {}, not {NODE_MAJOR_MIN} or newer.", version.trim()));
        }
        let is_installed = folder.join("node_modules").is_dir();
        (!is_installed).then(|| format!("Run `npm ci` in {}.", folder.display()))
    }

    fn tests_in(folder: &Path) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let mut tests: Vec<_> =
            entries.filter(|path| path.to_string_lossy().ends_with(".test.mjs")).collect();
        tests.sort();
        assert!(!tests.is_empty(), "no tests in {}", folder.display());
        tests
    }
}
