//! The bare server's connections to PostgreSQL, with the batching of greenroom's lanes: one thread
//! drives them all, and each puts what is queued into one statement.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::error::Error;
use std::io::{self, Write};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::mpsc::{Sender, channel};

use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt as _, TryStreamExt as _};
use greenroom_actors::ports::clock::{Clock as _, SystemClock};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;
use tokio::task::LocalSet;
use tokio_postgres::{Client, NoTls};
use uuid::{Builder, Uuid};

use crate::batches::{Batched, Columns, Execution, Generation};
use crate::commits::BATCH_MAX;
use crate::records::{Change, Record};

/// Number of the lane of generations.
const GENERATIONS: i16 = -2;
/// Maximum number of lanes of executions, as greenroom's default.
const WRITERS: usize = 2;
const ADD_LANE: &str = "INSERT INTO lanes (node, lane, session, batch) VALUES (0, $1, 1, 0)";
/// Settings of greenroom's lanes.
const SETTINGS: &str = "SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off;
    SET enable_hashjoin = off; SET enable_mergejoin = off; SET jit = off";

/// Handle of the thread that commits.
pub(crate) struct Lanes {
    executions: Vec<Queue<Execution>>,
    generations: Queue<Generation>,
    last_row: AtomicI64,
}

type Queue<R> = UnboundedSender<Job<R>>;

struct Job<R> {
    row: R,
    done: oneshot::Sender<()>,
}

/// A connection that commits, before it is opened.
struct Lane<R> {
    number: i16,
    jobs: UnboundedReceiver<Job<R>>,
}

impl Lanes {
    /// Connects to a database that has greenroom's tables.
    pub(crate) fn open(url: &str) -> Result<Self, Box<dyn Error>> {
        // of greenroom's threads of actors, which are half as many as the cores, each has a lane
        let arbiters = std::thread::available_parallelism()?.get() / 2;
        let (executions, lanes) = (0..).take(arbiters.clamp(1, WRITERS)).map(Lane::new).unzip();
        let (generations, lane) = Lane::new(GENERATIONS);
        let (opened, is_open) = channel();
        let url = url.to_owned();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            let driven = LocalSet::new().block_on(&runtime, drive(&url, lanes, lane, &opened));
            driven.or_else(|error| writeln!(io::stderr(), "the store failed: {error}"))
        });
        is_open.recv()?;
        Ok(Self { executions, generations, last_row: AtomicI64::new(0) })
    }

    /// Returns an id like greenroom's, which grows with time. Its last half is the number of its
    /// row, by which a resume finds it.
    pub(crate) fn new_id(&self) -> Uuid {
        let mut random = [0; 10];
        let row = self.last_row.fetch_add(1, Ordering::Relaxed) + 1;
        random[2..].copy_from_slice(&row.to_be_bytes());
        let millis = u64::try_from(SystemClock.now().0).unwrap_or_default();
        Builder::from_unix_timestamp_millis(millis, &random).into_uuid()
    }

    /// Waits until the record is durable; false if the store failed.
    pub(crate) async fn add(&self, record: Record) -> bool {
        let Record { id, at, change } = record;
        // the variant of the UUID is in the upper two bits of its last half
        let row = Uuid::parse_str(&id).map_or(0, |id| id.as_u64_pair().1 << 2 >> 2);
        let row = i64::try_from(row).unwrap_or_default();
        let execution = match change {
            Change::Noop3 { input, n } => Execution::noop3(row, id, at, input, n),
            Change::Suspend { input, reason, .. } => {
                Execution::suspended(row, id, at, input, &reason)
            }
            Change::Resume { data, result } => Execution::resumed(row, at, data, result),
            Change::Generate { agent, text, usage } => {
                let generation = Generation::new(row, id, at, agent, text, usage);
                return committed(&self.generations, generation).await;
            }
        };
        let lane = usize::try_from(row).unwrap_or_default() % self.executions.len();
        committed(&self.executions[lane], execution).await
    }
}

async fn committed<R>(queue: &Queue<R>, row: R) -> bool {
    let (done, is_done) = oneshot::channel();
    queue.send(Job { row, done }).is_ok() && is_done.await.is_ok()
}

/// Runs all lanes; `opened` is notified when they are connected.
async fn drive(
    url: &str,
    executions: Vec<Lane<Execution>>,
    generations: Lane<Generation>,
    opened: &Sender<()>,
) -> Result<(), tokio_postgres::Error> {
    let running = FuturesUnordered::new();
    for lane in executions {
        let client = lane.connect(url).await?;
        running.push(lane.run(client).boxed_local());
    }
    let client = generations.connect(url).await?;
    running.push(generations.run(client).boxed_local());
    // an error: the server has ended
    let _ = opened.send(());
    running.try_collect().await
}

impl<R: Batched> Lane<R> {
    fn new(number: i16) -> (Queue<R>, Self) {
        let (queue, jobs) = unbounded_channel();
        (queue, Self { number, jobs })
    }

    async fn connect(&self, url: &str) -> Result<Client, tokio_postgres::Error> {
        let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
        tokio::task::spawn_local(connection);
        client.batch_execute(SETTINGS).await?;
        client.execute(ADD_LANE, &[&self.number]).await?;
        Ok(client)
    }

    /// Commits what is queued until the server ends.
    async fn run(mut self, client: Client) -> Result<(), tokio_postgres::Error> {
        let mut statements = HashMap::new();
        let mut batch = 0_i64;
        while let Some(first) = self.jobs.recv().await {
            let (mut rows, mut waiting) = (vec![first.row], vec![first.done]);
            while rows.len() < BATCH_MAX
                && let Ok(next) = self.jobs.try_recv()
            {
                rows.push(next.row);
                waiting.push(next.done);
            }
            batch += 1;
            let text = R::statement(&rows);
            let statement = match statements.entry(text) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(new) => new.insert(client.prepare(text).await?),
            };
            let columns = R::columns(&rows, Columns::of(batch, self.number));
            client.query_one(&*statement, &columns.values()).await?;
            for done in waiting {
                // the request may have been dropped
                let _ = done.send(());
            }
        }
        Ok(())
    }
}
