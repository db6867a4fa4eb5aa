//! Callers: they start the executions, and ask for those of the server that is lost.

use std::collections::BTreeSet;
use std::io;
use std::net::SocketAddr;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

use futures_util::future::try_join_all;

use crate::Outcome;
use crate::client::{Answer, Client};
use crate::executions::{Execution, Executions};

/// Callers at each server.
const CALLERS: usize = 32;
/// Time in which every execution must be answered for.
const TIMEOUT: Duration = Duration::from_secs(180);
/// Pause of a caller after a refusal.
const PAUSE: Duration = Duration::from_millis(50);

/// Times since the loss.
pub(crate) struct Times {
    /// First answers for an execution in each slot, in this order.
    pub(crate) slots: Vec<Duration>,
    /// Last answer of all.
    pub(crate) all: Duration,
    /// Answers other than 200, after which the request was sent again.
    pub(crate) refusals: usize,
}

/// Executions that callers take one after the other.
struct Queue(Mutex<Box<dyn Iterator<Item = Execution>>>);

impl Queue {
    fn new(executions: impl Iterator<Item = Execution> + 'static) -> Self {
        Self(Mutex::new(Box::new(executions)))
    }

    fn next(&self) -> Option<Execution> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).next()
    }
}

/// Starts executions, each at the server of its slot.
pub(crate) async fn fill(
    servers: &[SocketAddr],
    owners: &[usize],
    executions: Executions,
) -> Outcome<()> {
    let queue = Queue::new(executions.all());
    let caller = || async {
        let mut clients = Vec::new();
        for server in servers {
            clients.push(Client::open(*server).await?);
        }
        while let Some(execution) = queue.next() {
            let place = owners[execution.slot()];
            let (request, mark) = execution.start();
            match execution {
                // its answer would come when it has ended
                Execution::Running(_) => {
                    let client = Client::open(servers[place]).await?;
                    client.call_until(&request, mark).await?;
                }
                Execution::Suspended(_) => {
                    let answer = clients[place].call(&request).await?;
                    if !answer.text.contains(mark) {
                        let Answer { status, text } = answer;
                        return Err(io::Error::other(format!("{status}: {text}")));
                    }
                }
            }
        }
        Ok(())
    };
    try_join_all((0..CALLERS).map(|_| caller())).await?;
    Ok(())
}

/// Asks the servers for executions of another one that was lost just now: first for one in each
/// slot, all at once, then for the rest.
pub(crate) async fn ask(servers: &[SocketAddr], executions: &[Execution]) -> Outcome<Times> {
    tokio::time::timeout(TIMEOUT, ask_all(servers, executions))
        .await
        .map_err(|_| "some executions are not answered for")?
}

async fn ask_all(servers: &[SocketAddr], executions: &[Execution]) -> Outcome<Times> {
    let lost = Instant::now();
    let mut seen = BTreeSet::new();
    let firsts: Vec<Execution> =
        executions.iter().copied().filter(|execution| seen.insert(execution.slot())).collect();
    let first = |(server, execution): (&SocketAddr, &Execution)| {
        let (server, execution) = (*server, *execution);
        async move {
            let mut client = Client::open(server).await?;
            let refusals = answered(&mut client, execution).await?;
            io::Result::Ok((lost.elapsed(), refusals))
        }
    };
    let firsts_answered = try_join_all(servers.iter().cycle().zip(&firsts).map(first)).await?;
    let is_first: BTreeSet<String> = firsts.iter().map(|execution| execution.id()).collect();
    let rest: Vec<Execution> =
        executions.iter().copied().filter(|it| !is_first.contains(&it.id())).collect();
    let queue = Queue::new(rest.into_iter());
    let caller = |server: SocketAddr| {
        let queue = &queue;
        async move {
            let (mut client, mut refusals) = (Client::open(server).await?, 0);
            while let Some(execution) = queue.next() {
                refusals += answered(&mut client, execution).await?;
            }
            io::Result::Ok(refusals)
        }
    };
    let callers = servers.iter().flat_map(|server| (0..CALLERS).map(|_| *server));
    let refusals: usize = try_join_all(callers.map(caller)).await?.into_iter().sum();
    let (mut slots, refused): (Vec<_>, Vec<_>) = firsts_answered.into_iter().unzip();
    slots.sort_unstable();
    Ok(Times { slots, all: lost.elapsed(), refusals: refusals + refused.iter().sum::<usize>() })
}

/// Asks for an execution until it is answered for; returns the number of refusals.
async fn answered(client: &mut Client, execution: Execution) -> io::Result<usize> {
    let question = execution.question();
    for refusals in 0.. {
        let answer = client.call(&question).await?;
        match answer.status {
            200 => return Ok(refusals),
            503 => tokio::time::sleep(PAUSE).await,
            _ => return Err(io::Error::other(format!("{question}\n{}", answer.text))),
        }
    }
    Err(io::Error::other("only refusals"))
}
