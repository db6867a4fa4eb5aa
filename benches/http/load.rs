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
    /// Servers, between which the connections are divided.
    pub(crate) addresses: Vec<SocketAddr>,
    pub(crate) processes: Vec<Process>,
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
    /// Median time of the second request; `None` for units of one.
    pub(crate) second_ms: Option<f64>,
    /// CPU of the servers, user and system, per unit.
    pub(crate) cpu_us: f64,
    /// Voluntary context switches of the servers, per unit.
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
        if let Some(ms) = self.second_ms {
            write!(formatter, ", second request {ms:.3} ms")?;
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
    /// Times of the second requests.
    seconds_us: RefCell<Vec<u32>>,
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
        seconds_us: RefCell::default(),
        errors: Cell::new(0),
        first_error: RefCell::new(None),
    });
    let users: Vec<_> = (0..plan.connections)
        .map(|number| tokio::task::spawn_local(User::new(&plan, number).run(board.clone())))
        .collect();
    tokio::time::sleep(plan.warm_up).await;
    let database = || plan.database.map(Family::cpu).transpose();
    let spent = || plan.processes.iter().map(|process| process.spent()).sum::<io::Result<Spent>>();
    let (before, database_before, begun) = (spent()?, database()?, Instant::now());
    board.phase.set(Phase::Measured);
    tokio::time::sleep(plan.measured).await;
    board.phase.set(Phase::Over);
    let (after, database_after, elapsed) = (spent()?, database()?, begun.elapsed());
    for user in users {
        user.await?;
    }
    let mut latencies_us = board.latencies_us.take();
    match board.first_error.take() {
        Some(error) if latencies_us.is_empty() => return Err(error.into()),
        Some(error) => writeln!(io::stderr(), "first error: {error}")?,
        None => {}
    }
    let first_event_ms = quantile_ms(&mut board.first_events_us.take(), 0.5);
    let second_ms = quantile_ms(&mut board.seconds_us.take(), 0.5);
    let sample = sample(&mut latencies_us, elapsed, after - before, board.errors.get());
    let database_spent = database_after.zip(database_before).map(|(after, before)| after - before);
    let database_us = database_spent.map(|spent| per_unit_us(spent, latencies_us.len() as f64));
    Ok(Sample { first_event_ms, second_ms, database_us, ..sample })
}

fn sample(latencies_us: &mut [u32], elapsed: Duration, spent: Spent, errors: usize) -> Sample {
    let units = latencies_us.len() as f64;
    Sample {
        rate: units / elapsed.as_secs_f64(),
        p50_ms: quantile_ms(latencies_us, 0.5).unwrap_or(f64::NAN),
        p99_ms: quantile_ms(latencies_us, 0.99).unwrap_or(f64::NAN),
        first_event_ms: None,
        second_ms: None,
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

/// The user of one connection, or of two if the second requests are sent to another server.
struct User {
    work: Work,
    first: Request,
    server: SocketAddr,
    second_server: SocketAddr,
    open: Option<Connection>,
    second_open: Option<Connection>,
}

/// A unit that was answered.
struct Answered {
    first_event: Option<Instant>,
    /// Time of the second request.
    second: Option<Duration>,
}

impl User {
    fn new(plan: &Plan, number: usize) -> Self {
        let Plan { addresses, work, kind, .. } = plan;
        let address = |number: usize| addresses[number % addresses.len()];
        let second_server = if *kind == Kind::Scattered { number + 1 } else { number };
        Self {
            work: *work,
            first: work.first(*kind),
            server: address(number),
            second_server: address(second_server),
            open: None,
            second_open: None,
        }
    }

    /// Repeats the unit until the end of the run.
    async fn run(mut self, board: Rc<Board>) {
        while board.phase.get() != Phase::Over {
            let begun = Instant::now();
            match self.unit().await {
                Ok(answered) if board.phase.get() == Phase::Measured => {
                    board.latencies_us.borrow_mut().push(micros(begun.elapsed()));
                    let first_event =
                        answered.first_event.map(|at| micros(at.duration_since(begun)));
                    board.first_events_us.borrow_mut().extend(first_event);
                    board.seconds_us.borrow_mut().extend(answered.second.map(micros));
                }
                Ok(_) => {}
                Err(error) => {
                    (self.open, self.second_open) = (None, None);
                    board.errors.set(board.errors.get() + 1);
                    board.first_error.borrow_mut().get_or_insert(error);
                    // no tight loop over a server that refuses everything
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            }
        }
    }

    async fn unit(&mut self) -> Result<Answered, String> {
        let connection = opened(&mut self.open, self.server).await?;
        let answer = checked_call(connection, &self.first, self.work.mark()).await?;
        let (first_event, second) = (answer.first_event, self.work.second(answer.body));
        let Some(second) = second else { return Ok(Answered { first_event, second: None }) };
        let is_elsewhere = self.second_server != self.server;
        let open = if is_elsewhere { &mut self.second_open } else { &mut self.open };
        let connection = opened(open, self.second_server).await?;
        let begun = Instant::now();
        checked_call(connection, &second?, Work::SECOND_MARK).await?;
        Ok(Answered { first_event, second: Some(begun.elapsed()) })
    }
}

async fn opened(
    open: &mut Option<Connection>,
    server: SocketAddr,
) -> Result<&mut Connection, String> {
    match open {
        Some(connection) => Ok(connection),
        None => {
            let connection = Connection::open(server).await.map_err(|error| error.to_string())?;
            Ok(open.insert(connection))
        }
    }
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
