//! Links between processes of one test, which can be cut.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use bytes::Bytes;
use futures_util::future::ready;
use futures_util::stream::{StreamExt as _, once};
use tokio::sync::watch;

use crate::domain::cluster::NodeId;
use crate::ports::links::{Answerer, Exchange, LinkError, Links};

/// The network of one test.
#[derive(Clone, Default)]
pub struct TestNetwork(Arc<Mutex<Network>>);

#[derive(Default)]
struct Network {
    answerers: BTreeMap<NodeId, Arc<dyn Answerer>>,
    /// Pairs that cannot reach each other.
    cut: BTreeSet<(NodeId, NodeId)>,
    /// Maximum size of a request, if there is one.
    request_bytes_max: Option<usize>,
    /// Processes whose hosts show that they have ended.
    ended: BTreeSet<NodeId>,
    /// Changes with every cut.
    changes: watch::Sender<()>,
}

impl TestNetwork {
    /// Returns the links of a process.
    pub fn links_of(&self, node: NodeId) -> Arc<dyn Links> {
        Arc::new(TestLinks { network: self.clone(), node, attached: OnceLock::new() })
    }

    /// Cuts the connection of two processes: what is under way between them is lost.
    pub fn cut(&self, one: NodeId, other: NodeId) {
        let mut network = self.network();
        network.cut.extend([(one, other), (other, one)]);
        network.changes.send_replace(());
    }

    /// Connects two processes again.
    pub fn heal(&self, one: NodeId, other: NodeId) {
        let mut network = self.network();
        network.cut.retain(|pair| *pair != (one, other) && *pair != (other, one));
    }

    /// Carries no requests beyond a size.
    pub fn limit_requests(&self, bytes_max: usize) {
        self.network().request_bytes_max = Some(bytes_max);
    }

    /// Has the host of a process that was killed refuse connections.
    pub fn refuse(&self, node: NodeId) {
        self.network().ended.insert(node);
    }

    /// Removes a process that was killed.
    pub fn remove(&self, node: NodeId) {
        let mut network = self.network();
        network.answerers.remove(&node);
        network.changes.send_replace(());
    }

    fn network(&self) -> MutexGuard<'_, Network> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for TestNetwork {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TestNetwork").finish_non_exhaustive()
    }
}

impl Network {
    fn connects(&self, from: NodeId, to: NodeId) -> bool {
        self.answerers.contains_key(&to) && !self.cut.contains(&(from, to))
    }
}

/// The links of one process.
struct TestLinks {
    network: TestNetwork,
    node: NodeId,
    attached: OnceLock<()>,
}

impl Links for TestLinks {
    fn attach(&self, answerer: Arc<dyn Answerer>) {
        if self.attached.set(()).is_ok() {
            self.network.network().answerers.insert(self.node, answerer);
        }
    }

    fn has_ended(&self, node: NodeId) -> bool {
        self.network.network().ended.contains(&node)
    }

    fn open(&self, to: NodeId, request: Bytes) -> Exchange {
        let (answerer, mut changes) = {
            let network = self.network.network();
            if network.request_bytes_max.is_some_and(|most| request.len() > most) {
                return once(ready(Err(LinkError::TooLarge))).boxed();
            }
            let answerer = network.answerers.get(&to).filter(|_| network.connects(self.node, to));
            (answerer.cloned(), network.changes.subscribe())
        };
        let Some(answerer) = answerer else {
            return once(ready(Err(LinkError::NotSent))).boxed();
        };
        let (network, from) = (self.network.clone(), self.node);
        let cut = async move {
            while network.network().connects(from, to) {
                if changes.changed().await.is_err() {
                    std::future::pending().await
                }
            }
        };
        let answers = answerer.answer(from, request.into()).map(Ok);
        // the end of the answers ends the exchange, a cut ends it with an error
        let lost = once(async move {
            cut.await;
            Err(LinkError::Lost)
        });
        let ended = answers.map(Some).chain(once(ready(None)));
        let either = futures_util::stream::select(ended, lost.map(Some));
        let until_end = either.take_while(|item| ready(item.is_some())).filter_map(ready);
        until_end
            .scan(false, |is_lost, item: Result<Vec<u8>, LinkError>| {
                let after_loss = std::mem::replace(is_lost, item.is_err());
                ready((!after_loss).then_some(item))
            })
            .boxed()
    }
}
