//! A world from its seed: random events, healing, and the final checks.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use greenroom_actors::RuntimeLimits;
use greenroom_actors::domain::ids::ExecutionId;
use greenroom_actors::ports::memory::MemoryStore;
use greenroom_actors::ports::store::{Projection, Status};
use greenroom_actors::registry::Registry;
use greenroom_actors::requests::Target;
use greenroom_actors::testkit::registry_of;

use crate::simulator::callers::{Answer, Start, target};
use crate::simulator::checker;
use crate::simulator::definitions;
use crate::simulator::dice::Dice;
use crate::simulator::process::{self, Process};
use crate::simulator::promises::{Promises, suspension_ids_are_unique};
use crate::simulator::stage::Stage;
use crate::simulator::subscribers::{Follower, Manner, Notebook, follow};

/// Maximum number of executions that callers start.
const STARTS_MAX: u64 = 12;
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
    started: Vec<Start>,
    /// Execution of the last request, which further requests often address.
    last: Option<Target>,
}

/// Plays a world to its end. Call within a runtime with paused time.
pub(crate) async fn play(seed: u64) -> Report {
    let mut dice = Dice::about(seed, "world");
    let definitions = definitions::workflows(&mut dice);
    let plans = registry_of(definitions).workflows;
    let disk = MemoryStore::new();
    let stage = Stage::new(seed, plans, Arc::new(MemoryStore::new()));
    stage.capture_logs();
    for plan in stage.plans.values() {
        stage.note(&format!("{:?}", plan.definition));
    }
    let registry = process::registry(&stage);
    let limits = process::limits(&mut dice);
    stage.note(&format!("{limits:?}"));
    let process = Process::launch(&stage, registry.clone(), limits.clone(), disk).await;
    let mut world = World {
        stage,
        promises: Arc::default(),
        dice,
        registry,
        limits,
        process: Some(process),
        followers: Vec::new(),
        started: Vec::new(),
        last: None,
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
        self.start();
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
            0..18 => self.start(),
            18..24 => self.start_again(),
            24..48 => self.resume(),
            48..57 => self.with_target(|caller, target| caller.suspend(target)),
            57..60 => self.with_target(|caller, target| caller.cancel(target)),
            60..67 => self.with_target(|caller, target| caller.describe(target)),
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

    fn start(&mut self) {
        if self.started.len() as u64 >= STARTS_MAX {
            return;
        }
        let number = self.dice.below(self.stage.plans.len() as u64);
        let chosen = ExecutionId::trusted(format!("e{}", self.started.len()));
        let start = Start {
            workflow: format!("w{number}"),
            id: self.dice.chance(70).then_some(chosen),
            token: self.stage.token(),
            key: self.dice.chance(40).then(|| format!("key {}", self.started.len())),
        };
        for _ in 0..self.copies() {
            self.send(&start);
        }
        self.started.push(start);
    }

    /// Repeats an earlier start: with its key, or with the same id only.
    fn start_again(&mut self) {
        if self.started.is_empty() {
            return;
        }
        let which = usize::try_from(self.dice.below(self.started.len() as u64)).unwrap();
        let earlier = &self.started[which];
        let start = if earlier.key.is_some() && self.dice.chance(70) {
            copy(earlier)
        } else {
            let Some(id) = earlier.id.clone() else { return };
            let token = self.stage.token();
            Start { workflow: earlier.workflow.clone(), id: Some(id), token, key: None }
        };
        self.send(&start);
    }

    fn send(&mut self, start: &Start) {
        let (stage, promises) = (Arc::clone(&self.stage), Arc::clone(&self.promises));
        // two starts without a key are two requests for one id
        let start = match &start.key {
            Some(_) => copy(start),
            None => Start { token: self.stage.token(), ..copy(start) },
        };
        let process = self.process();
        let caller = process.caller(&stage, &promises);
        process.spawn(caller.execute(start));
    }

    fn copies(&mut self) -> u64 {
        if self.dice.chance(20) { 2 } else { 1 }
    }

    fn resume(&mut self) {
        let Some(target) = self.pick_target() else { return };
        let waiting = self.stage.projection(&target.execution_id).and_then(|it| it.suspension);
        let suspension_id = waiting.as_ref().and_then(|it| it.id.as_deref().map(str::to_owned));
        let suspension_id = suspension_id.filter(|_| self.dice.chance(50));
        let step_id = match self.dice.below(10) {
            0..5 => None,
            5..8 => waiting.map(|suspension| suspension.step_id.to_string()),
            8 => Some(format!("s{}", self.dice.between(1, 6))),
            _ => Some("unknown".to_owned()),
        };
        let copies = self.copies();
        let is_one_wish = self.dice.chance(50);
        let token = self.stage.token();
        let key = is_one_wish.then(|| format!("key {token}"));
        let is_right = self.dice.chance(80);
        let answer = Answer { step_id, suspension_id, is_right, token, key };
        for _ in 0..copies {
            let (stage, promises) = (Arc::clone(&self.stage), Arc::clone(&self.promises));
            let token = if is_one_wish { token } else { stage.token() };
            let process = self.process();
            let caller = process.caller(&stage, &promises);
            process.spawn(caller.resume(target.clone(), Answer { token, ..answer.clone() }));
        }
    }

    fn with_target<F: Future<Output = ()> + 'static>(
        &mut self,
        wish: impl FnOnce(crate::simulator::callers::Caller, Target) -> F,
    ) {
        let Some(target) = self.pick_target() else { return };
        let (stage, promises) = (Arc::clone(&self.stage), Arc::clone(&self.promises));
        let process = self.process();
        let wish = wish(process.caller(&stage, &promises), target);
        process.spawn(wish);
    }

    /// Returns an execution, mostly that of the last request.
    fn pick_target(&mut self) -> Option<Target> {
        if self.dice.chance(60) && self.last.is_some() {
            return self.last.clone();
        }
        let all = self.stage.executions();
        let open: Vec<&Projection> = all.iter().filter(|it| !it.status.is_terminal()).collect();
        let found = match (open.is_empty(), all.is_empty()) {
            (_, true) => return None,
            (true, false) => self.dice.pick(&all),
            (false, false) => Projection::clone(self.dice.pick(&open)),
        };
        self.last = Some(target(&found.header.workflow_id, &found.header.id));
        self.last.clone()
    }

    fn follow(&mut self) {
        let Some(target) = self.pick_target() else { return };
        let known = self
            .followers
            .iter()
            .position(|it| it.target.execution_id == target.execution_id && !it.is_connected());
        let index = known.unwrap_or_else(|| {
            self.followers.push(Follower::new(target));
            self.followers.len() - 1
        });
        let manner = match self.dice.below(10) {
            0..6 => Manner::Eager,
            6..9 => Manner::Slow(self.dice.millis(30_000)),
            _ => Manner::Stalled,
        };
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
            let open = self.stage.executions();
            let open: Vec<_> = open.into_iter().filter(|it| !it.status.is_terminal()).collect();
            if open.is_empty() && self.process().is_quiet() {
                return;
            }
            for found in open {
                let is_asked = found.status == Status::Suspended && found.header.parent.is_none();
                if is_asked {
                    let target = target(&found.header.workflow_id, &found.header.id);
                    self.answer(target);
                }
            }
            pass(if round < 60 { 5_000 } else { 60_000 }).await;
        }
        let open = self.stage.executions();
        for found in open.iter().filter(|it| !it.status.is_terminal()) {
            let (id, status) = (&found.header.id, found.status);
            self.stage.violated(&format!("{id} is stuck as {status:?}"));
        }
        if !self.process().is_quiet() {
            self.stage.violated("a caller has no reply");
        }
    }

    fn answer(&mut self, target: Target) {
        let (stage, promises) = (Arc::clone(&self.stage), Arc::clone(&self.promises));
        let token = stage.token();
        // several steps may wait; they are answered one by one
        let waiting = stage.projection(&target.execution_id).and_then(|it| it.suspension);
        let step_id = waiting.map(|suspension| suspension.path.to_string());
        let answer = Answer { step_id, suspension_id: None, is_right: true, token, key: None };
        let process = self.process();
        let caller = process.caller(&stage, &promises);
        process.spawn(caller.resume(target, answer));
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
            follower.has_seen_everything(&self.stage);
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

fn copy(start: &Start) -> Start {
    let Start { workflow, id, token, key } = start;
    Start { workflow: workflow.clone(), id: id.clone(), token: *token, key: key.clone() }
}

async fn pass(ms: u64) {
    tokio::time::sleep(Duration::from_millis(ms)).await;
}
