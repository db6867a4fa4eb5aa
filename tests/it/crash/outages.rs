//! The database is stopped and the connections to it are disturbed, while clients work and the
//! server is killed.

use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use super::client::{Client, check, heal, round};
use super::ledger;
use super::rng::Rng;
use support::eventually;
use support::postgres::Server as Database;
use support::proxy::{Proxy, Way};
use support::server::{Home, Server};

/// Environment variable: shortest duration of the drill, in seconds.
const SECONDS: &str = "GREENROOM_DRILL_SECONDS";
/// Kills of a storm. Another one ends the calm behind it, in which everything is compared.
const KILLS: u64 = 5;
const STORMS: u64 = 5;
/// Longest life of a server after it is ready.
const LIFE_MS: u64 = 1_000;
/// Longest pause between two disturbances.
const LULL_MS: u64 = 1_000;
/// Longest time without the database, or without the network.
const OUTAGE_MS: u64 = 2_000;
const DELAY_MS: u64 = 30;

/// A database, reached through a network that can be disturbed.
struct Site {
    database: Database,
    proxy: Proxy,
    home: Home,
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    Stop,
    Hang,
    Cut,
    Refusal,
    Delay,
}

/// Order of the disturbances of a drill: each kind comes, then each again, in another order.
struct Order {
    rng: Rng,
    left: Vec<Kind>,
}

/// Numbers of disturbances, by their kind.
#[derive(Debug, Default)]
struct Disturbances {
    stops: u64,
    hangs: u64,
    cuts: u64,
    refusals: u64,
    delays: u64,
}

/// Last words of servers that have not found the database within their patience, or lost it at once.
const AWAY: [&str; 3] = [
    "cannot connect to the database",
    "the database has not answered in time",
    "the database stopped answering",
];

impl Order {
    fn next(&mut self) -> Kind {
        if self.left.is_empty() {
            // what stops the database is the most telling
            self.left =
                vec![Kind::Stop, Kind::Stop, Kind::Hang, Kind::Cut, Kind::Refusal, Kind::Delay];
        }
        let place = self.rng.below(self.left.len() as u64) as usize;
        self.left.swap_remove(place)
    }
}

impl Site {
    /// Returns `None` without PostgreSQL, which is reported.
    fn with(config: &str) -> Option<Self> {
        let database = Database::start()?;
        let proxy = Proxy::to(database.port());
        let home = Home::at(&proxy.through(&database.fresh_url()), config);
        Some(Self { database, proxy, home })
    }

    /// Disturbs the database and the network until the clients are done, and repairs both.
    fn disturb(&self, rng: &mut Rng, order: &mut Order, done: &Receiver<()>) -> Disturbances {
        let mut count = Disturbances::default();
        let is_over = |longest_ms| {
            let waited = done.recv_timeout(Duration::from_millis(longest_ms));
            waited != Err(RecvTimeoutError::Timeout)
        };
        while !is_over(rng.below(LULL_MS)) {
            let outage = rng.below(OUTAGE_MS);
            match order.next() {
                Kind::Stop => {
                    count.stops += 1;
                    self.database.stop_immediate();
                    is_over(outage);
                    self.database.start_again();
                }
                Kind::Hang => {
                    count.hangs += 1;
                    let way = if rng.below(2) == 0 { Way::ToServer } else { Way::ToClient };
                    self.proxy.blackhole(way);
                    is_over(outage);
                    // sometimes what has gathered is lost
                    if rng.below(2) == 0 {
                        self.proxy.cut();
                    }
                }
                Kind::Refusal => {
                    count.refusals += 1;
                    self.proxy.refuse();
                    self.proxy.cut();
                    is_over(outage);
                }
                Kind::Delay => {
                    count.delays += 1;
                    self.proxy.delay(Duration::from_millis(rng.below(DELAY_MS)));
                    is_over(outage);
                }
                Kind::Cut => {
                    count.cuts += 1;
                    self.proxy.cut();
                }
            }
            self.proxy.resume();
        }
        count
    }

    /// Starts the server, and starts it again if it has not found the database within its patience.
    fn start(&self) -> Server {
        loop {
            match Server::try_start(self.home.test_server()) {
                Ok(server) => return server,
                Err(said) => {
                    let last = said.last().map_or("", String::as_str);
                    let mut known = AWAY.iter();
                    assert!(known.any(|text| last.contains(text)), "{said:#?}");
                }
            }
        }
    }

    /// Kills the server again and again while clients work, the database stops and the network
    /// fails.
    fn storm(&self, clients: &mut [Client], rng: &mut Rng, order: &mut Order) -> Disturbances {
        let mut weather = rng.split();
        std::thread::scope(|scope| {
            let (working, done) = channel::<()>();
            let disturbing = scope.spawn(move || self.disturb(&mut weather, order, &done));
            for _ in 0..KILLS {
                let server = self.start();
                round(clients, server, Duration::from_millis(rng.below(LIFE_MS)));
            }
            drop(working);
            disturbing.join().unwrap()
        })
    }
}

impl Disturbances {
    /// Returns true if each kind has come.
    fn are_all(&self) -> bool {
        let Self { stops, hangs, cuts, refusals, delays } = *self;
        [stops, hangs, cuts, refusals, delays].iter().all(|count| *count > 0)
    }
}

impl std::ops::AddAssign for Disturbances {
    fn add_assign(&mut self, other: Self) {
        let Self { stops, hangs, cuts, refusals, delays } = other;
        self.stops += stops;
        self.hangs += hangs;
        self.cuts += cuts;
        self.refusals += refusals;
        self.delays += delays;
    }
}

#[test]
fn acknowledged_work_survives_outages_of_the_database() {
    let Some(site) = Site::with("limits.crash_attempts = 1000") else { return };
    let seconds = std::env::var(SECONDS).map_or(0, |text| text.parse().unwrap());
    let (start, least) = (Instant::now(), Duration::from_secs(seconds));
    let mut rng = Rng::new();
    let mut clients = Client::crowd(&mut rng);
    let ledger = site.home.ledger();
    let mut order = Order { rng: rng.split(), left: Vec::new() };
    let (mut storms, mut count) = (0, Disturbances::default());
    while storms < STORMS || start.elapsed() < least || !count.are_all() {
        storms += 1;
        count += site.storm(&mut clients, &mut rng, &mut order);
        let server = site.start();
        eventually("calm", || (server.get("/readyz").status == 200).then_some(()));
        check(&mut clients, &server, &ledger, false);
    }
    let server = Server::start(site.home.test_server());
    heal(&mut clients, &[&server], &ledger);
    check(&mut clients, &server, &ledger, true);

    let promises = || clients.iter().flat_map(|client| &client.promises);
    let acknowledged = promises().filter(|promise| promise.is_acknowledged).count();
    let lines = ledger::read(&ledger);
    let interrupted = lines.values().filter(|lines| lines.len() > 1).count();
    println!(
        "{} kills, {count:?}, {} executions, {acknowledged} acknowledged, 0 lost, {} requests \
         refused; {} steps, {interrupted} interrupted and run again with the same key; {:.1} s",
        storms * (KILLS + 1),
        promises().count(),
        promises().map(|promise| promise.refusals).sum::<u64>(),
        lines.len(),
        start.elapsed().as_secs_f64()
    );
    assert!(acknowledged > 0 && interrupted > 0, "the drill has drilled nothing");
}
