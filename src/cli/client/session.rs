//! One run of a client command: the server and the screen.

use std::io::{self, IsTerminal as _, Read as _};
use std::time::Duration;

use serde_json::Value;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::Instant;

use super::api::{Api, Call};
use super::exit::{Exit, Failure};
use super::screen::Screen;
use super::settings::{Options, Target};
use super::text::{addressed, items, text};

/// Server and screen of a command.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) api: Api,
    pub(super) screen: Screen,
    /// Options with which another command calls the same server; see [`Options::addressing`].
    pub(super) addressing: String,
}

impl Session {
    pub(super) fn open(options: &Options) -> Result<Self, Failure> {
        let api = Api::new(Target::of(options)?)?;
        Ok(Self { api, screen: Screen::new(options.form()), addressing: options.addressing() })
    }

    /// Writes a note with a command that calls the same server.
    pub(super) fn note(&self, line: &str) {
        super::screen::note(&addressed(line, &self.addressing));
    }

    /// Reads pages of a list until there are `limit` items that are sought. `page_max` is the largest
    /// page.
    pub(super) async fn pages(
        &self,
        path: &[&str],
        query: &[(&str, &str)],
        key: &str,
        (limit, page_max): (usize, usize),
        is_sought: impl Fn(&Value) -> bool,
    ) -> Result<Vec<Value>, Failure> {
        let mut found = Vec::new();
        let mut cursor = String::new();
        let size = limit.min(page_max).to_string();
        while found.len() < limit {
            let mut query = query.to_vec();
            query.push(("limit", &size));
            if !cursor.is_empty() {
                query.push(("cursor", &cursor));
            }
            let page = self.api.data(Call::get(path).query(&query)).await?;
            found.extend(items(&page, key).iter().filter(|it| is_sought(it)).cloned());
            text(&page, "nextCursor").clone_into(&mut cursor);
            if cursor.is_empty() {
                break;
            }
        }
        let has_more = found.len() > limit || !cursor.is_empty();
        found.truncate(limit);
        if has_more {
            super::screen::note(&format!(
                "there are more than these {limit}: --limit N shows more"
            ));
        }
        Ok(found)
    }
}

/// Reads JSON from an option: the value itself, `@FILE`, or `-` for stdin.
pub(super) fn json_of(option: &str, written: &str) -> Result<Value, Failure> {
    let refused = |why: String| Failure::usage(format!("{option}: {why}"));
    let json = if written == "-" {
        stdin().map_err(|error| refused(format!("stdin: {error}")))?
    } else if let Some(file) = written.strip_prefix('@') {
        let opened = std::fs::File::open(file);
        let whole = opened.and_then(bounded);
        whole.map_err(|error| refused(format!("{file}: {error}")))?
    } else {
        written.to_owned()
    };
    serde_json::from_str(&json).map_err(|error| {
        refused(format!("not JSON: {error}"))
            .advise("write JSON as '{\"n\":4}', @FILE to read a file, or - to read stdin")
    })
}

/// Sets a member of a body to the JSON of an option, if it is given.
pub(super) fn put_json(
    body: &mut Value,
    key: &str,
    (option, written): (&str, Option<&String>),
) -> Result<(), Failure> {
    if let Some(written) = written {
        body[key] = json_of(option, written)?;
    }
    Ok(())
}

/// Sets a text member of a body, if it is given.
pub(super) fn put_text(body: &mut Value, key: &str, given: Option<&String>) {
    if let Some(given) = given {
        body[key] = Value::from(given.as_str());
    }
}

/// Reads stdin to its end.
pub(super) fn stdin() -> io::Result<String> {
    if io::stdin().is_terminal() {
        super::screen::note("reading stdin; Ctrl-D ends it");
    }
    bounded(io::stdin().lock())
}

/// Maximum size of JSON that is sent: no server takes more.
const INPUT_BYTES_MAX: u64 = 1 << 30;

/// Reads a text to its end.
fn bounded(from: impl io::Read) -> io::Result<String> {
    let mut bytes = Vec::new();
    from.take(INPUT_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > INPUT_BYTES_MAX {
        return Err(io::Error::other("more than a gibibyte"));
    }
    String::from_utf8(bytes).map_err(|error| {
        let place = error.utf8_error().valid_up_to();
        io::Error::other(format!(
            "not UTF-8: byte {} is {:#04x}",
            place + 1,
            error.as_bytes()[place]
        ))
    })
}

/// Parses a duration such as `500ms`, `30s` and `2h`.
pub(in crate::cli) fn duration_of(text: &str) -> Result<Duration, String> {
    humantime::parse_duration(text).map_err(|error| error.to_string())
}

/// Parses the number of rows to list.
pub(super) fn limit_of(text: &str) -> Result<usize, String> {
    match text.parse::<usize>() {
        Ok(0) => Err("must be at least 1".to_owned()),
        parsed => parsed.map_err(|error| error.to_string()),
    }
}

/// Returns the time at which a command whose time begins now has to end; `None` if it has no limit,
/// or a time that no clock reaches.
pub(super) fn deadline_of(timeout: Option<Duration>) -> Option<Instant> {
    Instant::now().checked_add(timeout?)
}

/// Runs work until it is done, Ctrl-C is pressed or the deadline has passed. `leave` says what
/// continues at the server, and how to come back.
pub(super) async fn attended<T>(
    work: impl Future<Output = Result<T, Failure>>,
    deadline: Option<Instant>,
    leave: impl Fn(Exit) -> Failure,
) -> Result<T, Failure> {
    tokio::select! {
        // first, so that the signal is caught before anything is printed
        biased;
        exit = end(deadline) => Err(leave(exit)),
        done = work => done,
    }
}

/// Waits for a signal that asks the command to end, or until its time is over.
pub(super) async fn end(deadline: Option<Instant>) -> Exit {
    match deadline {
        Some(deadline) => {
            tokio::time::timeout_at(deadline, interrupt()).await.unwrap_or(Exit::Timeout)
        }
        None => interrupt().await,
    }
}

/// Waits for Ctrl-C or another signal that asks the command to end.
pub(super) async fn interrupt() -> Exit {
    let of = |kind: SignalKind| async move {
        match signal(kind) {
            Ok(mut signal) => drop(signal.recv().await),
            Err(_) => std::future::pending().await,
        }
    };
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    tokio::select! {
        () = of(SignalKind::interrupt()) => Exit::Interrupted,
        () = of(SignalKind::terminate()) => Exit::Terminated,
        // under `nohup` the command continues: a handler would take that back
        () = of(SignalKind::hangup()), if !ignores_hangup(&status) => Exit::HungUp,
    }
}

/// Returns true if a process ignores SIGHUP, according to its status in Linux; false without one.
fn ignores_hangup(status: &str) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    // the lowest bit is that of signal 1
    mask & 1 << (SignalKind::hangup().as_raw_value() - 1) != 0
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_ignored_hangup_is_in_the_status() {
        for (mask, expected) in [("1001", true), ("1002", false), ("0", false), ("", false)] {
            let status = format!("SigBlk:\t0001\nSigIgn:\t000000000000{mask}\nSigCgt:\tffff\n");
            assert_eq!(ignores_hangup(&status), expected, "{mask}");
        }
        assert!(!ignores_hangup(""));
    }

    #[tokio::test(start_paused = true)]
    async fn the_parts_of_a_command_share_its_time() {
        let deadline = deadline_of(Some(Duration::from_secs(10)));
        let part = || async {
            tokio::time::sleep(Duration::from_secs(6)).await;
            Ok(())
        };
        let left = |exit| Failure::new(exit, "left");
        assert_eq!(attended(part(), deadline, left).await, Ok(()));
        let late = attended(part(), deadline, left).await.unwrap_err();
        assert_eq!(late.exit, Exit::Timeout);
        for none in [None, Some(Duration::MAX)] {
            assert_eq!(attended(part(), deadline_of(none), left).await, Ok(()));
        }
    }

    #[test]
    fn json_is_a_value_or_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("in.json");
        std::fs::write(&file, "{\"n\": 4}\n").unwrap();
        let named = format!("@{}", file.display());
        let latin = folder.path().join("latin.json");
        std::fs::write(&latin, b"\"abc\xfc\"").unwrap();
        let latin = format!("@{}", latin.display());
        for (written, expected) in [
            ("{\"n\":4}", Ok(json!({ "n": 4 }))),
            (&named, Ok(json!({ "n": 4 }))),
            ("7", Ok(json!(7))),
        ] {
            assert_eq!(json_of("--input", written), expected);
        }
        for (written, says) in [
            ("{n:4}", "--input: not JSON: "),
            ("@/no/such", "--input: /no/such: "),
            ("", "not JSON"),
            (&latin, "latin.json: not UTF-8: byte 5 is 0xfc"),
        ] {
            let refused = json_of("--input", written).unwrap_err();
            assert_eq!(refused.exit, Exit::Usage);
            assert!(refused.to_string().contains(says), "{refused}");
        }
    }
}
