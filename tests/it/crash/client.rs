//! Clients of the drills: they start and resume executions, and note every answer.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::ledger::{self, Ledger};
use super::promises::Promise;
use super::rng::Rng;
use support::client::{Events, Reply, Wire};
use support::server::Server;

const CLIENTS: usize = 16;
/// Pause of a client after a refusal.
const RETRY_AFTER: Duration = Duration::from_millis(20);
/// One of so many executions is compared at all servers.
const AT_ALL: usize = 4;
/// Time limit for all executions that need no resume.
const HEALING: Duration = Duration::from_secs(30);

pub(super) const WORKFLOWS: &[&str] = &["chain", "approval", "nap", "fan", "family", "nest"];

/// Workflow and id of an execution.
pub(super) type Named = (&'static str, String);

/// A client that starts and resumes executions and records every answer.
pub(super) struct Client {
    number: usize,
    rng: Rng,
    count: u64,
    pub(super) promises: Vec<Promise>,
    /// Place of the promise that the last command was about, and of the one that the last request
    /// was about.
    used: usize,
    asked: usize,
    /// Codes of refusals after which a request is repeated.
    pub(super) refusable: &'static [&'static str],
    /// Workflows that are started.
    pub(super) workflows: &'static [&'static str],
    /// Executions, in the order in which all clients with this list begin them.
    pub(super) begun: Arc<Mutex<Vec<Named>>>,
}

impl Client {
    fn new(number: usize, rng: Rng) -> Self {
        Self {
            number,
            rng,
            count: 0,
            promises: Vec::new(),
            used: 0,
            asked: 0,
            refusable: &["store_unavailable"],
            workflows: WORKFLOWS,
            begun: Arc::default(),
        }
    }

    /// Returns the clients of a drill.
    pub(super) fn crowd(rng: &mut Rng) -> Vec<Self> {
        (0..CLIENTS).map(|number| Self::new(number, rng.split())).collect()
    }

    /// Works until the server is gone.
    fn work(&mut self, address: SocketAddr) -> io::Result<()> {
        let mut wire = Wire::open(address)?;
        self.settle(&mut wire)?;
        loop {
            if !self.act(&mut wire, address)? {
                self.settle(&mut wire)?;
            }
        }
    }

    /// Reads the state of one execution and compares it with what is known.
    pub(super) fn look(&mut self, wire: &mut Wire, ledger: &Path) -> io::Result<bool> {
        let Some(last) = self.promises.len().checked_sub(1) else { return Ok(true) };
        self.asked = self.rng.below(last as u64 + 1) as usize;
        let promise = &mut self.promises[self.asked];
        let path = format!("/workflows/{}/executions/{}/state", promise.workflow, promise.id);
        wire.send("GET", &path, &[], None)?;
        let reply = wire.reply()?;
        if reply.status == 404 {
            assert!(!promise.is_acknowledged, "lost: {promise:?}");
            return Ok(true);
        }
        let is_read = !promise.is_refused(&reply);
        if is_read {
            promise.check_state(&reply.data(), ledger);
        }
        Ok(is_read)
    }

    /// Sends a request chosen at random. Returns false if it was refused.
    pub(super) fn act(&mut self, wire: &mut Wire, address: SocketAddr) -> io::Result<bool> {
        let waiting: Vec<_> =
            (0..self.promises.len()).filter(|index| self.promises[*index].is_waiting).collect();
        match self.rng.below(10) {
            0..4 if !waiting.is_empty() => {
                self.used = waiting[self.rng.below(waiting.len() as u64) as usize];
                self.asked = self.used;
                resume(wire, &mut self.promises[self.used])
            }
            4 => {
                self.begin();
                self.stream(address)
            }
            _ => execute(wire, self.begin()),
        }
    }

    /// Repeats the last request if it was not answered. Returns false if that was refused.
    pub(super) fn repeat(&mut self, wire: &mut Wire) -> io::Result<bool> {
        self.asked = self.used;
        self.promises.get_mut(self.used).map_or(Ok(true), |promise| repeat(wire, promise))
    }

    /// Returns the code of the last refusal, if the last request was refused.
    pub(super) fn refusal(&self) -> &str {
        &self.promises[self.asked].refusal
    }

    /// Repeats the unanswered requests: the same keys must give the answers now, or as soon as the
    /// store answers again.
    fn settle(&mut self, wire: &mut Wire) -> io::Result<()> {
        for promise in self.promises.iter_mut().filter(|promise| promise.is_touched) {
            while !repeat(wire, promise)? {
                std::thread::sleep(RETRY_AFTER);
            }
        }
        Ok(())
    }

    /// Chooses the next execution to start.
    fn begin(&mut self) -> &mut Promise {
        self.count += 1;
        let workflow = self.workflows[self.rng.below(self.workflows.len() as u64) as usize];
        let id = format!("{workflow}-{}-{}", self.number, self.count);
        self.begun.lock().unwrap().push((workflow, id.clone()));
        (self.used, self.asked) = (self.promises.len(), self.promises.len());
        let promise = Promise::new(workflow, id, self.rng.below(15));
        self.promises.push(Promise { refusable: self.refusable, ..promise });
        &mut self.promises[self.used]
    }

    /// Starts the chosen execution over a stream and reads its events. Returns false if that was refused.
    fn stream(&mut self, address: SocketAddr) -> io::Result<bool> {
        let promise = &mut self.promises[self.used];
        let mut wire = Wire::open(address)?;
        let path = format!("/workflows/{}/stream", promise.workflow);
        wire.send("POST", &path, &[], Some(promise.body.to_string().as_bytes()))?;
        let head = wire.head()?;
        if promise.is_refused(&head) {
            return Ok(false);
        }
        let mut events = Events::after(head, wire)?;
        promise.is_acknowledged = true;
        assert_eq!(events.head.header("x-execution-id"), Some(&*promise.id));
        loop {
            let Some(event) = events.next()? else { return Ok(true) };
            let data = event.json();
            promise.is_acknowledged = true;
            promise.events.push(event);
            match data["type"].as_str().unwrap() {
                "workflow-suspended" => {
                    promise.is_waiting = true;
                    return Ok(true);
                }
                "workflow-result" => promise.hear(&data),
                _ => {}
            }
        }
    }
}

/// Repeats the last request of an execution, if it was not answered. Returns false if it is refused.
fn repeat(wire: &mut Wire, promise: &mut Promise) -> io::Result<bool> {
    if promise.is_resuming {
        resume(wire, promise)
    } else if promise.completed.is_none() && !promise.is_waiting {
        execute(wire, promise)
    } else {
        Ok(true)
    }
}

/// Starts an execution, or repeats the start with the same key: there is one execution and one
/// answer. Returns false if that was refused.
fn execute(wire: &mut Wire, promise: &mut Promise) -> io::Result<bool> {
    promise.is_touched = true;
    let path = format!("/workflows/{}/execute", promise.workflow);
    let reply = send(wire, &path, &promise.id, &promise.body)?;
    if reply.status == 409 {
        // started by a stream, which has no idempotency key
        assert_eq!(reply.error(), format!("Execution {} already exists", promise.id));
        promise.is_acknowledged = true;
        return Ok(true);
    }
    Ok(promise.answer(&reply))
}

/// Resumes, or repeats the resume with the same key, which takes effect once. Returns false if that
/// was refused.
fn resume(wire: &mut Wire, promise: &mut Promise) -> io::Result<bool> {
    promise.is_touched = true;
    promise.is_waiting = false;
    promise.is_resuming = true;
    let path = format!("/workflows/{}/executions/{}/resume", promise.workflow, promise.id);
    let reply = send(wire, &path, &promise.id, &json!({ "resumeData": { "approved": true } }))?;
    Ok(promise.answer(&reply))
}

fn send(wire: &mut Wire, path: &str, key: &str, body: &Value) -> io::Result<Reply> {
    wire.send("POST", path, &[("idempotency-key", key)], Some(body.to_string().as_bytes()))?;
    wire.reply()
}

/// Runs the clients until the server is killed.
pub(super) fn round(clients: &mut [Client], server: Server, life: Duration) {
    live(clients, server, life, Client::work);
}

/// Runs clients of any kind until the server is killed, which their work notices.
pub(super) fn live<C: Send>(
    clients: &mut [C],
    server: Server,
    life: Duration,
    work: impl Fn(&mut C, SocketAddr) -> io::Result<()> + Sync,
) {
    let address = server.address;
    let (ended, waiting) = channel::<()>();
    std::thread::scope(|scope| {
        for client in clients {
            let (ended, work) = (ended.clone(), &work);
            scope.spawn(move || {
                let outcome = work(client, address);
                drop(ended);
                assert!(outcome.is_err());
            });
        }
        drop(ended);
        // no message is ever sent: the wait ends early only when every client is done
        let _ = waiting.recv_timeout(life);
        server.kill();
    });
}

/// Calls a function with every promise, four at a time.
fn for_each(clients: &mut [Client], act: impl Fn(&mut Promise) + Sync) {
    std::thread::scope(|scope| {
        for share in clients.chunks_mut(CLIENTS / 4) {
            scope.spawn(|| {
                share.iter_mut().flat_map(|client| &mut client.promises).for_each(&act);
            });
        }
    });
}

/// Compares the executions that were used since the last check, or all, with their promises.
pub(super) fn check(clients: &mut [Client], server: &Server, ledger: &Path, everything: bool) {
    for_each(clients, |promise| {
        if everything || promise.is_touched {
            promise.check(server, ledger);
            promise.is_touched = promise.completed.is_none() && !promise.is_waiting;
        }
    });
    check_ledger(clients, &ledger::read(ledger));
}

/// Compares every execution with its promise at one of the servers, and some at all of them.
pub(super) fn check_at(clients: &mut [Client], servers: &[&Server], ledger: &Path) {
    let turns = AtomicUsize::new(0);
    for_each(clients, |promise| {
        let turn = turns.fetch_add(1, Ordering::Relaxed);
        let number = if turn.is_multiple_of(AT_ALL) { servers.len() } else { 1 };
        // each has the events that the one before it has
        for server in servers.iter().cycle().skip(turn % servers.len()).take(number) {
            promise.check(server, ledger);
        }
    });
}

/// Compares attempts with the promises.
pub(super) fn check_ledger(clients: &[Client], lines: &Ledger) {
    ledger::assert_sound(lines);
    clients.iter().flat_map(|client| &client.promises).for_each(|it| it.check_ledger(lines));
}

/// Waits for the executions that end without a resume, and resumes the others once, to their end.
/// Each request is sent to the next of the servers. On a busy machine one may not beat in time, even
/// without faults: it refuses requests, and its successor has another address.
pub(super) fn heal(clients: &mut [Client], servers: &[&Server], ledger: &Path) {
    let start = Instant::now();
    let turn = AtomicUsize::new(0);
    let open = || Wire::open(servers[turn.fetch_add(1, Ordering::Relaxed) % servers.len()].address);
    let again = |why: &str| {
        assert!(start.elapsed() < HEALING, "{why}");
        std::thread::sleep(RETRY_AFTER);
    };
    let answered = |ask: &dyn Fn(&mut Wire) -> io::Result<Reply>| loop {
        match open().and_then(|mut wire| ask(&mut wire)) {
            Ok(reply) if reply.status != 503 => return reply,
            refused => again(&format!("refused for ever: {refused:?}")),
        }
    };
    for_each(clients, |promise| {
        let path = format!("/workflows/{}/executions/{}/state", promise.workflow, promise.id);
        loop {
            let reply = answered(&|wire| {
                wire.send("GET", &path, &[], None)?;
                wire.reply()
            });
            if reply.status == 404 {
                assert!(!promise.is_acknowledged, "lost: {promise:?}");
                break;
            }
            let state = reply.data();
            promise.check_state(&state, ledger);
            match state["status"].as_str().unwrap() {
                "completed" => {
                    assert_eq!(state["result"]["n"], promise.expected_n(), "{state}");
                    let late = format!("{}-late", promise.id);
                    let path = path.replace("/state", "/resume");
                    let body = json!({ "resumeData": { "approved": true } });
                    let refused = answered(&|wire| send(wire, &path, &late, &body));
                    assert_eq!(refused.status, 404, "resumed after its end: {state}");
                    break;
                }
                "suspended" => {
                    let resumed = open().and_then(|mut wire| resume(&mut wire, promise));
                    if !matches!(resumed, Ok(true)) {
                        again(&format!("refused for ever: {promise:?}: {resumed:?}"));
                    }
                }
                "running" => again(&format!("runs for ever: {state}")),
                other => panic!("{other}: {state}"),
            }
        }
    });
}
