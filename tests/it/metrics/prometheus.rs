//! The programs of Debian's package `prometheus`.

use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;
use tempfile::TempDir;

use support::client::Wire;

/// Checks metrics, rules and configurations.
pub(super) struct Promtool;

/// A Prometheus that has not been started.
pub(super) struct Prometheus;

/// A Prometheus that scrapes servers. It is killed when it goes out of scope.
pub(super) struct Scraping {
    child: Child,
    address: SocketAddr,
    _folder: TempDir,
}

/// Returns `None` if it is not installed.
pub(super) fn promtool() -> Option<Promtool> {
    is_there("promtool").then_some(Promtool)
}

/// Returns true if a program is installed; [`support::not_tested`] reports it otherwise.
fn is_there(program: &str) -> bool {
    let version = Command::new(program).arg("--version").output();
    if version.is_ok_and(|output| output.status.success()) {
        return true;
    }
    support::not_tested("metrics", &format!("Install {program} (package prometheus)."));
    false
}

impl Promtool {
    /// Returns its output for an input.
    pub(super) fn told(&self, arguments: &[&str], input: &[u8]) -> String {
        let mut child = Command::new("promtool")
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(input).unwrap();
        said(&child.wait_with_output().unwrap())
    }

    /// Runs it in a folder.
    ///
    /// # Panics
    ///
    /// If it fails.
    pub(super) fn runs(&self, folder: &Path, arguments: &[&str]) {
        let output = Command::new("promtool").args(arguments).current_dir(folder).output().unwrap();
        assert!(output.status.success(), "promtool {arguments:?}: {}", said(&output));
    }
}

fn said(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    text(&output.stdout) + &text(&output.stderr)
}

impl Prometheus {
    pub(super) fn find() -> Option<Self> {
        is_there("prometheus").then_some(Self)
    }

    /// Starts it over a folder, on a free port.
    pub(super) fn scrape(self, targets: &[SocketAddr]) -> Scraping {
        let folder = tempfile::tempdir().unwrap();
        let targets: Vec<_> = targets.iter().map(|target| format!("\"{target}\"")).collect();
        let targets = targets.join(", ");
        let config = format!(
            "global: {{ scrape_interval: 250ms, scrape_timeout: 250ms }}\n\
             scrape_configs:\n  - job_name: greenroom\n    \
             static_configs: [{{ targets: [{targets}] }}]\n"
        );
        std::fs::write(folder.path().join("prometheus.yml"), config).unwrap();
        let mut child = Command::new("prometheus")
            .args(["--config.file=prometheus.yml", "--storage.tsdb.path=data"])
            .arg("--web.listen-address=127.0.0.1:0")
            .current_dir(folder.path())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut lines = lines.map_while(Result::ok);
        let line = lines.find(|line| line.contains("\"Listening on\"")).expect("it listens");
        // its output is not read: it must not block on that
        std::thread::spawn(move || lines.for_each(drop));
        let (_, address) = line.split_once("address=").unwrap();
        Scraping { child, address: address.trim().parse().unwrap(), _folder: folder }
    }
}

impl Scraping {
    /// Returns the current answer to a query.
    pub(super) fn ask(&self, query: &str) -> Value {
        let query = utf8_percent_encode(query, NON_ALPHANUMERIC);
        let mut wire = Wire::open(self.address).unwrap();
        wire.send("GET", &format!("/api/v1/query?query={query}"), &[], None).unwrap();
        let answer = wire.reply().unwrap();
        match answer.status {
            200 => answer.json(),
            // it reads its own files first
            503 => Value::Null,
            status => panic!("{status}: {}", answer.text()),
        }
    }
}

impl Drop for Scraping {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
