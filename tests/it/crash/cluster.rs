//! Three servers over one database, while they are killed, paused, stopped and lose the database
//! and each other, and the database fails: clients send each request to any of them.

mod callers;
mod checks;
mod failure;
mod generations;
mod member;
mod readers;
mod takeovers;
mod weather;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::thread::{Scope, ScopedJoinHandle};
use std::time::{Duration, Instant};

use self::callers::{REFUSABLE, RETRY_AFTER};
use self::checks::Outcome;
use self::failure::Failure;
use self::member::{Life, Member, Surroundings, between};
use self::readers::Captured;
use self::weather::Weather;
use super::client::{Client, Named, WORKFLOWS, heal};
use super::rng::Rng;
use support::clock::WrongClock;
use support::postgres::Server as Database;
use support::server::Server;

/// Environment variable: duration of the faults, in seconds.
const SECONDS: &str = "GREENROOM_DRILL_SECONDS";
const SECONDS_DEFAULT: u64 = 60;
/// Duration of the faults between two calms.
const STORM: Duration = Duration::from_secs(15);
/// Duration of a calm, in which callers continue, and of the last one.
const CALM: Duration = Duration::from_secs(2);
const PEACE: Duration = Duration::from_secs(5);
/// Time after the last fault in which callers may still get errors. Usually there are none after two
/// seconds; an attempt to connect that began in a fault is given up after five, and the machine may
/// be busy with other tests.
const AFTERMATH: Duration = Duration::from_secs(10);
/// Time between two faults of the database, shortest and longest.
const LULL_MS: (u64, u64) = (1_000, 6_000);
/// Longest time without the database; servers that start wait for it.
const OUTAGE_MS: u64 = 2_000;
/// Time limit for a calm to begin, and after the faults for the last requests of the clients.
const ENDING: Duration = Duration::from_secs(60);
const READERS: usize = 8;
const AGENT_CALLERS: usize = 2;

/// Workflows without timers, which fire a day late if the next owner of their execution has a clock
/// that is a day behind.
const UNTIMED: &[&str] = &["chain", "approval", "fan", "family", "nest"];

/// Keys of every member. Idempotency keys are stored for longer than clocks differ.
const CONFIG: &str =
    "[limits]\ncrash_attempts = 1000\nheartbeat = \"1s\"\nidempotency_ttl = \"7d\"\n";

/// Rows that should not be there: lanes and slots of servers that are not members, and slots
/// without an owner.
const LEFT_BEHIND: &str = "WITH live AS (SELECT node FROM nodes WHERE state < 2) SELECT \
    (SELECT count(*) FROM lanes WHERE node NOT IN (SELECT node FROM live)) \
    + (SELECT count(*) FROM slots WHERE node IS NULL OR node NOT IN (SELECT node FROM live))";

/// Executions that have not ended, with the servers that own their slots.
const OPEN: &str = "SELECT e.id, e.status, e.last_seq, e.revision, s.node, n.name \
    FROM executions e LEFT JOIN slots s ON s.slot = e.slot LEFT JOIN nodes n ON n.node = s.node \
    WHERE e.status <> 4";

struct Cluster<'d> {
    database: &'d Database,
    members: Vec<Member>,
    /// Workflows that clients start.
    workflows: &'static [&'static str],
    around: Arc<Surroundings>,
    /// The last fault is over, and the clients have to end.
    is_over: AtomicBool,
    /// Longest time in which a request was answered, repeats included, in milliseconds.
    longest: AtomicU64,
    /// Executions, in the order in which clients began them.
    begun: Arc<Mutex<Vec<Named>>>,
    /// Stream of each reader, and how far it is.
    readers: Mutex<[Option<String>; READERS]>,
}

/// Threads that end some time after the faults, with their results.
struct Crew<'s, T> {
    threads: Vec<ScopedJoinHandle<'s, T>>,
    done: Receiver<()>,
}

impl<'s, T: Send + 's> Crew<'s, T> {
    fn start<F>(scope: &'s Scope<'s, '_>, members: impl IntoIterator<Item = F>) -> Self
    where
        F: FnOnce() -> T + Send + 's,
    {
        let (working, done) = channel::<()>();
        let start = |work: F| {
            let working = working.clone();
            scope.spawn(move || {
                let _working = working;
                work()
            })
        };
        Self { threads: members.into_iter().map(start).collect(), done }
    }

    /// Returns false if it has not ended in time.
    fn ends(&self) -> bool {
        // no message is ever sent: the wait ends early only when every thread is done
        self.done.recv_timeout(ENDING) != Err(RecvTimeoutError::Timeout)
    }

    fn join(self) -> Vec<T> {
        self.threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    }
}

impl Cluster<'_> {
    /// Runs what a thread does; its panic ends the other threads.
    fn watch<T>(&self, work: impl FnOnce() -> T) -> T {
        self.around.failure.watch(work)
    }

    /// Panics if a check has failed elsewhere.
    fn assert_not_failed(&self) {
        self.around.failure.assert_none();
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::SeqCst)
    }

    fn weather(&self) -> &Weather {
        &self.around.weather
    }

    /// Notes the time that a request took, repeats included.
    fn note_answer(&self, time: Duration) {
        self.longest.fetch_max(u64::try_from(time.as_millis()).unwrap(), Ordering::Relaxed);
    }

    /// Returns the rows of a query.
    fn rows(&self, sql: &str) -> String {
        self.database.answer(&self.around.url, sql).unwrap()
    }

    /// Ends the database and the connections to it, again and again.
    fn disturb_database(&self, rng: &mut Rng, until: Instant) {
        let starting = &self.around.starting;
        loop {
            let lull = Instant::now() + between(rng, LULL_MS);
            std::thread::sleep(lull.min(until).saturating_duration_since(Instant::now()));
            self.assert_not_failed();
            if lull >= until {
                return;
            }
            if rng.below(2) == 0 {
                let _fault = self.weather().fault("terminated connections");
                self.database.sql(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
                     WHERE application_name LIKE 'greenroom/%'",
                );
            } else {
                let _fault = self.weather().fault("database crashes");
                let _away = starting.write().unwrap_or_else(PoisonError::into_inner);
                self.database.stop_immediate();
                std::thread::sleep(Duration::from_millis(rng.below(OUTAGE_MS)));
                self.database.start_again();
            }
        }
    }

    /// Lets the servers and the database suffer for a while, and waits for the calm.
    fn storm(&self, lives: &mut [Life<'_>], rng: &mut Rng, until: Instant) {
        std::thread::scope(|scope| {
            for life in &mut *lives {
                scope.spawn(move || self.watch(|| life.suffer(until)));
            }
            self.watch(|| self.disturb_database(rng, until));
        });
        self.settle(lives);
    }

    /// Runs storms, each followed by a calm.
    fn storms(&self, lives: &mut [Life<'_>], rng: &mut Rng, seconds: u64) {
        let end = Instant::now() + Duration::from_secs(seconds);
        while Instant::now() < end {
            self.storm(lives, rng, end.min(Instant::now() + STORM));
            std::thread::sleep(CALM);
        }
    }

    /// Waits until every server takes requests, and every slot has an owner.
    fn settle(&self, lives: &mut [Life<'_>]) {
        lives.iter_mut().for_each(Life::recover);
        let deadline = Instant::now() + ENDING;
        while self.rows(LEFT_BEHIND) != "0" || !lives.iter().all(Life::is_ready) {
            assert!(Instant::now() < deadline, "there is no peace");
            std::thread::sleep(RETRY_AFTER);
        }
    }

    /// Ends all servers, because a wait has failed.
    fn fail(&self, lives: &mut [Life<'_>], why: &str) -> ! {
        let (open, (_, errors)) = (self.rows(OPEN), self.weather().report());
        let readers = format!("{:?}", self.readers.lock().unwrap());
        let why = format!("{why}; {errors}; open:\n{open}\nread: {readers}");
        self.around.failure.note(&why);
        lives.iter_mut().for_each(Life::kill);
        panic!("{why}");
    }

    /// Runs storms while clients work; returns what they have to show, once everything has ended.
    fn suffer(&self, lives: &mut [Life<'_>], rng: &mut Rng, seconds: u64) -> Outcome {
        let crowd = Client::crowd(rng).into_iter().map(|mut client| {
            client.refusable = REFUSABLE;
            client.workflows = self.workflows;
            client.begun = Arc::clone(&self.begun);
            client
        });
        std::thread::scope(|scope| {
            let mut seeds = rng.split();
            let clients = Crew::start(
                scope,
                crowd.map(|mut client| {
                    let mut rng = seeds.split();
                    move || {
                        self.watch(|| self.work(&mut client, &mut rng));
                        client
                    }
                }),
            );
            let races = Crew::start(
                scope,
                [{
                    let mut rng = seeds.split();
                    move || self.watch(|| self.race(&mut rng))
                }],
            );
            let agents = Crew::start(
                scope,
                (0..AGENT_CALLERS).map(|_| {
                    let mut rng = seeds.split();
                    move || self.watch(|| self.generate(&mut rng))
                }),
            );
            let readers = Crew::start(
                scope,
                (0..READERS).map(|place| {
                    let mut rng = seeds.split();
                    move || self.watch(|| self.read_streams(place, &mut rng))
                }),
            );

            self.watch(|| self.storms(lives, rng, seconds));
            std::thread::sleep(PEACE);
            self.is_over.store(true, Ordering::SeqCst);
            if !(clients.ends() && races.ends() && agents.ends()) {
                self.fail(lives, "requests are not answered");
            }
            let mut clients = clients.join();
            self.watch(|| {
                self.settle(lives);
                let servers: Vec<_> = lives.iter().map(Life::server).collect();
                heal(&mut clients, &servers, &self.around.ledger);
            });
            if !readers.ends() {
                self.fail(lives, "streams do not end");
            }
            let captured: Vec<Captured> = readers.join().into_iter().flatten().collect();
            let races = races.join().into_iter().sum();
            let generations = agents.join().into_iter().flatten().collect();
            Outcome { clients, captured, races, generations }
        })
    }
}

/// Lets a cluster suffer for so many quarters of the time; `wrong_clock`: its servers have any wall
/// clock.
fn drill(part: u64, wrong_clock: Option<WrongClock>) {
    // one after the other: each has three servers and keeps them busy
    static ALONE: Mutex<()> = Mutex::new(());
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(database) = Database::start() else { return };
    let start = Instant::now();
    let seconds = std::env::var(SECONDS).map_or(SECONDS_DEFAULT, |text| text.parse().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let workflows: &[&str] = if wrong_clock.is_some() { UNTIMED } else { WORKFLOWS };
    let around = Arc::new(Surroundings {
        url: database.fresh_url(),
        ledger: folder.path().join("ledger"),
        starting: RwLock::default(),
        weather: Weather::new(),
        awakenings: Mutex::default(),
        wrong_clock,
        failure: Failure::default(),
    });
    let config = format!("{CONFIG}{}", generations::CONFIG);
    let member = |name| Member::new(name, &database, &config, &around);
    let cluster = Cluster {
        members: ["a", "b", "c"].map(member).into(),
        around: Arc::clone(&around),
        database: &database,
        workflows,
        is_over: AtomicBool::new(false),
        longest: AtomicU64::new(0),
        begun: Arc::default(),
        readers: Mutex::default(),
    };
    let mut rng = Rng::new();
    let mut lives: Vec<_> = cluster.members.iter().map(|member| member.live(&mut rng)).collect();
    let mut outcome = cluster.suffer(&mut lives, &mut rng, seconds * part / 4);
    cluster.settle(&mut lives);
    let servers: Vec<&Server> = lives.iter().map(Life::server).collect();
    let report = cluster.check_outcome(&mut outcome, &servers);
    drop(servers);
    let takeovers = match around.wrong_clock {
        None => cluster.time_takeovers(&mut lives),
        Some(_) => "takeovers as with right clocks".to_owned(),
    };
    println!("{report}; {takeovers}; {:.0} s", start.elapsed().as_secs_f64());
}

#[test]
fn acknowledged_work_survives_the_faults_of_a_cluster() {
    drill(3, None);
}

#[test]
fn acknowledged_work_survives_the_faults_of_a_cluster_whose_clocks_are_wrong() {
    WrongClock::find().into_iter().for_each(|clock| drill(1, Some(clock)));
}
