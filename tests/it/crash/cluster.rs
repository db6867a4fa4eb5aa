//! Three servers over one database, while they are killed, paused, stopped and lose the database,
//! which fails as well: clients send each request to any of them.

mod member;

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use self::member::{Member, Suffered, between, is_ready};
use super::client::{Client, check_answers, check_ledger, heal};
use super::ledger;
use super::rng::Rng;
use support::client::{Reply, Wire};
use support::eventually;
use support::postgres::Server as Database;
use support::server::Server;

/// Environment variable: duration of the faults, in seconds.
const SECONDS: &str = "GREENROOM_DRILL_SECONDS";
const SECONDS_DEFAULT: u64 = 20;
/// Time between two faults of the database, shortest and longest.
const LULL_MS: (u64, u64) = (1_000, 6_000);
/// Longest time without the database; servers that start wait for it.
const OUTAGE_MS: u64 = 2_000;
/// Pause of a client after an error.
const RETRY_AFTER: Duration = Duration::from_millis(20);
/// Time limit for peace after the last fault, and then for the last requests of the clients.
const ENDING: Duration = Duration::from_secs(60);
/// Callers who resume one execution at once.
const RACERS: usize = 9;

/// Refusals that a fault explains.
const REFUSABLE: &[&str] =
    &["store_unavailable", "execution_moved", "server_unreachable", "draining"];

/// Rows that should not be there: lanes and slots of servers that are not members, and slots
/// without an owner.
const LEFT_BEHIND: &str = "WITH live AS (SELECT node FROM nodes WHERE state < 2) SELECT \
    (SELECT count(*) FROM lanes WHERE node NOT IN (SELECT node FROM live)) \
    + (SELECT count(*) FROM slots WHERE node IS NULL OR node NOT IN (SELECT node FROM live))";

/// True if the slots are shared out: a member keeps some more than its share.
const ARE_SHARED_OUT: &str = "SELECT count(*) = 3 AND max(share) < 1400 FROM \
    (SELECT count(*) AS share FROM slots GROUP BY node) AS shares";

struct Cluster<'d> {
    database: &'d Database,
    url: String,
    members: Vec<Member>,
    /// Held by servers that start, and while the database is away.
    starting: Arc<RwLock<()>>,
    /// The last fault is over, and the clients have to end.
    is_over: AtomicBool,
    /// A check has failed: everything has to end.
    has_failed: AtomicBool,
    /// Longest time in which a request was answered, repeats included, in milliseconds.
    longest: AtomicU64,
    /// Number of requests whose connection broke, or was refused.
    broken: AtomicU64,
}

/// Numbers of faults of the database.
#[derive(Default)]
struct Outages {
    crashes: u64,
    terminations: u64,
}

/// Ends the other threads when a check has failed on this one.
struct Alarm<'a>(&'a AtomicBool);

impl Drop for Alarm<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.store(true, Ordering::SeqCst);
        }
    }
}

impl Cluster<'_> {
    fn alarm(&self) -> Alarm<'_> {
        Alarm(&self.has_failed)
    }

    /// Panics if a check has failed elsewhere.
    fn assert_not_failed(&self) {
        assert!(!self.has_failed.load(Ordering::SeqCst), "another check has failed");
    }

    /// Opens a connection to one of the servers.
    fn open(&self, rng: &mut Rng) -> io::Result<Wire> {
        let member = &self.members[rng.below(self.members.len() as u64) as usize];
        Wire::open(member.address().ok_or(io::ErrorKind::NotConnected)?)
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::SeqCst)
    }

    /// Notes that a connection broke. Silence is no fault of a connection.
    fn note(&self, error: &io::Error) {
        let is_silence = [io::ErrorKind::WouldBlock, io::ErrorKind::TimedOut];
        assert!(!is_silence.contains(&error.kind()), "a request was not answered: {error}");
        self.broken.fetch_add(1, Ordering::Relaxed);
    }

    /// Works until the faults are over, and until every request was answered.
    fn work(&self, client: &mut Client, rng: &mut Rng, ledger: &Path) {
        let _alarm = self.alarm();
        let mut asked = None;
        loop {
            self.assert_not_failed();
            let outcome = self.open(rng).and_then(|mut wire| match asked {
                Some(_) => client.repeat(&mut wire),
                None if rng.below(4) == 0 => client.look(&mut wire, ledger),
                None => {
                    asked = Some(Instant::now());
                    let address = wire.stream.get_ref().peer_addr()?;
                    client.act(&mut wire, address)
                }
            });
            match outcome {
                Ok(true) => {
                    if let Some(asked) = asked.take() {
                        let time = u64::try_from(asked.elapsed().as_millis()).unwrap();
                        self.longest.fetch_max(time, Ordering::Relaxed);
                    }
                    if self.is_over() {
                        return;
                    }
                }
                Ok(false) => std::thread::sleep(RETRY_AFTER),
                Err(error) => {
                    self.note(&error);
                    std::thread::sleep(RETRY_AFTER);
                }
            }
        }
    }

    /// Sends a request with a key, to one server after the other, until it is answered.
    fn ask(&self, rng: &mut Rng, path: &str, key: &str, body: &Value) -> Reply {
        let body = body.to_string();
        let _alarm = self.alarm();
        loop {
            self.assert_not_failed();
            let reply = self.open(rng).and_then(|mut wire| {
                let key = [("idempotency-key", key)];
                wire.send("POST", path, &key, Some(body.as_bytes()))?;
                wire.reply()
            });
            match reply {
                Ok(reply) if reply.status != 503 => return reply,
                Ok(reply) => {
                    let code = reply.header("x-error-code").unwrap_or_default();
                    assert!(REFUSABLE.contains(&code), "{reply:?}");
                }
                Err(error) => self.note(&error),
            }
            std::thread::sleep(RETRY_AFTER);
        }
    }

    /// Lets many callers resume the same execution at once, again and again; returns how often.
    fn race(&self, rng: &mut Rng) -> u64 {
        let _alarm = self.alarm();
        for round in 0.. {
            if self.is_over() {
                return round;
            }
            let id = format!("race-{round}");
            let body = json!({ "input": { "n": 0 }, "options": { "executionId": id } });
            let started = self.ask(rng, "/workflows/approval/execute", &id, &body);
            assert_eq!(started.data()["status"], "suspended");
            let path = format!("/workflows/approval/executions/{id}/resume");
            let body = json!({ "resumeData": { "approved": true } });
            let replies: Vec<Reply> = std::thread::scope(|scope| {
                let racers = (0..RACERS).map(|number| {
                    let (mut rng, path, body) = (rng.split(), &path, &body);
                    let key = format!("{id}-{number}");
                    scope.spawn(move || self.ask(&mut rng, path, &key, body))
                });
                let racers: Vec<_> = racers.collect();
                racers.into_iter().map(|racer| racer.join().unwrap()).collect()
            });
            let won = replies.iter().filter(|reply| reply.status == 200).count();
            assert_eq!(won, 1, "{id}: {replies:#?}");
            let lost = replies.iter().filter(|reply| reply.status == 404).count();
            assert_eq!(lost, RACERS - 1, "{id}: {replies:#?}");
        }
        unreachable!("the faults end")
    }

    /// Ends the database and the connections to it, again and again.
    fn disturb_database(&self, rng: &mut Rng, until: Instant) -> Outages {
        let mut outages = Outages::default();
        loop {
            std::thread::sleep(between(rng, LULL_MS));
            if Instant::now() >= until {
                return outages;
            }
            if outages.crashes > 0 && rng.below(2) == 0 {
                outages.terminations += 1;
                self.database.sql(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
                     WHERE application_name LIKE 'greenroom/%'",
                );
            } else {
                outages.crashes += 1;
                let _away = self.starting.write().unwrap_or_else(PoisonError::into_inner);
                self.database.stop_immediate();
                std::thread::sleep(Duration::from_millis(rng.below(OUTAGE_MS)));
                self.database.start_again();
            }
        }
    }

    /// Waits until every server takes requests and the slots are shared out.
    fn settle(&self, servers: Vec<Server>, suffered: &mut Suffered) -> Vec<Server> {
        let members = self.members.iter().zip(servers);
        let servers: Vec<_> =
            members.map(|(member, server)| member.recovered(server, suffered)).collect();
        let deadline = Instant::now() + ENDING;
        let answers = |sql, expected| {
            self.database.answer(&self.url, sql).is_ok_and(|answer| answer == expected)
        };
        while !answers(LEFT_BEHIND, "0")
            || !answers(ARE_SHARED_OUT, "t")
            || !servers.iter().all(is_ready)
        {
            assert!(Instant::now() < deadline, "there is no peace");
            std::thread::sleep(RETRY_AFTER);
        }
        servers
    }

    /// Lets the servers and the database suffer while clients work.
    fn storm(
        &self,
        clients: &mut [Client],
        rng: &mut Rng,
        seconds: u64,
        ledger: &Path,
    ) -> (Vec<Server>, Suffered, Outages, u64) {
        let mut servers: Vec<_> = self.members.iter().map(Member::start).collect();
        let until = Instant::now() + Duration::from_secs(seconds);
        let (working, done) = channel::<()>();
        std::thread::scope(|scope| {
            let _alarm = self.alarm();
            for client in clients {
                let (mut rng, working) = (rng.split(), working.clone());
                scope.spawn(move || {
                    self.work(client, &mut rng, ledger);
                    drop(working);
                });
            }
            let (mut races, racing) = (rng.split(), working);
            let racing = scope.spawn(move || {
                let _working = racing;
                self.race(&mut races)
            });
            let suffering = self.members.iter().zip(servers.drain(..)).map(|(member, server)| {
                let mut rng = rng.split();
                scope.spawn(move || {
                    let _alarm = self.alarm();
                    member.suffer(server, &mut rng, until)
                })
            });
            let suffering: Vec<_> = suffering.collect();
            let outages = self.disturb_database(rng, until);
            let mut suffered = Suffered::default();
            for member in suffering {
                let (server, by_it) = member.join().unwrap();
                servers.push(server);
                suffered += by_it;
            }
            let servers = self.settle(servers, &mut suffered);
            self.is_over.store(true, Ordering::SeqCst);
            // no message is ever sent: the wait ends early only when every client is done
            let is_stuck = done.recv_timeout(ENDING) == Err(RecvTimeoutError::Timeout);
            if is_stuck {
                drop(servers);
                panic!("requests are not answered");
            }
            (servers, suffered, outages, racing.join().unwrap())
        })
    }

    /// Returns how long it takes others to take over from a killed server.
    fn time_takeover(&self, killed: Server, name: &str) -> Duration {
        let node = format!("SELECT max(node) FROM nodes WHERE name = '{name}'");
        let node = self.database.answer(&self.url, &node).unwrap();
        killed.kill();
        let begin = Instant::now();
        let left = format!("SELECT count(*) FROM slots WHERE node IS NULL OR node = {node}");
        eventually("a takeover", || {
            (self.database.answer(&self.url, &left).unwrap() == "0").then_some(())
        });
        begin.elapsed()
    }
}

#[test]
fn acknowledged_work_survives_the_faults_of_a_cluster() {
    let Some(database) = Database::start() else { return };
    let seconds = std::env::var(SECONDS).map_or(SECONDS_DEFAULT, |text| text.parse().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let ledger = folder.path().join("ledger");
    let url = database.fresh_url();
    let starting = Arc::default();
    let member = |name| Member::new(name, &database, &url, ledger.clone(), Arc::clone(&starting));
    let cluster = Cluster {
        members: ["a", "b", "c"].map(member).into(),
        starting: Arc::clone(&starting),
        database: &database,
        url: url.clone(),
        is_over: AtomicBool::new(false),
        has_failed: AtomicBool::new(false),
        longest: AtomicU64::new(0),
        broken: AtomicU64::new(0),
    };
    let mut rng = Rng::new();
    let mut clients = Client::crowd(&mut rng);
    clients.iter_mut().for_each(|client| client.refusable = REFUSABLE);
    let (mut servers, suffered, outages, races) =
        cluster.storm(&mut clients, &mut rng, seconds, &ledger);

    let refusals = |clients: &[Client]| {
        let promises = clients.iter().flat_map(|client| &client.promises);
        promises.map(|promise| promise.refusals).sum::<u64>()
    };
    let refused = refusals(&clients);
    let check = |clients: &mut [Client], servers: &[Server]| {
        // each has the events that the one before it has
        servers.iter().for_each(|server| check_answers(clients, server, &ledger, true));
        let mut lines = ledger::read(&ledger);
        let late = ledger::take_late(&mut lines);
        let is_awakening =
            |at: usize| suffered.awakenings.iter().any(|(begin, end)| (*begin..*end).contains(&at));
        let mut unexplained = late.iter().filter(|(_, at)| !is_awakening(*at));
        assert_eq!(unexplained.next(), None, "of {late:?}; {:?}", suffered.awakenings);
        check_ledger(clients, &lines);
        (lines, late.len())
    };
    check(&mut clients, &servers[..1]);
    heal(&mut clients, &servers.iter().collect::<Vec<_>>());
    let (lines, late) = check(&mut clients, &servers);
    assert_eq!(refusals(&clients), refused, "errors in peace");
    let takeover = cluster.time_takeover(servers.remove(0), "a");

    let promises = || clients.iter().flat_map(|client| &client.promises);
    let acknowledged = promises().filter(|promise| promise.is_acknowledged).count();
    let interrupted = lines.values().filter(|lines| lines.len() > 1).count();
    println!(
        "{suffered}, {} crashes of the database, {} terminations of its connections; {} \
         executions, {acknowledged} acknowledged, 0 lost; {refused} requests refused, {} broken, \
         the slowest answered after {} ms; {races} races; {} steps, {interrupted} interrupted and \
         run again with the same key, {late} begun late; a takeover in {} ms",
        outages.crashes,
        outages.terminations,
        promises().count(),
        cluster.broken.load(Ordering::Relaxed),
        cluster.longest.load(Ordering::Relaxed),
        lines.len(),
        takeover.as_millis()
    );
    assert!(acknowledged > 0 && races > 0, "the drill has drilled nothing");
}
