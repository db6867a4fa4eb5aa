//! One member of the cluster, and the faults that its servers suffer.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use crate::crash::ledger;
use crate::crash::rng::Rng;
use support::client::Wire;
use support::postgres::Server as Database;
use support::proxy::{Proxy, Way};
use support::server::{Home, LEDGER, Server};
use support::{PAUSE, eventually};

/// Time for which one beat shows that a server is alive.
const LEASE_MS: u64 = 1_200;
/// Time between two faults, shortest and longest.
const LULL_MS: (u64, u64) = (500, 5_000);
/// Longest time for which a killed server stays away.
const AWAY_MS: u64 = 2_000;
/// Time for which a server cannot reach the database, shortest and longest.
const BLACKHOLE_MS: (u64, u64) = (1_000, 5_000);
/// Time limit for a stop, also while the database is away.
const STOPPING: Duration = Duration::from_secs(60);

/// A name in the cluster, with one server after the other.
pub(super) struct Member {
    name: &'static str,
    home: Home,
    proxy: Proxy,
    ledger: PathBuf,
    /// Held while a server starts: it waits for a database only so long.
    starting: Arc<RwLock<()>>,
    /// Address of the last server.
    address: Mutex<Option<SocketAddr>>,
}

#[derive(Debug, Clone, Copy)]
enum Fault {
    Kill,
    Pause,
    Stop,
    Blackhole,
}

const FAULTS: [Fault; 4] = [Fault::Kill, Fault::Pause, Fault::Stop, Fault::Blackhole];

/// History of servers.
#[derive(Default)]
pub(super) struct Suffered {
    kills: u64,
    pauses: u64,
    stops: u64,
    blackholes: u64,
    /// Servers that ended because others had taken their slots over.
    fenced: u64,
    /// Length of the ledger at the end of each pause, and when the server was alive again or had
    /// ended: a step that was about to begin at the pause begins in between.
    pub(super) awakenings: Vec<(usize, usize)>,
}

impl Member {
    pub(super) fn new(
        name: &'static str,
        database: &Database,
        url: &str,
        ledger: PathBuf,
        starting: Arc<RwLock<()>>,
    ) -> Self {
        let proxy = Proxy::to(database.port());
        let home = Home::new("");
        let url = proxy.through(url);
        let config = format!(
            "[server]\nport = 0\nname = \"{name}\"\nshutdown_grace = \"1s\"\n\
             [store]\nurl = \"{url}\"\npatience = \"5s\"\n\
             [cluster]\nlisten = \"127.0.0.1:0\"\nlease = \"{LEASE_MS}ms\"\n\
             [limits]\ncrash_attempts = 1000\n"
        );
        home.write("config.toml", &config);
        Self { name, home, proxy, ledger, starting, address: Mutex::default() }
    }

    /// Returns the address of the last server, which may be gone.
    pub(super) fn address(&self) -> Option<SocketAddr> {
        *self.address.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn start(&self) -> Server {
        let _starting = self.starting.read().unwrap_or_else(PoisonError::into_inner);
        let mut command = self.home.test_server();
        command.env(LEDGER, &self.ledger);
        let server = Server::start(command);
        *self.address.lock().unwrap() = Some(server.address);
        server
    }

    /// Lets the server suffer, and starts another one whenever it has ended.
    pub(super) fn suffer(
        &self,
        mut server: Server,
        rng: &mut Rng,
        until: Instant,
    ) -> (Server, Suffered) {
        let mut suffered = Suffered::default();
        let mut left = Vec::new();
        loop {
            let lull = Instant::now() + between(rng, LULL_MS);
            while Instant::now() < lull.min(until) {
                if let Some(status) = server.child.try_wait().unwrap() {
                    server = self.replace(&server, status, &mut suffered);
                }
                std::thread::sleep(PAUSE);
            }
            if Instant::now() >= until {
                return (server, suffered);
            }
            if left.is_empty() {
                left = FAULTS.to_vec();
            }
            let fault = left.swap_remove(rng.below(left.len() as u64) as usize);
            server = self.disturb(server, fault, rng, &mut suffered);
        }
    }

    fn disturb(
        &self,
        mut server: Server,
        fault: Fault,
        rng: &mut Rng,
        suffered: &mut Suffered,
    ) -> Server {
        match fault {
            Fault::Kill => {
                suffered.kills += 1;
                server.kill();
                std::thread::sleep(Duration::from_millis(rng.below(AWAY_MS)));
                self.start()
            }
            Fault::Pause => {
                suffered.pauses += 1;
                server.signal("STOP");
                std::thread::sleep(between(rng, (LEASE_MS / 2, 3 * LEASE_MS)));
                let begin = ledger::length(&self.ledger);
                server.signal("CONT");
                let server = self.recovered(server, suffered);
                suffered.awakenings.push((begin, ledger::length(&self.ledger)));
                server
            }
            Fault::Stop => {
                suffered.stops += 1;
                server.signal("TERM");
                let status = self.ended(&mut server);
                if !status.success() {
                    return self.replace(&server, status, suffered);
                }
                self.start()
            }
            Fault::Blackhole => {
                suffered.blackholes += 1;
                let way = if rng.below(2) == 0 { Way::ToServer } else { Way::ToClient };
                self.proxy.blackhole(way);
                std::thread::sleep(between(rng, BLACKHOLE_MS));
                if rng.below(2) == 0 {
                    self.proxy.cut();
                }
                self.proxy.resume();
                self.recovered(server, suffered)
            }
        }
    }

    /// Waits until the server knows whether it is still a member; returns it or the next one.
    pub(super) fn recovered(&self, mut server: Server, suffered: &mut Suffered) -> Server {
        let status = eventually(&format!("that {} is alive or ends", self.name), || {
            if let Some(status) = server.child.try_wait().unwrap() {
                return Some(Some(status));
            }
            is_ready(&server).then_some(None)
        });
        match status {
            Some(status) => self.replace(&server, status, suffered),
            None => server,
        }
    }

    /// Starts another server after one that ended by itself: because it was fenced.
    fn replace(&self, ended: &Server, status: ExitStatus, suffered: &mut Suffered) -> Server {
        let log: Vec<_> = ended.log.lock().unwrap().iter().collect();
        let is_fenced = log.iter().any(|line| {
            line.starts_with("greenroom: ") && line.ends_with(" did not show that it was alive")
        });
        assert!(is_fenced && status.code() == Some(1), "{} {status}: {log:#?}", self.name);
        suffered.fenced += 1;
        self.start()
    }

    fn ended(&self, server: &mut Server) -> ExitStatus {
        let deadline = Instant::now() + STOPPING;
        loop {
            if let Some(status) = server.child.try_wait().unwrap() {
                return status;
            }
            assert!(Instant::now() < deadline, "{} does not stop", self.name);
            std::thread::sleep(PAUSE);
        }
    }
}

/// Returns true if the server says that it takes requests.
pub(super) fn is_ready(server: &Server) -> bool {
    let asked = Wire::open(server.address).and_then(|mut wire| {
        wire.send("GET", "/readyz", &[], None)?;
        wire.reply()
    });
    asked.is_ok_and(|reply| reply.status == 200)
}

/// Returns a duration from this many milliseconds to that many.
pub(super) fn between(rng: &mut Rng, (least, most): (u64, u64)) -> Duration {
    Duration::from_millis(least + rng.below(most - least + 1))
}

impl fmt::Display for Suffered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kills, pauses, stops, blackholes, fenced, awakenings: _ } = self;
        write!(
            f,
            "{kills} kills, {pauses} pauses, {stops} stops, {blackholes} blackholes, {fenced} \
             times fenced"
        )
    }
}

impl std::ops::AddAssign for Suffered {
    fn add_assign(&mut self, other: Self) {
        let Self { kills, pauses, stops, blackholes, fenced, awakenings } = other;
        self.kills += kills;
        self.pauses += pauses;
        self.stops += stops;
        self.blackholes += blackholes;
        self.fenced += fenced;
        self.awakenings.extend(awakenings);
    }
}
