//! `greenroom store`: whole stores, while no server uses them.

use std::io;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use greenroom_store_codec::dump::{Copied, Progress};

use super::{Arguments, finish, print, read};
use crate::app;
use crate::config::{Config, StoreUrl, StoreUrlError};

/// Interval of reports on records of one kind.
const REPORT_EVERY: Duration = Duration::from_secs(2);

/// Actions on stores.
#[derive(Debug, Clone, PartialEq, Eq, clap::Subcommand)]
pub(super) enum Command {
    /// Copies a whole store to an empty one, between SQLite and PostgreSQL.
    Copy {
        /// The store to copy, which no server uses: sqlite://PATH or postgres://USER@HOST/DATABASE.
        from: String,
        /// The new store: a file that does not exist, or a database without a store.
        to: String,
    },
}

/// Runs a command. Prints its result to stdout, progress and problems to stderr.
pub(super) fn run(arguments: &Arguments, command: &Command) -> ExitCode {
    let Command::Copy { from, to } = command;
    finish(copy(arguments, from, to).map(|summary| vec![summary]))
}

/// Copies a store and returns a summary.
fn copy(arguments: &Arguments, from: &str, to: &str) -> Result<String, Vec<String>> {
    let parse = |name: &str, url: &str| {
        // the address may have a password, so it is not repeated
        let refused = |error: StoreUrlError| vec![format!("greenroom: {name} {}", error.message)];
        url.parse::<StoreUrl>().map_err(refused)
    };
    let (from, to) = (parse("FROM", from)?, parse("TO", to)?);
    let config = config(arguments)?;
    print(&mut io::stderr(), &[format!("copying {from} to {to}")]);
    let mut reporter = Reporter::new();
    let copied = app::copy_store(&config, &from, &to, &mut |progress| {
        print(&mut io::stderr(), reporter.line(progress).as_slice());
    });
    let copied = copied.map_err(|refusal| vec![format!("greenroom: {refusal}")])?;
    Ok(format!("{to}: ok, {}", summary(&copied)))
}

/// Loads the configuration, which has the passwords of databases. The default file may be missing.
fn config(arguments: &Arguments) -> Result<Config, Vec<String>> {
    if !arguments.has_default_file() {
        return Ok(Config::default());
    }
    read(arguments).map_err(|problems| problems.iter().map(ToString::to_string).collect())
}

fn summary(copied: &Copied) -> String {
    let kinds = copied.iter().filter(|(_, count)| *count > 0);
    let kinds: Vec<_> = kinds.map(|(kind, count)| format!("{kind}: {count}")).collect();
    if kinds.is_empty() { "nothing was stored".to_owned() } else { kinds.join(", ") }
}

/// Selects the progress that is worth a line.
struct Reporter {
    last: Instant,
}

impl Reporter {
    fn new() -> Self {
        Self { last: Instant::now() }
    }

    /// Returns a line for the last records of a kind, and for some before them.
    fn line(&mut self, progress: Progress) -> Option<String> {
        let (did, kind, count, of) = match progress {
            Progress::Copied { kind, count, of } => ("copied", kind, count, of),
            Progress::Checked { kind, count, of } => ("checked", kind, count, of),
            Progress::Deriving => return Some("completing indexes and counters".to_owned()),
        };
        if count < of && self.last.elapsed() < REPORT_EVERY {
            return None;
        }
        self.last = Instant::now();
        Some(format!("{did} {count} of {of} {kind}"))
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;
    use greenroom_store_codec::dump::Kind;

    use super::*;

    #[test]
    fn addresses_are_refused_without_their_text() {
        let arguments = Arguments::parse_from(["greenroom"]);
        let good = "sqlite://a.db";
        for (from, to, says) in [
            ("a.db", good, "greenroom: FROM must be \"sqlite://PATH\""),
            (good, "sqlite://", "greenroom: TO must name a file"),
            ("memory:", good, "greenroom: \"memory:\" ends with its process"),
        ] {
            let refusal = copy(&arguments, from, to).unwrap_err();
            assert!(refusal[0].starts_with(says), "{refusal:?}");
        }
        #[cfg(feature = "postgres")]
        {
            let refusal = copy(&arguments, "postgres://ann:hidden@db/a?b", good).unwrap_err();
            assert!(!refusal[0].contains("hidden"), "{refusal:?}");
        }
    }

    #[test]
    fn the_end_of_each_kind_is_reported() {
        let mut reporter = Reporter::new();
        let copied = |count| Progress::Copied { kind: Kind::Messages, count, of: 2 };
        assert_eq!(reporter.line(copied(1)), None);
        assert_eq!(reporter.line(copied(2)).unwrap(), "copied 2 of 2 messages");
        reporter.last -= REPORT_EVERY;
        assert_eq!(reporter.line(copied(1)).unwrap(), "copied 1 of 2 messages");
        assert!(reporter.line(Progress::Deriving).is_some());
    }
}
