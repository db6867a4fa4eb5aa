//! The load: every connection sends its next request after the last answer.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};

use tokio::task::LocalSet;

use crate::Outcome;
use crate::connection::{Answer, Connection};
use crate::family::Family;
use crate::process::{Process, Spent};
use crate::server::Kind;
use crate::work::{Request, Work, find};

/// Timeout of answers beyond the end of the run.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(20);

/// One run.
pub(crate) struct Plan {
    pub(crate) address: SocketAddr,
    pub(crate) process: Process,
    /// Processes of the database that the server writes to.
    pub(crate) database: Option<Family>,
    pub(crate) kind: Kind,
    pub(crate) work: Work,
    pub(crate) connections: usize,
    pub(crate) warm_up: Duration,
    pub(crate) measured: Duration,
}

/// Results of a run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sample {
    /// Units per second.
    pub(crate) rate: f64,
    pub(crate) p50_ms: f64,
    pub(crate) p99_ms: f64,
    /// Median time to the first event; `None` unless the answer is a stream.
    pub(crate) first_event_ms: Option<f64>,
    /// CPU of the server, user and system, per unit.
    pub(crate) cpu_us: f64,
    /// Voluntary context switches of the server, per unit.
    pub(crate) sleeps: f64,
    /// CPU of the database, per unit.
    pub(crate) database_us: Option<f64>,
    pub(crate) errors: usize,
}

impl fmt::Display for Sample {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rate, p50_ms, p99_ms, cpu_us, sleeps, errors, .. } = self;
        write!(
            formatter,
            "{rate:.0}/s, p50 {p50_ms:.2} ms, p99 {p99_ms:.2} ms, CPU {cpu_us:.1} µs, \
             {sleeps:.2} sleeps, {errors} errors"
        )?;
        if let Some(us) = self.database_us {
            write!(formatter, ", database {us:.1} µs")?;
        }
        self.first_event_ms.map_or(Ok(()), |ms| write!(formatter, ", first event {ms:.2} ms"))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    WarmUp,
    Measured,
    Over,
}

/// State shared by the connections and the clock, on one thread.
struct Board {
    phase: Cell<Phase>,
    /// Latencies of the units that ended in the measured phase.
    latencies_us: RefCell<Vec<u32>>,
    /// Times to the first event of a stream.
    first_events_us: RefCell<Vec<u32>>,
    errors: Cell<usize>,
    first_error: RefCell<Option<String>>,
}

/// Loads the server and measures it.
pub(crate) fn run(plan: Plan) -> Outcome<Sample> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let timeout = plan.warm_up + plan.measured + ANSWER_TIMEOUT;
    let local = LocalSet::new();
    runtime.block_on(local.run_until(async move {
        tokio::time::timeout(timeout, drive(plan))
            .await
            .map_err(|_| "an answer is missing".to_owned())?
    }))
}

async fn drive(plan: Plan) -> Outcome<Sample> {
    let board = Rc::new(Board {
        phase: Cell::new(Phase::WarmUp),
        latencies_us: RefCell::new(Vec::with_capacity(1 << 20)),
        first_events_us: RefCell::default(),
        errors: Cell::new(0),
        first_error: RefCell::new(None),
    });
    let users: Vec<_> = (0..plan.connections)
        .map(|_| tokio::task::spawn_local(user(plan.address, plan.kind, plan.work, board.clone())))
        .collect();
    tokio::time::sleep(plan.warm_up).await;
    let database = || plan.database.map(Family::cpu).transpose();
    let (before, database_before, begun) = (plan.process.spent()?, database()?, Instant::now());
    board.phase.set(Phase::Measured);
    tokio::time::sleep(plan.measured).await;
    board.phase.set(Phase::Over);
    let (after, database_after, elapsed) = (plan.process.spent()?, database()?, begun.elapsed());
    for user in users {
        user.await?;
    }
    let mut latencies_us = board.latencies_us.take();
    let mut first_events_us = board.first_events_us.take();
    match board.first_error.take() {
        Some(error) if latencies_us.is_empty() => return Err(error.into()),
        Some(error) => writeln!(io::stderr(), "first error: {error}")?,
        None => {}
    }
    let first_event_ms = quantile_ms(&mut first_events_us, 0.5);
    let sample = sample(&mut latencies_us, elapsed, after - before, board.errors.get());
    let database_spent = database_after.zip(database_before).map(|(after, before)| after - before);
    let database_us = database_spent.map(|spent| per_unit_us(spent, latencies_us.len() as f64));
    Ok(Sample { first_event_ms, database_us, ..sample })
}

fn sample(latencies_us: &mut [u32], elapsed: Duration, spent: Spent, errors: usize) -> Sample {
    let units = latencies_us.len() as f64;
    Sample {
        rate: units / elapsed.as_secs_f64(),
        p50_ms: quantile_ms(latencies_us, 0.5).unwrap_or(f64::NAN),
        p99_ms: quantile_ms(latencies_us, 0.99).unwrap_or(f64::NAN),
        first_event_ms: None,
        cpu_us: per_unit_us(spent.cpu, units),
        sleeps: spent.sleeps as f64 / units,
        database_us: None,
        errors,
    }
}

fn per_unit_us(spent: Duration, units: f64) -> f64 {
    spent.as_secs_f64() * 1e6 / units
}

fn quantile_ms(times_us: &mut [u32], quantile: f64) -> Option<f64> {
    times_us.sort_unstable();
    // a position within a slice: the cast is exact enough
    let position = (times_us.len() as f64 * quantile) as usize;
    let time = times_us.get(position).or_else(|| times_us.last())?;
    Some(f64::from(*time) / 1000.0)
}

fn micros(duration: Duration) -> u32 {
    u32::try_from(duration.as_micros()).unwrap_or(u32::MAX)
}

/// Runs one connection until the end of the run.
async fn user(address: SocketAddr, kind: Kind, work: Work, board: Rc<Board>) {
    let first = work.first(kind);
    let mut open = None;
    while board.phase.get() != Phase::Over {
        let begun = Instant::now();
        match unit(&mut open, address, work, &first).await {
            Ok(first_event) if board.phase.get() == Phase::Measured => {
                board.latencies_us.borrow_mut().push(micros(begun.elapsed()));
                let first_event = first_event.map(|at| micros(at.duration_since(begun)));
                board.first_events_us.borrow_mut().extend(first_event);
            }
            Ok(_) => {}
            Err(error) => {
                open = None;
                board.errors.set(board.errors.get() + 1);
                board.first_error.borrow_mut().get_or_insert(error);
                // no tight loop over a server that refuses everything
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        }
    }
}

async fn unit(
    open: &mut Option<Connection>,
    address: SocketAddr,
    work: Work,
    first: &Request,
) -> Result<Option<Instant>, String> {
    let connection = match open {
        Some(connection) => connection,
        None => {
            let connection = Connection::open(address).await.map_err(|error| error.to_string())?;
            open.insert(connection)
        }
    };
    let answer = checked_call(connection, first, work.mark()).await?;
    let (first_event, second) = (answer.first_event, work.second(answer.body));
    if let Some(second) = second {
        checked_call(connection, &second?, Work::SECOND_MARK).await?;
    }
    Ok(first_event)
}

async fn checked_call<'c>(
    connection: &'c mut Connection,
    request: &Request,
    mark: &[u8],
) -> Result<Answer<'c>, String> {
    let answer = connection.call(request).await.map_err(|error| error.to_string())?;
    if answer.status == 200 && find(answer.body, mark).is_some() {
        return Ok(answer);
    }
    Err(format!("{}: {}", answer.status, String::from_utf8_lossy(answer.body)))
}
