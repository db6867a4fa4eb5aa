//! Links between the processes of a simulated cluster: messages take time and stay in order, and
//! connections break or are cut. Nothing arrives twice. A request on a connection that breaks is
//! lost for its sender, and may arrive nevertheless.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::ready;
use futures_util::stream::{BoxStream, StreamExt as _, once, unfold};
use greenroom_actors::domain::cluster::NodeId;
use greenroom_actors::ports::links::{Answerer, Exchange, LinkError, Links};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until, timeout};

use crate::simulator::cluster::line::Line;
use crate::simulator::dice::Dice;

/// Answers of one exchange that wait for their reader.
const UNREAD_MAX: usize = 16;
/// Maximum time until a connection is there again that was broken.
const RECONNECT_MS: u64 = 2_000;
/// Maximum time for which a request is carried out for which its sender no longer waits.
const UNWANTED_MS: u64 = 2_000;

#[derive(Clone)]
pub(crate) struct SimNetwork(Arc<Mutex<Network>>);

struct Network {
    processes: BTreeMap<NodeId, (Arc<dyn Answerer>, Arc<Line>)>,
    connections: BTreeMap<(NodeId, NodeId), Connection>,
    /// Processes that no other one reaches.
    unreachable: BTreeSet<NodeId>,
    /// Processes that have ended on hosts that refuse connections.
    ended: BTreeSet<NodeId>,
    /// Maximum time that a message takes.
    slowness_ms: u64,
    dice: Dice,
    /// Changes with every connection that breaks.
    breaks: watch::Sender<()>,
}

/// The connection of two processes.
#[derive(Default)]
struct Connection {
    is_cut: bool,
    /// Number of times that it broke.
    breaks: u64,
    /// Time until which it is not there.
    away_until: Option<Instant>,
    /// Arrivals of the last messages, from the lower process and to it.
    arrivals: [Option<Instant>; 2],
}

fn pair(one: NodeId, other: NodeId) -> (NodeId, NodeId) {
    (one.min(other), one.max(other))
}

impl Network {
    fn connection(&mut self, one: NodeId, other: NodeId) -> &mut Connection {
        self.connections.entry(pair(one, other)).or_default()
    }

    fn break_pair(&mut self, one: NodeId, other: NodeId) {
        let away = Duration::from_millis(self.dice.millis(RECONNECT_MS));
        let connection = self.connection(one, other);
        connection.breaks += 1;
        connection.away_until = Some(Instant::now() + away);
        self.breaks.send_replace(());
    }

    fn break_all_of(&mut self, node: NodeId) {
        let of_node: Vec<_> =
            self.connections.keys().filter(|(a, b)| *a == node || *b == node).copied().collect();
        of_node.into_iter().for_each(|(one, other)| self.break_pair(one, other));
    }

    fn connects(&mut self, from: NodeId, to: NodeId) -> bool {
        let is_reachable = self.processes.contains_key(&from)
            && self.processes.contains_key(&to)
            && !self.unreachable.contains(&from)
            && !self.unreachable.contains(&to);
        let connection = self.connection(from, to);
        let is_away = connection.away_until.is_some_and(|until| Instant::now() < until);
        is_reachable && !connection.is_cut && !is_away
    }

    /// Returns the time at which the next message arrives.
    fn arrival(&mut self, from: NodeId, to: NodeId) -> Instant {
        let takes = Duration::from_millis(self.dice.millis(self.slowness_ms));
        let arrival = &mut self.connection(from, to).arrivals[usize::from(from < to)];
        let at = (Instant::now() + takes).max(arrival.unwrap_or_else(Instant::now));
        *arrival = Some(at);
        at
    }
}

impl SimNetwork {
    pub(crate) fn new(dice: Dice) -> Self {
        Self(Arc::new(Mutex::new(Network {
            processes: BTreeMap::new(),
            connections: BTreeMap::new(),
            unreachable: BTreeSet::new(),
            ended: BTreeSet::new(),
            slowness_ms: 0,
            dice,
            breaks: watch::Sender::new(()),
        })))
    }

    fn network(&self) -> MutexGuard<'_, Network> {
        self.0.lock().unwrap()
    }

    pub(crate) fn links_of(&self, node: NodeId, line: &Arc<Line>) -> Arc<dyn Links> {
        let (network, line) = (self.clone(), Arc::clone(line));
        Arc::new(SimLinks { network, node, line, attached: OnceLock::new() })
    }

    pub(crate) fn set_slowness(&self, most_ms: u64) {
        self.network().slowness_ms = most_ms;
    }

    /// Cuts the connection of two processes, or lets it be there again.
    pub(crate) fn cut(&self, one: NodeId, other: NodeId, is_cut: bool) {
        let mut network = self.network();
        network.break_pair(one, other);
        network.connection(one, other).is_cut = is_cut;
    }

    /// Breaks the connections of a process, which are there again soon.
    pub(crate) fn break_all_of(&self, node: NodeId) {
        self.network().break_all_of(node);
    }

    /// Notes that a process cannot be reached, because its silence was noticed, or that it can.
    pub(crate) fn set_reachable(&self, node: NodeId, is_reachable: bool) {
        let mut network = self.network();
        if is_reachable {
            network.unreachable.remove(&node);
        } else if network.unreachable.insert(node) {
            network.break_all_of(node);
        }
    }

    /// Removes a process that has ended.
    pub(crate) fn remove(&self, node: NodeId) {
        let mut network = self.network();
        network.processes.remove(&node);
        network.unreachable.remove(&node);
        if network.dice.chance(60) {
            network.ended.insert(node);
        }
        network.break_all_of(node);
    }

    /// Ends all faults.
    pub(crate) fn heal(&self) {
        let mut network = self.network();
        network.slowness_ms = 0;
        for connection in network.connections.values_mut() {
            connection.is_cut = false;
            connection.away_until = None;
        }
    }
}

struct SimLinks {
    network: SimNetwork,
    node: NodeId,
    line: Arc<Line>,
    attached: OnceLock<()>,
}

impl Links for SimLinks {
    fn attach(&self, answerer: Arc<dyn Answerer>) {
        if self.attached.set(()).is_ok() {
            let line = Arc::clone(&self.line);
            self.network.network().processes.insert(self.node, (answerer, line));
        }
    }

    fn open(&self, to: NodeId, request: Bytes) -> Exchange {
        let mut network = self.network.network();
        if !network.connects(self.node, to) {
            return once(ready(Err(LinkError::NotSent))).boxed();
        }
        let (answerer, line) = network.processes.get(&to).cloned().unwrap();
        let trip = Trip {
            network: self.network.clone(),
            from: self.node,
            to,
            breaks: network.connection(self.node, to).breaks,
            broken: network.breaks.subscribe(),
            answerer,
            lines: [Arc::clone(&self.line), line],
        };
        drop(network);
        let (out, answers) = mpsc::channel(UNREAD_MAX);
        tokio::spawn(trip.carry(request.into(), out));
        unfold(answers, |mut answers| async { Some((answers.recv().await?, answers)) }).boxed()
    }

    fn has_ended(&self, node: NodeId) -> bool {
        self.network.network().ended.contains(&node)
    }
}

type Answers = BoxStream<'static, Vec<u8>>;
type Out = mpsc::Sender<Result<Vec<u8>, LinkError>>;

/// One exchange, over one connection.
struct Trip {
    network: SimNetwork,
    from: NodeId,
    to: NodeId,
    /// Number of times that the connection had broken when the request was sent.
    breaks: u64,
    broken: watch::Receiver<()>,
    answerer: Arc<dyn Answerer>,
    lines: [Arc<Line>; 2],
}

impl Trip {
    async fn carry(mut self, request: Vec<u8>, out: Out) {
        if !self.has_arrived(self.from, self.to).await {
            let _ = out.send(Err(LinkError::Lost)).await;
            let (is_late, time) = {
                let dice = &mut self.network.network().dice;
                (dice.chance(50), dice.millis(UNWANTED_MS))
            };
            if is_late {
                self.lines[1].spoken().await;
                let answers = self.answerer.answer(self.from, request);
                let _ = timeout(Duration::from_millis(time), answers.collect::<Vec<_>>()).await;
            }
            return;
        }
        let answers = self.answerer.answer(self.from, request);
        if self.pass_on(answers, &out).await.is_none() {
            let _ = out.send(Err(LinkError::Lost)).await;
        }
    }

    /// Passes answers on until their end; `None` if the connection breaks.
    async fn pass_on(&mut self, mut answers: Answers, out: &Out) -> Option<()> {
        loop {
            let next = {
                let broken = self.is_broken();
                tokio::select! {
                    biased;
                    () = broken => return None,
                    () = out.closed() => return Some(()),
                    next = answers.next() => next,
                }
            };
            if !self.has_arrived(self.to, self.from).await {
                return None;
            }
            match next {
                // an error: the asker has left
                Some(answer) => out.send(Ok(answer)).await.ok()?,
                None => return Some(()),
            }
        }
    }

    /// Waits until a message arrives; false if the connection breaks before.
    async fn has_arrived(&mut self, from: NodeId, to: NodeId) -> bool {
        let at = self.network.network().arrival(from, to);
        let lines = self.lines.clone();
        let arrives = async move {
            for line in &lines {
                line.spoken().await;
            }
            sleep_until(at).await;
            for line in &lines {
                line.spoken().await;
            }
        };
        tokio::select! {
            biased;
            () = self.is_broken() => false,
            () = arrives => true,
        }
    }

    async fn is_broken(&mut self) {
        while self.network.network().connection(self.from, self.to).breaks == self.breaks {
            if self.broken.changed().await.is_err() {
                return;
            }
        }
    }
}
