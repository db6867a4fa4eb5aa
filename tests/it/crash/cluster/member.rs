//! One member of the cluster, and the faults that its servers suffer.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use super::failure::Failure;
use super::weather::Weather;
use crate::crash::ledger;
use crate::crash::rng::Rng;
use support::client::Wire;
use support::clock::WrongClock;
use support::listener::reserved_port;
use support::postgres::Server as Database;
use support::proxy::{Proxy, Way};
use support::server::{Home, LEDGER, Server};
use support::{PAUSE, eventually};

/// Time for which one beat shows that a server is alive.
pub(super) const LEASE_MS: u64 = 1_200;
/// Time between two faults of a server, shortest and longest.
const LULL_MS: (u64, u64) = (300, 3_000);
/// Longest time for which a killed server stays away.
const AWAY_MS: u64 = 1_500;
/// Length of a pause, shortest and longest.
const PAUSE_MS: (u64, u64) = (LEASE_MS / 2, 3 * LEASE_MS);
/// Time for which a server cannot reach the database, shortest and longest.
const BLACKHOLE_MS: (u64, u64) = (1_000, 5_000);
/// Time for which others cannot reach a server, shortest and longest.
const UNLINKED_MS: (u64, u64) = (200, 4_000);
/// Deviations of wall clocks, if some are to be wrong.
const CLOCKS: [Option<&str>; 3] = [None, Some("+1d"), Some("-1d")];
/// Time limit for a stop, also while the database is away.
const STOPPING: Duration = Duration::from_secs(60);

/// Surroundings that all members have in common.
pub(super) struct Surroundings {
    /// Address of the database.
    pub(super) url: String,
    pub(super) ledger: PathBuf,
    /// Held while a server starts, and while the database is away: a server that starts waits for
    /// it only so long.
    pub(super) starting: RwLock<()>,
    pub(super) weather: Weather,
    /// Length of the ledger at the end of each pause, and when the server was alive again or had
    /// ended: a step that was about to begin at the pause begins in between.
    pub(super) awakenings: Mutex<Vec<(usize, usize)>>,
    /// Sets clocks, if some are to be wrong.
    pub(super) wrong_clock: Option<WrongClock>,
    pub(super) failure: Failure,
}

/// A name in the cluster, with one server after the other.
pub(super) struct Member {
    name: &'static str,
    home: Home,
    /// Between the server and the database.
    database: Proxy,
    /// Between the other servers and this one.
    links: Proxy,
    around: Arc<Surroundings>,
    /// Address of the last server.
    address: Mutex<Option<SocketAddr>>,
}

/// The server of a member, and the faults that it suffers.
pub(super) struct Life<'m> {
    pub(super) member: &'m Member,
    /// `None` only while it is replaced.
    server: Option<Server>,
    rng: Rng,
    /// Faults that come before others come again.
    left: Vec<Fault>,
}

#[derive(Debug, Clone, Copy)]
enum Fault {
    Kill,
    Pause,
    Stop,
    Blackhole,
    Unlink,
}

/// Faults of one turn: those that take executions away from a server come most often.
const FAULTS: [Fault; 7] = [
    Fault::Kill,
    Fault::Kill,
    Fault::Pause,
    Fault::Pause,
    Fault::Stop,
    Fault::Blackhole,
    Fault::Unlink,
];

impl Member {
    pub(super) fn new(
        name: &'static str,
        database: &Database,
        config: &str,
        around: &Arc<Surroundings>,
    ) -> Self {
        let listen = reserved_port();
        let (database, links) = (Proxy::to(database.port()), Proxy::to(listen));
        let home = Home::new("");
        let (url, advertise) = (database.through(&around.url), links.port());
        let config = format!(
            "[server]\nport = 0\nname = \"{name}\"\nshutdown_grace = \"1s\"\n\
             [store]\nurl = \"{url}\"\npatience = \"5s\"\n\
             [cluster]\nlisten = \"127.0.0.1:{listen}\"\nadvertise = \"127.0.0.1:{advertise}\"\n\
             lease = \"{LEASE_MS}ms\"\n{config}"
        );
        home.write("config.toml", &config);
        let around = Arc::clone(around);
        Self { name, home, database, links, around, address: Mutex::default() }
    }

    pub(super) fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the address of the last server, which may be gone.
    pub(super) fn address(&self) -> Option<SocketAddr> {
        *self.address.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts the first server.
    pub(super) fn live(&self, rng: &mut Rng) -> Life<'_> {
        let server = Some(self.start(rng));
        Life { member: self, server, rng: rng.split(), left: Vec::new() }
    }

    /// Starts a server, with any clock if some are to be wrong.
    fn start(&self, rng: &mut Rng) -> Server {
        let _starting = self.around.starting.read().unwrap_or_else(PoisonError::into_inner);
        let mut command = self.home.test_server();
        command.env(LEDGER, &self.around.ledger);
        let offset = CLOCKS[rng.below(CLOCKS.len() as u64) as usize];
        if let (Some(clock), Some(offset)) = (&self.around.wrong_clock, offset) {
            self.weather().note("wrong clocks");
            clock.set(&mut command, offset);
        }
        let server = Server::start(command);
        WrongClock::remove_files(server.child.id());
        *self.address.lock().unwrap() = Some(server.address);
        server
    }

    fn weather(&self) -> &Weather {
        &self.around.weather
    }

    fn ledger(&self) -> &Path {
        &self.around.ledger
    }
}

impl Life<'_> {
    pub(super) fn server(&self) -> &Server {
        self.server.as_ref().expect("it is replaced at once")
    }

    /// Lets the server suffer, and starts another one whenever it has ended.
    pub(super) fn suffer(&mut self, until: Instant) {
        loop {
            let lull = Instant::now() + between(&mut self.rng, LULL_MS);
            self.member.around.failure.assert_none();
            while Instant::now() < lull.min(until) {
                if let Some(status) = self.status() {
                    self.member.weather().note("fenced without a fault");
                    self.replace(status);
                }
                std::thread::sleep(PAUSE);
            }
            if Instant::now() >= until {
                return;
            }
            if self.left.is_empty() {
                self.left = FAULTS.to_vec();
            }
            let place = self.rng.below(self.left.len() as u64) as usize;
            match self.left.swap_remove(place) {
                Fault::Kill => self.be_killed(),
                Fault::Pause => self.pause(),
                Fault::Stop => self.stop(),
                Fault::Blackhole => self.lose_database(),
                Fault::Unlink => self.lose_links(),
            }
        }
    }

    /// Kills the server; another one starts a while later.
    fn be_killed(&mut self) {
        let _fault = self.member.weather().fault("kills");
        self.kill();
        std::thread::sleep(Duration::from_millis(self.rng.below(AWAY_MS)));
        self.restart();
    }

    pub(super) fn kill(&mut self) {
        self.server.take().expect("it is replaced at once").kill();
    }

    pub(super) fn restart(&mut self) {
        self.server = Some(self.member.start(&mut self.rng));
    }

    /// Has the server stand still for a while.
    fn pause(&mut self) {
        let length = between(&mut self.rng, PAUSE_MS);
        self.pause_while(|| std::thread::sleep(length));
    }

    /// Has the server stand still during a call.
    pub(super) fn pause_while<T>(&mut self, act: impl FnOnce() -> T) -> T {
        let _fault = self.member.weather().fault("pauses");
        self.server().signal("STOP");
        let acted = act();
        let begin = ledger::length(self.member.ledger());
        self.server().signal("CONT");
        self.recover();
        let awakening = (begin, ledger::length(self.member.ledger()));
        self.member.around.awakenings.lock().unwrap().push(awakening);
        acted
    }

    /// Stops the server as an operator does; another one starts.
    fn stop(&mut self) {
        let _fault = self.member.weather().fault("stops");
        self.server().signal("TERM");
        let deadline = Instant::now() + STOPPING;
        let status = loop {
            if let Some(status) = self.status() {
                break status;
            }
            assert!(Instant::now() < deadline, "{} does not stop", self.member.name);
            std::thread::sleep(PAUSE);
        };
        if status.success() {
            self.restart();
        } else {
            self.replace(status);
        }
    }

    /// Cuts the server off from the database for a while.
    fn lose_database(&mut self) {
        let _fault = self.member.weather().fault("blackholes");
        let (way, length) = (self.way(), between(&mut self.rng, BLACKHOLE_MS));
        let proxy = &self.member.database;
        proxy.blackhole(way);
        std::thread::sleep(length);
        if self.rng.below(2) == 0 {
            proxy.cut();
        }
        proxy.resume();
        self.recover();
    }

    /// Cuts the others off from the server: their connections break, or hang for a while.
    fn lose_links(&mut self) {
        let _fault = self.member.weather().fault("broken links");
        let (way, length) = (self.way(), between(&mut self.rng, UNLINKED_MS));
        let proxy = &self.member.links;
        match self.rng.below(4) {
            0 => proxy.cut(),
            1 => {
                proxy.refuse();
                proxy.cut();
                std::thread::sleep(length);
            }
            hangs => {
                proxy.blackhole(way);
                std::thread::sleep(length);
                // sometimes what has gathered is lost
                if hangs == 2 {
                    proxy.cut();
                }
            }
        }
        proxy.resume();
    }

    fn way(&mut self) -> Way {
        if self.rng.below(2) == 0 { Way::ToServer } else { Way::ToClient }
    }

    /// Waits until the server knows whether it is still a member; it, or the next one, takes
    /// requests then.
    pub(super) fn recover(&mut self) {
        let status = eventually(&format!("that {} is alive or ends", self.member.name), || {
            self.status().map(Some).or_else(|| self.is_ready().then_some(None))
        });
        if let Some(status) = status {
            self.replace(status);
        }
    }

    fn status(&mut self) -> Option<ExitStatus> {
        self.server.as_mut().expect("it is replaced at once").child.try_wait().unwrap()
    }

    /// Returns true if the server says that it takes requests.
    pub(super) fn is_ready(&self) -> bool {
        let asked = Wire::open(self.server().address).and_then(|mut wire| {
            wire.send("GET", "/readyz", &[], None)?;
            wire.reply()
        });
        asked.is_ok_and(|reply| reply.status == 200)
    }

    /// Starts another server after one that ended by itself: because it was fenced.
    fn replace(&mut self, status: ExitStatus) {
        let log: Vec<_> = self.server().log.lock().unwrap().iter().collect();
        let is_fenced = log.iter().any(|line| {
            line.starts_with("greenroom: ") && line.ends_with(" did not show that it was alive")
        });
        let name = self.member.name;
        assert!(is_fenced && status.code() == Some(1), "{name} {status}: {log:#?}");
        self.member.weather().note("fenced");
        self.restart();
    }
}

/// Returns a duration from this many milliseconds to that many.
pub(super) fn between(rng: &mut Rng, (least, most): (u64, u64)) -> Duration {
    Duration::from_millis(least + rng.below(most - least + 1))
}
