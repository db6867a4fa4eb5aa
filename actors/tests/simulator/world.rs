//! A world from its seed: random events, healing, and the final checks.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use greenroom_actors::RuntimeLimits;
use greenroom_actors::ports::memory::MemoryStore;
use greenroom_actors::registry::Registry;
use greenroom_actors::testkit::registry_of;

use crate::simulator::checker;
use crate::simulator::compensations;
use crate::simulator::definitions;
use crate::simulator::dice::Dice;
use crate::simulator::process::{self, Process};
use crate::simulator::promises::{Promises, suspension_ids_are_unique};
use crate::simulator::requests::{Request, Requests};
use crate::simulator::stage::Stage;
use crate::simulator::subscribers::{Follower, Manner, Notebook, follow};

/// Maximum number of rounds after healing until everything must have ended.
const ROUNDS_MAX: u64 = 700;

/// Result of a world.
pub(crate) struct Report {
    pub(crate) digest: u64,
    pub(crate) executions: usize,
    pub(crate) facts: usize,
    /// Counts of events.
    pub(crate) counts: BTreeMap<String, u64>,
    pub(crate) violations: Vec<String>,
    pub(crate) story: String,
}

struct World {
    stage: Arc<Stage>,
    promises: Arc<Promises>,
    dice: Dice,
    registry: Registry,
    limits: RuntimeLimits,
    /// `None` only between two processes.
    process: Option<Process>,
    followers: Vec<Follower>,
    requests: Requests,
}

/// Plays a world to its end. Call within a runtime with paused time.
pub(crate) async fn play(seed: u64) -> Report {
    let mut dice = Dice::about(seed, "world");
    let definitions = compensations::added((seed, 33), definitions::workflows(&mut dice));
    let plans = registry_of(definitions).workflows;
    let disk = MemoryStore::new();
    let stage = Stage::new(seed, plans, Arc::new(MemoryStore::new()));
    stage.capture_logs();
    for plan in stage.plans.values() {
        stage.note(&format!("{:?}", plan.definition));
    }
    let registry = process::registry(&stage, 0);
    let limits = process::limits(&mut dice);
    stage.note(&format!("{limits:?}"));
    let process = Process::launch(&stage, registry.clone(), limits.clone(), disk).await;
    let requests = Requests::new(&stage);
    let mut world = World {
        stage,
        promises: Arc::default(),
        dice,
        registry,
        limits,
        process: Some(process),
        followers: Vec::new(),
        requests,
    };
    world.happens().await;
    world.heals().await;
    world.finish().await;
    checker::report(&world.stage)
}

impl World {
    fn process(&mut self) -> &mut Process {
        self.process.as_mut().unwrap()
    }

    async fn happens(&mut self) {
        let scale = self.dice.pick(&[200, 20_000, 600_000]);
        let happenings = self.dice.between(15, 70);
        let first = self.requests.start(&mut self.dice);
        self.send(first);
        for _ in 0..happenings {
            match self.dice.below(10) {
                0..4 => {}
                4 => tokio::task::yield_now().await,
                _ => pass(self.dice.millis(scale)).await,
            }
            self.happening().await;
        }
    }

    async fn happening(&mut self) {
        match self.dice.below(100) {
            wish @ 0..67 => {
                let (requests, dice) = (&mut self.requests, &mut self.dice);
                let wished = match wish {
                    0..18 => requests.start(dice),
                    18..24 => requests.start_again(dice),
                    24..40 => requests.resume(dice),
                    40..48 => requests.approve(dice),
                    48..57 => requests.about(dice, Request::Suspend),
                    57..60 => requests.about(dice, Request::Cancel),
                    _ => requests.about(dice, Request::Describe),
                };
                self.send(wished);
            }
            67..75 => self.follow(),
            75..79 => {
                let by = i64::try_from(self.dice.millis(900_000)).unwrap();
                let by = if self.dice.chance(50) { by } else { -by };
                self.stage.note(&format!("the clock is set by {by} ms"));
                self.stage.clock.step(by);
            }
            79..88 => self.weather(),
            88..95 => self.crash().await,
            95..97 => self.stop().await,
            _ => self.leave(),
        }
    }

    /// Changes the faults of the disk.
    fn weather(&mut self) {
        let faults = &self.stage.faults;
        match self.dice.below(7) {
            0 => faults.is_full.store(true, Ordering::SeqCst),
            1 => faults.slowness_ms.store(self.dice.millis(20_000), Ordering::SeqCst),
            2 => faults.failing_percent.store(self.dice.below(40), Ordering::SeqCst),
            3 => faults.unreadable_percent.store(self.dice.below(40), Ordering::SeqCst),
            4 => faults.is_down.store(true, Ordering::SeqCst),
            _ => faults.heal(),
        }
        self.stage.note(&format!("{:?}", self.stage.faults));
    }

    fn send(&mut self, requests: Vec<Request>) {
        let (stage, promises) = (Arc::clone(&self.stage), Arc::clone(&self.promises));
        let process = self.process();
        for request in requests {
            let caller = process.caller(&stage, &promises);
            process.spawn(request.send(caller));
        }
    }

    fn follow(&mut self) {
        let Some(target) = self.requests.pick_target(&mut self.dice) else { return };
        let known = self
            .followers
            .iter()
            .position(|it| it.target.execution_id == target.execution_id && !it.is_connected());
        let index = known.unwrap_or_else(|| {
            self.followers.push(Follower::new(target));
            self.followers.len() - 1
        });
        let manner = Manner::any(&mut self.dice);
        self.connect(index, manner);
    }

    fn connect(&mut self, index: usize, manner: Manner) {
        let stage = Arc::clone(&self.stage);
        let follower = &mut self.followers[index];
        let target = follower.target.clone();
        stage.note(&format!("a subscriber follows {} {manner:?}", target.execution_id));
        let (subscriber, visit) = follower.connect(&stage, manner);
        let notebook = Notebook::of(follower, visit);
        let process = self.process();
        let runtime = process.runtime.clone();
        process.spawn(follow(stage, runtime, target, subscriber, notebook));
    }

    fn leave(&mut self) {
        let connected = self.followers.iter_mut().find(|follower| follower.is_connected());
        connected.into_iter().for_each(Follower::disconnect);
    }

    async fn crash(&mut self) {
        self.stage.note("the process is killed");
        let Some(process) = self.process.take() else { return };
        let disk = process.crash().await;
        self.rise(disk).await;
    }

    async fn stop(&mut self) {
        self.stage.note("the process is stopped");
        let Some(process) = self.process.take() else { return };
        let disk = process.drain(Duration::from_millis(self.dice.millis(10_000))).await;
        self.rise(disk).await;
    }

    async fn rise(&mut self, disk: MemoryStore) {
        self.followers.iter_mut().for_each(Follower::disconnect);
        pass(self.dice.millis(5_000)).await;
        let (registry, limits) = (self.registry.clone(), self.limits.clone());
        self.process = Some(Process::launch(&self.stage, registry, limits, disk).await);
    }

    /// Stops all faults, answers suspensions and lets time pass, until everything has ended.
    async fn heals(&mut self) {
        self.stage.note("the world is healed");
        self.stage.heal();
        if self.dice.chance(30) {
            self.crash().await;
        }
        pass(5_000).await;
        checker::nothing_is_forgotten(&self.stage);
        suspension_ids_are_unique(&self.stage);
        for round in 0..ROUNDS_MAX {
            let answers = self.requests.answers();
            if answers.is_none() && self.process().is_quiet() {
                return;
            }
            self.send(answers.unwrap_or_default());
            pass(if round < 60 { 5_000 } else { 60_000 }).await;
        }
        checker::nothing_is_stuck(&self.stage);
        if !self.process().is_quiet() {
            self.stage.violated("a caller has no reply");
        }
    }

    /// Reconnects all subscribers, then checks that nothing is left.
    async fn finish(&mut self) {
        for index in 0..self.followers.len() {
            if !self.followers[index].is_connected() {
                self.connect(index, Manner::Eager);
            }
        }
        let rest = u64::try_from(self.limits.passivate_after.as_millis()).unwrap();
        pass(rest + 300_000 + self.stage.clock.behind_ms()).await;
        for follower in &self.followers {
            // an execution's actor drops its subscribers only when it ends or when the disk failed
            follower.has_seen_everything(&self.stage, self.stage.faults.were_any());
        }
        let stats = self.process().runtime.stats();
        checker::nothing_is_left(&self.stage, &stats);
        checker::records(&self.stage);
        self.promises.check(&self.stage);
        if let Some(process) = self.process.take() {
            process.crash().await;
        }
    }
}

async fn pass(ms: u64) {
    tokio::time::sleep(Duration::from_millis(ms)).await;
}
