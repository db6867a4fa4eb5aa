//! `greenroom bench`: how fast a server answers, compared with its barest answer.

mod load;

use std::time::Duration;

use serde_json::{Value, json};

use self::load::{Kind, Measured, Place, measure};
use super::api::Call;
use super::exit::{Exit, Failure};
use super::screen::{Form, note};
use super::session::{Session, attended, duration_of, json_of};
use crate::loopback::is_loopback;

/// Largest number of connections at a time.
const CONNECTIONS_MAX: u64 = 1000;

/// Options of `bench`.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args)]
pub(in crate::cli) struct Bench {
    #[command(flatten)]
    pub(super) options: super::settings::Options,
    /// A workflow to execute; may be repeated.
    #[arg(long = "workflow", value_name = "ID", add = super::complete::workflows())]
    workflows: Vec<String>,
    /// Input of the workflows: JSON, @FILE, or - for stdin.
    #[arg(short, long, value_name = "JSON", default_value = "{}")]
    input: String,
    /// Resume executions that wait, with this data: JSON, @FILE, or - for stdin.
    #[arg(long, value_name = "JSON")]
    resume: Option<String>,
    /// An agent to ask for a text and for a stream; may be repeated.
    #[arg(long = "agent", value_name = "ID", add = super::complete::agents())]
    agents: Vec<String>,
    /// The message to the agents.
    #[arg(long, value_name = "TEXT", default_value = "Hello")]
    text: String,
    /// Numbers of connections, which take turns.
    #[arg(
        long,
        value_name = "N,…",
        value_delimiter = ',',
        default_value = "1,16,64",
        value_parser = clap::value_parser!(u64).range(1..=CONNECTIONS_MAX)
    )]
    connections: Vec<u64>,
    /// Time of each measurement, after a second of warming up.
    #[arg(long, value_name = "DURATION", default_value = "3s", value_parser = time_of)]
    time: Duration,
    /// Measure a server on another machine, too: its executions and generations are real ones.
    #[arg(long)]
    yes: bool,
}

/// Reads the time of a measurement.
fn time_of(text: &str) -> Result<Duration, String> {
    let time = duration_of(text)?;
    let is_sensible = (Duration::from_millis(10)..=Duration::from_secs(600)).contains(&time);
    if is_sensible { Ok(time) } else { Err("must be from 10ms to 10m".to_owned()) }
}

/// Measures a server, kind by kind.
pub(super) async fn run(session: &Session, bench: &Bench) -> Result<Exit, Failure> {
    let mut rows = Vec::new();
    let left = |exit| Failure::new(exit, "interrupted; what was begun ends at the server");
    let ended = attended(measured(session, bench, &mut rows), None, left).await;
    // what was measured before an interrupt is worth something
    let values: Vec<Value> = rows.iter().map(Row::json).collect();
    if ended.is_ok() || !values.is_empty() {
        session.screen.list(&values, HEAD, cells, "nothing was measured")?;
    }
    ended?;
    if session.screen.form == Form::Table {
        note(
            "RATIO: to GET /livez at as many connections; one core makes the load, beside the server",
        );
        if !bench.workflows.is_empty() {
            note("the executions stay in the server's store for as long as its `retention` says");
        }
    }
    let has_errors = rows.iter().any(|row| row.measured.errors > 0);
    Ok(if has_errors { Exit::Failed } else { Exit::Ok })
}

const HEAD: [&str; 7] =
    ["WORK", "CONNECTIONS", "PER SECOND", "P50 MS", "P99 MS", "RATIO", "ERRORS"];

/// A line of the result.
struct Row {
    work: String,
    connections: u64,
    measured: Measured,
    ratio: f64,
}

impl Row {
    fn json(&self) -> Value {
        let Self { work, connections, measured, ratio } = self;
        json!({
            "work": work,
            "connections": connections,
            "perSecond": rounded(measured.per_second(), 100.0),
            "p50Ms": rounded(measured.percentile_ms(0.5), 1000.0),
            "p99Ms": rounded(measured.percentile_ms(0.99), 1000.0),
            "ratio": rounded(*ratio, 1000.0),
            "errors": measured.errors,
        })
    }
}

fn rounded(value: f64, parts: f64) -> f64 {
    (value * parts).round() / parts
}

fn cells(row: &Value) -> [String; 7] {
    let value = |key: &str| row[key].as_f64().unwrap_or(0.0);
    let number = |key: &str, digits: usize| format!("{:.digits$}", value(key));
    let digits = if value("perSecond") < 100.0 { 2 } else { 0 };
    [
        super::text::cell(&row["work"]),
        super::text::cell(&row["connections"]),
        number("perSecond", digits),
        number("p50Ms", 2),
        number("p99Ms", 2),
        number("ratio", 2),
        super::text::cell(&row["errors"]),
    ]
}

/// Measures kind by kind, and adds a row for each.
async fn measured(session: &Session, bench: &Bench, rows: &mut Vec<Row>) -> Result<(), Failure> {
    let kinds = kinds(session, bench).await?;
    let place = Place { api: &session.api, time: bench.time };
    for kind in &kinds {
        // a refusal ends the command before anything is measured
        kind.once(&session.api).await?;
    }
    for &connections in &bench.connections {
        let bare = measure(&place, &Kind::Bare, connections).await;
        let base = bare.per_second();
        rows.push(Row { work: Kind::Bare.to_string(), connections, measured: bare, ratio: 1.0 });
        for kind in &kinds {
            note(&format!("{kind}, {connections} connections"));
            let measured = measure(&place, kind, connections).await;
            let ratio = if base > 0.0 { measured.per_second() / base } else { 0.0 };
            rows.push(Row { work: kind.to_string(), connections, measured, ratio });
        }
    }
    Ok(())
}

/// Returns what is measured; a usage error without any, with what the server has.
async fn kinds(session: &Session, bench: &Bench) -> Result<Vec<Kind>, Failure> {
    let input = json_of("--input", &bench.input)?;
    let data = bench.resume.as_deref().map(|data| json_of("--resume", data)).transpose()?;
    let workflows = bench.workflows.iter().map(|id| Kind::Execute {
        workflow: id.clone(),
        body: json!({ "input": input }),
        answer: data.as_ref().map(|data| json!({ "resumeData": data })),
    });
    let agents = bench.agents.iter().flat_map(|id| {
        let ask =
            |route| Kind::Ask { agent: id.clone(), route, body: json!({ "input": bench.text }) };
        [ask("text"), ask("stream")]
    });
    let kinds: Vec<_> = workflows.chain(agents).collect();
    if kinds.is_empty() {
        let refusal = Failure::usage("nothing to measure: name a --workflow or an --agent");
        return Err(refusal.advise(format!("the server has {}", offered(session).await?)));
    }
    if !is_loopback(session.api.server()) && !bench.yes {
        let why = "the server is on another machine, where each execution of a measurement is real";
        return Err(Failure::usage(why).advise("repeat it with --yes"));
    }
    Ok(kinds)
}

/// Returns ids of workflows and agents of the server, for a person to choose from.
async fn offered(session: &Session) -> Result<String, Failure> {
    const SHOWN: usize = 8;
    let mut all = Vec::new();
    for what in ["workflows", "agents"] {
        let found = session.api.data(Call::get(&[what])).await?;
        let found = found.as_array().map_or(&[][..], Vec::as_slice);
        let ids: Vec<_> = found.iter().take(SHOWN).map(|it| super::text::cell(&it["id"])).collect();
        all.push(format!("{what} {}", ids.join(", ")));
    }
    Ok(all.join("; "))
}
