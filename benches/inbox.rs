//! Time of pages of the inbox over a store with many asks, and the cost of its streams.
//!
//! ```text
//! cargo bench --bench inbox
//! cargo bench --bench inbox -- --open 10000 --closed 1000000 --subscribers 1000
//! cargo bench --bench inbox -- --store postgres
//! ```
//!
//! The store is filled before the server starts. One client with a token then reads pages by each
//! filter; after that, many clients stream the changes of asks at once. The exit code is a failure
//! only if a page takes ten times its target, or a stream misses an ask.

#[path = "inbox/asked.rs"]
mod asked;
#[path = "inbox/fill.rs"]
mod fill;
#[path = "inbox/filters.rs"]
mod filters;
#[path = "http/machine.rs"]
mod machine;
#[path = "inbox/pages.rs"]
mod pages;
#[path = "inbox/place.rs"]
mod place;
#[path = "http/process.rs"]
mod process;
#[path = "inbox/streams.rs"]
mod streams;
#[path = "inbox/table.rs"]
mod table;
#[path = "http/token.rs"]
mod token;

use std::error::Error;
use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Instant;

use greenroom_actors::ports::clock::{Clock as _, SystemClock};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::asked::Spread;
use crate::pages::Client;
use crate::place::{Place, Store};
use crate::process::Process;
use crate::streams::Streams;
use crate::table::Table;

type Outcome<T> = Result<T, Box<dyn Error>>;

struct Options {
    store: Store,
    open: u64,
    closed: u64,
    /// Clients that stream the changes.
    subscribers: usize,
}

impl Options {
    /// Reads the command line. Without the `--bench` that cargo passes, as under
    /// `cargo test --benches`, the short form is run.
    fn read(mut arguments: impl Iterator<Item = String>) -> Outcome<Self> {
        let (mut open, mut closed, mut subscribers, mut is_bench) = (None, None, None, false);
        let mut store = Store::Sqlite;
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().ok_or_else(|| format!("{argument}: no value"));
            match argument.as_str() {
                "--bench" => is_bench = true,
                "--store" => store = value()?.parse()?,
                "--open" => open = Some(value()?.parse()?),
                "--closed" => closed = Some(value()?.parse()?),
                "--subscribers" => subscribers = Some(value()?.parse()?),
                _ => return Err(format!("unknown argument {argument}").into()),
            }
        }
        let (usual_open, usual_closed, usual_subscribers) = match is_bench {
            true => (10_000, 1_000_000, 1_000),
            false => (100, 1_000, 20),
        };
        Ok(Self {
            store,
            open: open.unwrap_or(usual_open),
            closed: closed.unwrap_or(usual_closed),
            subscribers: subscribers.unwrap_or(usual_subscribers),
        })
    }
}

#[expect(clippy::print_stdout, reason = "the figures are what this program is for")]
fn main() -> Outcome<ExitCode> {
    let Options { store, open, closed, subscribers } = Options::read(std::env::args().skip(1))?;
    // every stream is a socket of this process as well
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })?;
    let place = Place::new(store)?;
    println!("{}\n", machine::describe()?);
    let now = SystemClock.now();

    let begun = Instant::now();
    fill::fill(&place, Spread { open, closed, now })?;
    let (took, megabytes) = (begun.elapsed(), place.bytes()? / 1_000_000);
    println!("{open} open and {closed} closed asks, {megabytes} MB, filled in {took:.0?}");

    let server = place.start()?;
    println!("Load averages before the requests: {}", std::fs::read_to_string("/proc/loadavg")?);
    let mut client = Client::open(server.address)?;
    let mut table = Table::default();
    for filter in filters::all(now) {
        let row = client.measure(filter, Process { id: server.child.id() })?;
        writeln!(io::stderr(), "{row}")?;
        table.add(row);
    }
    println!("{table}");
    let streams = Streams::measure(&server, subscribers)?;
    println!("{streams}");

    let failures = table.failures().into_iter().chain(streams.failure());
    let mut code = ExitCode::SUCCESS;
    for failure in failures {
        writeln!(io::stderr(), "{failure}")?;
        code = ExitCode::FAILURE;
    }
    Ok(code)
}
