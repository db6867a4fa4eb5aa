//! A world of several processes from its seed: random events, peace, and the final checks.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use greenroom_actors::RuntimeLimits;
use greenroom_actors::domain::cluster::NodeId;
use greenroom_actors::ports::clock::Clock as _;
use greenroom_actors::ports::members::Lease;
use greenroom_actors::ports::memory::MemoryStore;
use greenroom_actors::testkit::registry_of;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::simulator::checker;
use crate::simulator::clock::SimClock;
use crate::simulator::cluster::doors::{Client, Doors};
use crate::simulator::cluster::links::SimNetwork;
use crate::simulator::cluster::node::{Server, Setting, Up};
use crate::simulator::compensations;
use crate::simulator::definitions;
use crate::simulator::dice::Dice;
use crate::simulator::process;
use crate::simulator::promises::{Promises, suspension_ids_are_unique};
use crate::simulator::requests::{Request, Requests};
use crate::simulator::stage::Stage;
use crate::simulator::subscribers::{Follower, Manner, Notebook, follow};
use crate::simulator::world::Report;

const NAMES: [&str; 4] = ["a", "b", "c", "d"];
/// Interval at which the simulator looks after its processes.
const TEND_EVERY: Duration = Duration::from_millis(250);
/// Time beyond the lease and a beat after which all slots have owners again.
const TAKEOVER: Duration = Duration::from_secs(1);
/// Slots of one round of a handover.
const ROUND_MAX: usize = 64;
/// Time for which timers are held in memory, in milliseconds.
const HORIZON_MS: i64 = 60_000;
/// Rounds of peace until everything must have ended, and the first one after which time is passed
/// by setting the clocks.
const ROUNDS_MAX: u64 = 250;
const ROUNDS_OF_TIME: u64 = 8;

struct World {
    setting: Setting,
    promises: Arc<Promises>,
    dice: Dice,
    servers: Vec<Server>,
    callers: Vec<JoinHandle<()>>,
    /// Followers, with the servers that they are connected to.
    followers: Vec<(Follower, usize)>,
    requests: Requests,
    is_peaceful: bool,
}

/// Plays a world to its end. Call within a runtime with paused time.
pub(crate) async fn play(seed: u64) -> Report {
    let mut dice = Dice::about(seed, "cluster");
    let definitions = compensations::added((seed, 67), definitions::workflows(&mut dice));
    let plans = registry_of(definitions).workflows;
    let disk = Arc::new(MemoryStore::new());
    let stage = Stage::new(seed, plans, Arc::clone(&disk));
    stage.capture_logs();
    for plan in stage.plans.values() {
        stage.note(&format!("{:?}", plan.definition));
    }
    let passivate_after = Duration::from_millis(dice.pick(&[0, 100, 10_000]));
    let limits = RuntimeLimits { passivate_after, ..process::limits(&mut dice) };
    let lease = Duration::from_millis(dice.pick(&[1_200, 6_000, 6_000, 20_000, 20_000, 20_000]));
    stage.note(&format!("lease {lease:?}, {limits:?}"));
    let network = SimNetwork::new(Dice::about(seed, "network"));
    let doors = Doors::default();
    let requests = Requests::new(&stage);
    let setting = Setting { stage, disk, network, doors, limits, lease };
    let servers = servers(&mut dice);
    let mut world = World {
        setting,
        promises: Arc::default(),
        dice,
        servers,
        callers: Vec::new(),
        followers: Vec::new(),
        requests,
        is_peaceful: false,
    };
    world.happens().await;
    world.finds_peace().await;
    world.heals().await;
    world.finish().await;
    checker::report(&world.setting.stage)
}

/// Returns two to four servers, of which some join later. Their clocks differ.
fn servers(dice: &mut Dice) -> Vec<Server> {
    let count = dice.between(2, 4);
    let mut servers = Vec::new();
    for (number, name) in (1..=count).zip(NAMES) {
        let speed = dice.pick(&[90, 99, 100, 100, 100, 101, 120]);
        let clock = SimClock::of_process(number, speed);
        clock.step(i64::try_from(dice.millis(60_000)).unwrap());
        let is_first = number == 1 || dice.chance(70);
        let later = if is_first { 0 } else { dice.millis(120_000) };
        servers.push(Server::new(name, clock, Instant::now() + Duration::from_millis(later)));
    }
    servers
}

impl World {
    fn stage(&self) -> &Arc<Stage> {
        &self.setting.stage
    }

    /// Lets time pass, and looks after the processes.
    async fn pass(&mut self, time: Duration) {
        let until = Instant::now() + time;
        loop {
            self.tend().await;
            let now = Instant::now();
            if now >= until {
                return;
            }
            tokio::time::sleep(TEND_EVERY.min(until - now)).await;
        }
    }

    async fn tend(&mut self) {
        for index in 0..self.servers.len() {
            let server = &mut self.servers[index];
            if server.tend(&self.setting).await {
                self.fell(index);
            }
            let server = &mut self.servers[index];
            if server.up.is_none() && server.rises_at <= Instant::now() {
                server.rise(&self.setting).await;
            }
        }
    }

    /// Notes that the process of a server has ended: another one begins later.
    fn fell(&mut self, index: usize) {
        let pause = if self.is_peaceful { 0 } else { self.dice.millis(20_000) };
        self.servers[index].rises_at = Instant::now() + Duration::from_millis(pause);
        let at_it = self.followers.iter_mut().filter(|(_, at)| *at == index);
        at_it.for_each(|(follower, _)| follower.disconnect());
    }

    async fn happens(&mut self) {
        let lease = u64::try_from(self.setting.lease.as_millis()).unwrap();
        let scale = self.dice.pick(&[lease, lease * 4, lease * 10]);
        let happenings = self.dice.between(20, 70);
        self.tend().await;
        if self.dice.chance(50) {
            self.pass(self.setting.lease * 6).await;
        }
        let first = self.requests.start(&mut self.dice);
        self.send(first);
        for _ in 0..happenings {
            match self.dice.below(10) {
                0..3 => {}
                3 => tokio::task::yield_now().await,
                _ => {
                    let time = Duration::from_millis(self.dice.millis(scale));
                    self.pass(time).await;
                }
            }
            self.happening().await;
        }
    }

    async fn happening(&mut self) {
        match self.dice.below(100) {
            wish @ 0..62 => {
                let (requests, dice) = (&mut self.requests, &mut self.dice);
                let wished = match wish {
                    0..18 => requests.start(dice),
                    18..23 => requests.start_again(dice),
                    23..38 => requests.resume(dice),
                    38..45 => requests.approve(dice),
                    45..52 => requests.about(dice, Request::Suspend),
                    52..55 => requests.about(dice, Request::Cancel),
                    _ => requests.about(dice, Request::Describe),
                };
                self.send(wished);
            }
            62..69 => self.follow(),
            69..71 => {
                let by = i64::try_from(self.dice.millis(900_000)).unwrap();
                let by = if self.dice.chance(50) { by } else { -by };
                let server = self.dice.below(self.servers.len() as u64);
                let server = &self.servers[usize::try_from(server).unwrap()];
                self.stage().note(&format!("the clock of {} is set by {by} ms", server.name));
                server.clock.step(by);
            }
            71..78 => self.weather(),
            78..84 => self.silence(),
            84..88 => self.crash().await,
            88..91 => self.drain(),
            91..97 => self.trouble_links(),
            _ => {
                let mut followers = self.followers.iter_mut().map(|(follower, _)| follower);
                followers.find(|it| it.is_connected()).into_iter().for_each(Follower::disconnect);
            }
        }
    }

    /// Changes the faults of the disk.
    fn weather(&mut self) {
        let faults = &self.setting.stage.faults;
        match self.dice.below(12) {
            0 => faults.is_full.store(true, Ordering::SeqCst),
            1..4 => faults.slowness_ms.store(self.dice.millis(10_000), Ordering::SeqCst),
            4 => faults.failing_percent.store(self.dice.below(40), Ordering::SeqCst),
            5 => faults.unreadable_percent.store(self.dice.below(40), Ordering::SeqCst),
            6 => faults.is_down.store(true, Ordering::SeqCst),
            _ => faults.heal(),
        }
        self.setting.stage.note(&format!("{:?}", self.setting.stage.faults));
    }

    fn pick_up(&mut self) -> Option<(usize, &mut Up)> {
        let ups = self.servers.iter().enumerate().filter(|(_, server)| server.up.is_some());
        let ups: Vec<usize> = ups.map(|(index, _)| index).collect();
        let index = (!ups.is_empty()).then(|| self.dice.pick(&ups))?;
        self.servers[index].up.as_mut().map(|up| (index, up))
    }

    fn silence(&mut self) {
        let percent = self.dice.between(20, 400);
        let time = self.setting.lease * u32::try_from(percent).unwrap() / 100;
        let Some((index, up)) = self.pick_up() else { return };
        up.fall_silent(time);
        let name = self.servers[index].name;
        self.stage().note(&format!("{name} falls silent for {time:?}"));
        self.stage().count("silence");
    }

    async fn crash(&mut self) {
        let Some((index, _)) = self.pick_up() else { return };
        self.servers[index].crash(&self.setting).await;
        self.stage().count("crash");
        self.fell(index);
    }

    fn drain(&mut self) {
        let grace = Duration::from_millis(self.dice.millis(60_000));
        let Some((index, up)) = self.pick_up() else { return };
        if up.is_draining() {
            return;
        }
        up.drain(grace);
        let name = self.servers[index].name;
        self.stage().note(&format!("{name} drains within {grace:?}"));
        self.stage().count("drain");
    }

    fn trouble_links(&mut self) {
        let nodes: Vec<NodeId> =
            self.servers.iter().filter_map(|it| Some(it.up.as_ref()?.node)).collect();
        if nodes.len() < 2 {
            return;
        }
        let (one, other) = (self.dice.pick(&nodes), self.dice.pick(&nodes));
        let network = &self.setting.network;
        let what = match self.dice.below(8) {
            0..2 if one != other => {
                network.cut(one, other, true);
                format!("the link of {one} and {other} is cut")
            }
            2 if one != other => {
                network.cut(one, other, false);
                format!("the link of {one} and {other} breaks")
            }
            3..5 => {
                network.break_all_of(one);
                format!("the links of {one} break")
            }
            5 => {
                network.heal();
                "the links are healed".to_owned()
            }
            _ => {
                let slowness = self.dice.millis(3_000);
                network.set_slowness(slowness);
                format!("messages take up to {slowness} ms")
            }
        };
        self.stage().note(&what);
    }

    fn send(&mut self, requests: Vec<Request>) {
        for request in requests {
            let client = Client {
                stage: Arc::clone(self.stage()),
                promises: Arc::clone(&self.promises),
                doors: self.setting.doors.clone(),
                dice: Dice::about(self.dice.roll(), "client"),
            };
            self.callers.push(actix::spawn(client.send(request)));
        }
    }

    fn follow(&mut self) {
        let Some(target) = self.requests.pick_target(&mut self.dice) else { return };
        let known = self.followers.iter().position(|(it, _)| {
            it.target.execution_id == target.execution_id && !it.is_connected()
        });
        let index = known.unwrap_or_else(|| {
            self.followers.push((Follower::new(target), 0));
            self.followers.len() - 1
        });
        let manner = Manner::any(&mut self.dice);
        self.connect(index, manner);
    }

    /// Connects a follower to any process.
    fn connect(&mut self, index: usize, manner: Manner) {
        let stage = Arc::clone(self.stage());
        let Some((at, up)) = self.pick_up() else { return };
        let (node, runtime) = (up.node, up.process.runtime.clone());
        let (follower, place) = &mut self.followers[index];
        *place = at;
        let target = follower.target.clone();
        let id = &target.execution_id;
        stage.note(&format!("a subscriber follows {id} {manner:?} at {node}"));
        let (subscriber, visit) = follower.connect(&stage, manner);
        let notebook = Notebook::of(follower, visit);
        if let Some(up) = &mut self.servers[at].up {
            up.process.spawn(follow(stage, runtime, target, subscriber, notebook));
        }
    }
}

impl World {
    /// Ends all faults; checks that all slots have owners soon.
    async fn finds_peace(&mut self) {
        self.stage().note("the world is at peace");
        if self.dice.chance(40) {
            self.crash().await;
        }
        self.is_peaceful = true;
        self.stage().heal();
        self.setting.network.heal();
        let now = self.servers.iter().map(|server| server.clock.now()).max().unwrap();
        let is_down_for_good = self.dice.chance(50);
        for server in &mut self.servers {
            server.clock.set(now);
            if let Some(up) = server.up.as_ref().filter(|up| up.is_silent()) {
                up.speak(&self.setting);
            }
            server.rises_at = match is_down_for_good {
                // until the slots of one that crashed were taken over
                true if server.up.is_none() => Instant::now() + self.setting.lease * 3,
                _ => Instant::now(),
            };
        }
        if self.servers.iter().all(|server| server.up.is_none()) {
            self.servers[0].rises_at = Instant::now();
        }
        let beat = Lease::new(self.setting.lease).interval();
        let (since, most) = (Instant::now(), self.setting.lease + beat + TAKEOVER);
        let mut is_owned = true;
        while since.elapsed() < most * 2 {
            self.pass(TEND_EVERY).await;
            is_owned &= self.stage().book.unowned_for(since) <= most;
        }
        self.stage().require(is_owned, || "slots have no owner in time".to_owned());
        checker::nothing_is_forgotten(self.stage());
        suspension_ids_are_unique(self.stage());
    }

    /// Answers suspensions at any process and lets time pass, until everything has ended.
    async fn heals(&mut self) {
        for round in 0..ROUNDS_MAX {
            let answers = self.requests.answers();
            let is_quiet = self.callers.iter().all(JoinHandle::is_finished);
            if answers.is_none() && is_quiet {
                return;
            }
            self.send(answers.unwrap_or_default());
            self.pass(Duration::from_secs(5)).await;
            if round >= ROUNDS_OF_TIME {
                self.servers.iter().for_each(|server| server.clock.step(60_000));
            }
        }
        checker::nothing_is_stuck(self.stage());
        if !self.callers.iter().all(JoinHandle::is_finished) {
            self.stage().violated("a caller has no reply");
        }
    }

    /// Reconnects all subscribers, then checks that nothing is left.
    async fn finish(&mut self) {
        for index in 0..self.followers.len() {
            if !self.followers[index].0.is_connected() {
                self.connect(index, Manner::Eager);
            }
        }
        self.servers.iter().for_each(|server| server.clock.step(HORIZON_MS * 2));
        let rest = self.setting.limits.passivate_after + Duration::from_secs(40);
        self.pass(rest.max(self.setting.lease * 4)).await;
        for (follower, _) in &self.followers {
            // with its connection to another process
            follower.has_seen_everything(self.stage(), true);
        }
        for server in &self.servers {
            if let Some(up) = &server.up {
                serves_its_own(self.stage(), up);
            }
        }
        checker::records(self.stage());
        self.promises.check(self.stage());
        for server in &mut self.servers {
            server.crash(&self.setting).await;
        }
    }
}

/// Checks that nothing is left in a process, and that it serves what it owns, but for a round of a
/// handover.
fn serves_its_own(stage: &Stage, up: &Up) {
    let (node, runtime) = (up.node, &up.process.runtime);
    checker::nothing_is_left(stage, &runtime.stats());
    let own = stage.book.slots_of(node).len();
    let stats = runtime.cluster_stats().unwrap();
    let served = stats.slots_served;
    stage.require(served <= own && own <= served + ROUND_MAX, || {
        format!("process {node} serves {served} slots and owns {own}")
    });
    let waiting = stats.forwarding;
    stage.require(waiting == 0, || format!("{waiting} commands still wait"));
}
