//! One of the servers of a simulated cluster: its processes, one after the other, have its name and
//! its clock.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use greenroom_actors::domain::cluster::NodeId;
use greenroom_actors::ports::members::{Members as _, View};
use greenroom_actors::ports::memory::MemoryStore;
use greenroom_actors::ports::store::Journal as _;
use greenroom_actors::{RuntimeLimits, RuntimePorts};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::simulator::clock::SimClock;
use crate::simulator::cluster::doors::{Door, Doors};
use crate::simulator::cluster::line::Line;
use crate::simulator::cluster::links::SimNetwork;
use crate::simulator::cluster::members::{Port, SimMembers};
use crate::simulator::dice::Dice;
use crate::simulator::process::{self, Process};
use crate::simulator::stage::Stage;
use crate::simulator::store::SimStore;

/// Silence after which the connections of a process count as broken.
const NOTICED_AFTER: Duration = Duration::from_secs(3);

/// Everything that all servers share.
pub(crate) struct Setting {
    pub(crate) stage: Arc<Stage>,
    pub(crate) disk: Arc<MemoryStore>,
    pub(crate) network: SimNetwork,
    pub(crate) doors: Doors,
    pub(crate) limits: RuntimeLimits,
    pub(crate) lease: Duration,
}

pub(crate) struct Server {
    pub(crate) name: &'static str,
    pub(crate) clock: Arc<SimClock>,
    pub(crate) up: Option<Up>,
    /// Time at which its next process begins.
    pub(crate) rises_at: Instant,
    /// Its last process.
    last: Option<NodeId>,
}

/// The process of a server.
pub(crate) struct Up {
    pub(crate) node: NodeId,
    pub(crate) process: Process,
    line: Arc<Line>,
    disk: Arc<MemoryStore>,
    views: watch::Receiver<Option<Arc<View>>>,
    drain: Option<JoinHandle<()>>,
    silent_since: Instant,
}

impl Server {
    pub(crate) fn new(name: &'static str, clock: SimClock, rises_at: Instant) -> Self {
        Self { name, clock: Arc::new(clock), up: None, rises_at, last: None }
    }

    pub(crate) async fn rise(&mut self, setting: &Setting) {
        let Setting { stage, network, lease, .. } = setting;
        let number = stage.process.fetch_add(1, Ordering::SeqCst);
        let disk = Arc::new(setting.disk.join(self.name, *lease));
        let member = disk.members().unwrap();
        let node = member.own();
        stage.note(&format!("{} begins as process {node}", self.name));
        stage.count("process");
        if let Some(before) = self.last.replace(node) {
            // a process is gone when the next one of its name joins
            stage.book.gone(before);
        }
        stage.book.joined(node);
        let line = Arc::new(Line::new(&stage.faults, *lease / 3));
        let dice = |what: &str| Dice::about(stage.seed, &format!("{what} {number}"));
        let members = SimMembers::of(member, stage, &line, dice("member"));
        let store = SimStore::of_member(
            Arc::clone(&disk),
            Arc::clone(&stage.faults),
            dice("disk"),
            Some(Arc::clone(&members)),
        );
        let port = Port(members);
        let views = port.views();
        let ports = RuntimePorts {
            members: Some(Arc::new(port)),
            links: Some(network.links_of(node, &line)),
            ..RuntimePorts::new(Arc::clone(&store) as _, Arc::clone(&self.clock) as _)
        };
        let of_bodies = u64::try_from(node.0).unwrap();
        let registry = process::registry(stage, of_bodies);
        let configured = (registry, setting.limits.clone());
        let process = Process::over(stage, configured, store, (number, of_bodies), ports).await;
        let door = Door {
            name: self.name,
            runtime: process.runtime.clone(),
            closed: CancellationToken::new(),
        };
        setting.doors.open(door);
        let (drain, silent_since) = (None, Instant::now());
        self.up = Some(Up { node, process, line, disk, views, drain, silent_since });
    }

    /// Ends the process without a word.
    pub(crate) async fn crash(&mut self, setting: &Setting) {
        let Some(up) = self.up.take() else { return };
        setting.stage.note(&format!("{} is killed", self.name));
        self.disappear(setting, up.node);
        up.count(&setting.stage);
        up.process.store.crash();
        up.end().await;
    }

    /// Ends the process after its drain.
    async fn leave(&mut self, setting: &Setting) {
        let Some(up) = self.up.take() else { return };
        setting.stage.note(&format!("{} has drained", self.name));
        self.disappear(setting, up.node);
        up.count(&setting.stage);
        if up.line.is_open() {
            up.process.store.close_in_order();
            up.disk.close();
            setting.stage.book.gone(up.node);
        } else {
            up.process.store.crash();
        }
        up.end().await;
    }

    fn disappear(&self, setting: &Setting, node: NodeId) {
        setting.doors.close(self.name);
        setting.network.remove(node);
    }

    /// Notices what has happened to the process; returns true if it has ended.
    pub(crate) async fn tend(&mut self, setting: &Setting) -> bool {
        let Some(up) = &mut self.up else { return false };
        if up.line.silent_until().is_some_and(|until| until <= Instant::now()) {
            up.speak(setting);
        } else if up.is_silent() && up.silent_since.elapsed() >= NOTICED_AFTER {
            setting.network.set_reachable(up.node, false);
        }
        if up.views.has_changed().is_err() {
            setting.stage.note(&format!("{} has found that it is gone", self.name));
            setting.stage.count("process that was fenced");
            self.crash(setting).await;
            return true;
        }
        if up.drain.as_ref().is_some_and(JoinHandle::is_finished) {
            self.leave(setting).await;
            return true;
        }
        false
    }
}

impl Up {
    pub(crate) fn is_silent(&self) -> bool {
        self.line.silent_until().is_some()
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.drain.is_some()
    }

    /// Lets the process be silent for so long.
    pub(crate) fn fall_silent(&mut self, time: Duration) {
        self.silent_since = Instant::now();
        self.disk.set_silent(true);
        self.line.silence(Some(Instant::now() + time));
    }

    pub(crate) fn speak(&self, setting: &Setting) {
        setting.network.set_reachable(self.node, true);
        self.disk.set_silent(false);
        self.line.silence(None);
    }

    pub(crate) fn drain(&mut self, grace: Duration) {
        let runtime = self.process.runtime.clone();
        self.drain = Some(actix::spawn(async move { runtime.drain(grace).await }));
    }

    /// Counts what it has done as a member.
    fn count(&self, stage: &Stage) {
        let Some(stats) = self.process.runtime.cluster_stats() else { return };
        stage.count_many("command answered by another process", stats.forwarded_answered);
        stage.count_many("command that waited for its slot", stats.forwarded_here);
        stage.count_many("command refused for its slot", stats.forwarded_refused);
        stage.count_many("slot taken", stats.slots_taken);
        stage.count_many("slot given", stats.slots_given);
    }

    async fn end(self) {
        self.line.end();
        self.disk.set_silent(true);
        if let Some(drain) = self.drain {
            drain.abort();
        }
        self.process.vanish().await;
    }
}
