//! Options: store, kinds of work, servers and durations.

use std::str::FromStr;
use std::time::Duration;

use crate::Outcome;
use crate::database::Store;
use crate::server::Kind;
use crate::work::Work;

const SECONDS: &str = "GREENROOM_BENCH_SECONDS";
const ROUNDS: &str = "GREENROOM_BENCH_ROUNDS";

#[derive(Debug, Clone)]
pub(crate) struct Options {
    pub(crate) store: Store,
    /// Number of servers that are measured beside one; 1: none are.
    pub(crate) nodes: usize,
    pub(crate) works: Vec<Work>,
    pub(crate) connections: Vec<usize>,
    pub(crate) servers: Vec<Kind>,
    pub(crate) warm_up: Duration,
    pub(crate) measured: Duration,
    pub(crate) rounds: usize,
}

impl Options {
    /// Reads the command line and the environment. Without the `--bench` that cargo passes, as
    /// under `cargo test --benches`, the short form is run.
    pub(crate) fn read(mut arguments: impl Iterator<Item = String>) -> Outcome<Self> {
        let mut options = Self {
            store: Store::Sqlite,
            nodes: 1,
            works: Vec::new(),
            connections: vec![1, 16, 64],
            servers: Kind::ALL.to_vec(),
            warm_up: Duration::from_secs(1),
            measured: Duration::from_secs(3),
            rounds: 2,
        };
        let (mut is_quick, mut is_bench) = (false, false);
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().ok_or_else(|| format!("{argument} needs a value"));
            match argument.as_str() {
                "--bench" => is_bench = true,
                "--quick" => is_quick = true,
                "--store" => options.store = parsed(&value()?)?,
                "--nodes" => options.nodes = parsed(&value()?)?,
                "--only" => options.works = listed(&value()?)?,
                "--connections" => options.connections = listed(&value()?)?,
                "--server" => options.servers = listed(&value()?)?,
                _ => return Err(format!("unknown argument {argument}").into()),
            }
        }
        if options.store == Store::Sqlite && options.nodes != 1 {
            return Err("SQLite has one server: --nodes needs --store postgres".into());
        }
        if options.works.is_empty() {
            options.works = Work::of(options.store, options.nodes).to_vec();
        }
        if is_quick || !is_bench {
            options.warm_up = Duration::from_millis(300);
            options.measured = Duration::from_millis(500);
            options.rounds = 1;
        }
        if let Some(seconds) = from_environment::<f64>(SECONDS)? {
            options.measured = Duration::try_from_secs_f64(seconds)?;
        }
        if let Some(rounds) = from_environment(ROUNDS)? {
            options.rounds = rounds;
        }
        Ok(options)
    }

    /// Returns the servers to measure, of those that are compared at a kind of work.
    pub(crate) fn servers(&self, work: Work) -> impl Iterator<Item = Kind> {
        let has_embedded = self.store == Store::Postgres && self.nodes == 1;
        let embedded = has_embedded.then_some(Kind::Embedded);
        let all = work.servers(self.nodes).into_iter().chain(embedded);
        all.filter(|kind| self.servers.contains(kind))
    }

    pub(crate) fn describe(&self) -> String {
        let (warm_up, measured) = (self.warm_up, self.measured);
        format!(
            "{} round(s) of {measured:?} after {warm_up:?} of warm-up, medians; each with a new \
             process and an empty store. The load generator shares the machine.",
            self.rounds
        )
    }
}

/// Parses values separated by commas.
fn listed<T: FromStr>(text: &str) -> Outcome<Vec<T>> {
    text.split(',').map(|part| parsed(part.trim())).collect()
}

fn parsed<T: FromStr>(text: &str) -> Outcome<T> {
    text.parse().map_err(|_| format!("unknown value {text}").into())
}

fn from_environment<T: FromStr>(name: &str) -> Outcome<Option<T>> {
    let Some(text) = std::env::var_os(name) else { return Ok(None) };
    let value = text.to_str().and_then(|text| text.parse().ok());
    Ok(Some(value.ok_or_else(|| format!("{name} must be a number"))?))
}
