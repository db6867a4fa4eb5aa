//! Clients work while the server is killed at random moments; nothing that it has acknowledged may
//! be lost, undone or done twice.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::ledger;
use super::promises::Promise;
use super::rng::Rng;
use support::client::{Events, Reply, Wire};
use support::server::{Home, Server};

const CLIENTS: usize = 16;
const KILLS: u64 = 30;
/// Longest life of a server after it is ready.
const LIFE_MS: u64 = 500;
/// Time limit for all executions that need no resume.
const HEALING: Duration = Duration::from_secs(30);

const WORKFLOWS: [&str; 6] = ["chain", "approval", "nap", "fan", "family", "nest"];

/// A client that starts and resumes executions and records every answer.
struct Client {
    number: usize,
    rng: Rng,
    count: u64,
    promises: Vec<Promise>,
}

impl Client {
    fn new(number: usize, rng: Rng) -> Self {
        Self { number, rng, count: 0, promises: Vec::new() }
    }

    /// Works until the server is gone.
    fn work(&mut self, address: SocketAddr) -> io::Result<()> {
        let mut wire = Wire::open(address)?;
        self.settle(&mut wire)?;
        loop {
            let waiting: Vec<_> =
                (0..self.promises.len()).filter(|index| self.promises[*index].is_waiting).collect();
            match self.rng.below(10) {
                0..4 if !waiting.is_empty() => {
                    let chosen = waiting[self.rng.below(waiting.len() as u64) as usize];
                    resume(&mut wire, &mut self.promises[chosen])?;
                }
                4 => self.stream(address)?,
                _ => {
                    let promise = self.promise();
                    self.promises.push(promise);
                    execute(&mut wire, self.promises.last_mut().unwrap())?;
                }
            }
        }
    }

    /// Repeats the unanswered requests: the same keys must give the answers now.
    fn settle(&mut self, wire: &mut Wire) -> io::Result<()> {
        for promise in self.promises.iter_mut().filter(|promise| promise.is_touched) {
            if promise.is_resuming {
                resume(wire, promise)?;
            } else if promise.completed.is_none() && !promise.is_waiting {
                execute(wire, promise)?;
            }
        }
        Ok(())
    }

    fn promise(&mut self) -> Promise {
        self.count += 1;
        let workflow = WORKFLOWS[self.rng.below(WORKFLOWS.len() as u64) as usize];
        let id = format!("{workflow}-{}-{}", self.number, self.count);
        Promise::new(workflow, id, self.rng.below(15))
    }

    /// Starts an execution over a stream and reads its events.
    fn stream(&mut self, address: SocketAddr) -> io::Result<()> {
        let promise = self.promise();
        self.promises.push(promise);
        let promise = self.promises.last_mut().unwrap();
        let mut wire = Wire::open(address)?;
        let path = format!("/workflows/{}/stream", promise.workflow);
        wire.send("POST", &path, &[], Some(promise.body.to_string().as_bytes()))?;
        let mut events = Events::read(wire)?;
        promise.is_acknowledged = true;
        assert_eq!(events.head.header("x-execution-id"), Some(&*promise.id));
        loop {
            let Some(event) = events.next()? else { return Ok(()) };
            let data = event.json();
            promise.is_acknowledged = true;
            promise.events.push(event);
            match data["type"].as_str().unwrap() {
                "workflow-suspended" => {
                    promise.is_waiting = true;
                    return Ok(());
                }
                "workflow-result" => promise.hear(&data),
                _ => {}
            }
        }
    }
}

/// Starts an execution, or repeats the start with the same key: there is one execution and one
/// answer.
fn execute(wire: &mut Wire, promise: &mut Promise) -> io::Result<()> {
    promise.is_touched = true;
    let path = format!("/workflows/{}/execute", promise.workflow);
    let reply = send(wire, &path, &promise.id, &promise.body)?;
    if reply.status == 409 {
        // started by a stream, which has no idempotency key
        assert_eq!(reply.error(), format!("Execution {} already exists", promise.id));
        promise.is_acknowledged = true;
        return Ok(());
    }
    promise.hear(&reply.data());
    Ok(())
}

/// Resumes, or repeats the resume with the same key, which takes effect once.
fn resume(wire: &mut Wire, promise: &mut Promise) -> io::Result<()> {
    promise.is_touched = true;
    promise.is_waiting = false;
    promise.is_resuming = true;
    let path = format!("/workflows/{}/executions/{}/resume", promise.workflow, promise.id);
    let reply = send(wire, &path, &promise.id, &json!({ "resumeData": { "approved": true } }))?;
    promise.hear(&reply.data());
    Ok(())
}

fn send(wire: &mut Wire, path: &str, key: &str, body: &Value) -> io::Result<Reply> {
    wire.send("POST", path, &[("idempotency-key", key)], Some(body.to_string().as_bytes()))?;
    wire.reply()
}

/// Runs the clients until the server is killed.
fn round(clients: &mut [Client], server: Server, life: Duration) {
    let address = server.address;
    let (ended, waiting) = channel::<()>();
    std::thread::scope(|scope| {
        for client in clients {
            let ended = ended.clone();
            scope.spawn(move || {
                let outcome = client.work(address);
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

fn check(clients: &mut [Client], server: &Server, ledger: &Path, everything: bool) {
    let mut shares: Vec<_> = clients.chunks_mut(4).collect();
    std::thread::scope(|scope| {
        for share in &mut shares {
            scope.spawn(|| {
                let promises = share.iter_mut().flat_map(|client| &mut client.promises);
                for promise in promises.filter(|promise| everything || promise.is_touched) {
                    promise.check(server, ledger);
                    promise.is_touched = promise.completed.is_none() && !promise.is_waiting;
                }
            });
        }
    });
    let lines = ledger::read(ledger);
    ledger::assert_sound(&lines);
    clients.iter().flat_map(|client| &client.promises).for_each(|it| it.check_ledger(&lines));
}

/// Waits for the executions that end without a resume, and resumes the others once, to their end.
fn heal(clients: &mut [Client], server: &Server) {
    let start = Instant::now();
    for promise in clients.iter_mut().flat_map(|client| &mut client.promises) {
        let path = format!("/workflows/{}/executions/{}/state", promise.workflow, promise.id);
        loop {
            let reply = server.get(&path);
            if reply.status == 404 {
                assert!(!promise.is_acknowledged, "lost: {promise:?}");
                break;
            }
            let state = reply.data();
            match state["status"].as_str().unwrap() {
                "completed" => {
                    assert_eq!(state["result"]["n"], promise.expected_n(), "{state}");
                    let mut wire = Wire::open(server.address).unwrap();
                    let late = format!("{}-late", promise.id);
                    let path = path.replace("/state", "/resume");
                    let body = json!({ "resumeData": { "approved": true } });
                    let refused = send(&mut wire, &path, &late, &body).unwrap();
                    assert_eq!(refused.status, 404, "resumed after its end: {state}");
                    break;
                }
                "suspended" => {
                    let mut wire = Wire::open(server.address).unwrap();
                    resume(&mut wire, promise).unwrap();
                }
                "running" => assert!(start.elapsed() < HEALING, "runs for ever: {state}"),
                other => panic!("{other}: {state}"),
            }
        }
    }
}

#[test]
fn acknowledged_work_is_never_lost_or_repeated() {
    let kills = std::env::var("GREENROOM_KILLS").map_or(KILLS, |text| text.parse().unwrap());
    let mut rng = Rng::new();
    // every interruption is a kill of this test: no step may fail because of them
    let home = Home::new("limits.crash_attempts = 1000");
    let ledger = home.ledger();
    let mut clients: Vec<_> = (0..CLIENTS).map(|number| Client::new(number, rng.split())).collect();
    let start = Instant::now();
    for kill in 0..kills {
        let server = Server::start(home.test_server());
        // sometimes it is killed again before it has recovered
        if kill > 0 && rng.below(3) > 0 {
            check(&mut clients, &server, &ledger, false);
        }
        round(&mut clients, server, Duration::from_millis(rng.below(LIFE_MS)));
    }
    let server = Server::start(home.test_server());
    check(&mut clients, &server, &ledger, true);
    heal(&mut clients, &server);
    check(&mut clients, &server, &ledger, true);

    let promises = || clients.iter().flat_map(|client| &client.promises);
    let acknowledged = promises().filter(|promise| promise.is_acknowledged).count();
    let lines = ledger::read(&ledger);
    let interrupted = lines.values().filter(|lines| lines.len() > 1).count();
    println!(
        "{kills} kills, {} executions, {acknowledged} acknowledged, 0 lost; {} steps, \
         {interrupted} interrupted and run again with the same key; {:.1} s",
        promises().count(),
        lines.len(),
        start.elapsed().as_secs_f64()
    );
    assert!(acknowledged > 0 && interrupted > 0, "the drill has drilled nothing");
}
