//! Links between servers on this machine, over real sockets.
#![expect(clippy::unwrap_used, reason = "a test says what it expects")]

#[path = "links/closing.rs"]
mod closing;
#[path = "links/exchanges.rs"]
mod exchanges;
#[path = "links/failures.rs"]
mod failures;
#[path = "links/intruders.rs"]
mod intruders;
#[path = "links/limits.rs"]
mod limits;
#[path = "links/log.rs"]
mod log;
#[path = "links/raw.rs"]
mod raw;
#[path = "links/settings.rs"]
mod settings;
#[path = "links/tls.rs"]
mod tls;

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::stream::{self, BoxStream};
use futures_util::{Stream, StreamExt as _};
use greenroom_actors::domain::cluster::NodeId;
use greenroom_actors::ports::links::{Answerer, Exchange, LinkError, Links as _};
use greenroom_links::{
    Addresses, LinkIdentity, LinkListener, LinkSecret, LinkSettings, LinkTimes, LinksError,
    PeerAddress, PeerFigures, TcpLinks,
};
use support::listener::reserved_port;
use support::{PATIENCE, eventually};
use tokio::sync::watch;

const CLUSTER: &[u8] = b"the cluster of the tests";
const SECRET: &[u8] = b"a secret of this cluster";

/// Answers as a function does.
struct Answering<F>(F);

impl<F> Answerer for Answering<F>
where
    F: Fn(NodeId, Vec<u8>) -> BoxStream<'static, Vec<u8>> + Send + Sync,
{
    fn answer(&self, from: NodeId, request: Vec<u8>) -> BoxStream<'static, Vec<u8>> {
        self.0(from, request)
    }
}

/// A server of a cluster, as far as its links.
struct Server {
    node: NodeId,
    links: TcpLinks,
    listed: watch::Sender<Addresses>,
}

fn identity(node: i64) -> LinkIdentity {
    let secret = LinkSecret(SECRET.to_vec());
    LinkIdentity { own: NodeId(node), cluster: CLUSTER.to_vec(), secret }
}

fn settings_at(port: u16) -> LinkSettings {
    let pauses = (Duration::from_millis(1), Duration::from_millis(5));
    let times = LinkTimes { pauses, ..LinkTimes::default() };
    LinkSettings { times, ..LinkSettings::new(format!("127.0.0.1:{port}")) }
}

fn settings() -> LinkSettings {
    settings_at(reserved_port())
}

impl Server {
    fn start(
        settings: &LinkSettings,
        identity: &LinkIdentity,
        answer: impl Fn(NodeId, Vec<u8>) -> BoxStream<'static, Vec<u8>> + Send + Sync + 'static,
    ) -> Self {
        let (listed, lists) = watch::channel(Addresses::default());
        let links = LinkListener::bind(settings).unwrap().start(identity, lists).unwrap();
        links.attach(Arc::new(Answering(answer)));
        Self { node: identity.own, links, listed }
    }

    /// Starts a server that answers each request with itself.
    fn echoing(node: i64) -> Self {
        Self::start(&settings(), &identity(node), echo)
    }

    fn port(&self) -> u16 {
        self.links.address().port()
    }

    /// Lists other servers, at these ports of this machine.
    fn list(&self, servers: &[(NodeId, u16)]) {
        let listed = servers.iter().map(|(node, port)| at(*node, format!("127.0.0.1:{port}")));
        self.listed.send_replace(Arc::new(listed.collect()));
    }

    fn figures_of(&self, node: NodeId) -> Option<PeerFigures> {
        self.links.figures().remove(&node)
    }

    /// Lists one server and waits until it is connected.
    fn connect(&self, node: NodeId, port: u16) {
        self.list(&[(node, port)]);
        self.is_connected_to(node);
    }

    fn is_connected_to(&self, node: NodeId) {
        let is_connected = || self.figures_of(node)?.is_connected.then_some(());
        eventually("a connection", is_connected);
    }

    /// Waits for the failure to connect to a server.
    fn fails_to_connect(&self, node: NodeId) -> String {
        eventually("a failure to connect", || self.figures_of(node)?.last_error)
    }

    fn ask(&self, to: &Server, request: impl Into<Vec<u8>>) -> Exchange {
        self.links.open(to.node, request.into().into())
    }
}

fn at(node: NodeId, address: String) -> (NodeId, PeerAddress) {
    (node, PeerAddress { name: format!("server-{node}").into(), address: address.into() })
}

/// Starts two servers, of which the first is connected to the second.
fn pair(
    answer: impl Fn(NodeId, Vec<u8>) -> BoxStream<'static, Vec<u8>> + Send + Sync + 'static,
) -> (Server, Server) {
    let asker = Server::echoing(1);
    let answerer = Server::start(&settings(), &identity(2), answer);
    asker.connect(answerer.node, answerer.port());
    (asker, answerer)
}

fn echo(_: NodeId, request: Vec<u8>) -> BoxStream<'static, Vec<u8>> {
    stream::once(async { request }).boxed()
}

/// Awaits something that is expected to happen.
async fn awaited<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, what).await.expect("it never happened")
}

async fn next(exchange: &mut Exchange) -> Option<Result<Vec<u8>, LinkError>> {
    awaited(exchange.next()).await
}

async fn all(exchange: Exchange) -> Vec<Result<Vec<u8>, LinkError>> {
    awaited(exchange.collect()).await
}

/// A stream that notes when it is dropped.
struct Noting<S> {
    stream: S,
    is_dropped: Arc<AtomicBool>,
}

impl<S: Stream + Unpin> Stream for Noting<S> {
    type Item = S::Item;

    fn poll_next(
        mut self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<S::Item>> {
        self.stream.poll_next_unpin(context)
    }
}

impl<S> Drop for Noting<S> {
    fn drop(&mut self) {
        self.is_dropped.store(true, Ordering::SeqCst);
    }
}

/// Starts two servers; the second answers with the request and then waits for ever. Returns what is
/// true once its answers have been dropped.
fn waiting_pair(settings: &LinkSettings) -> (Server, Server, Arc<AtomicBool>) {
    let is_dropped = Arc::new(AtomicBool::default());
    let noted = Arc::clone(&is_dropped);
    let answer = move |_, request| {
        let stream = stream::iter([request]).chain(stream::pending());
        Noting { stream, is_dropped: Arc::clone(&noted) }.boxed()
    };
    let at_another_port = self::settings().listen;
    let asker_settings = LinkSettings { listen: at_another_port, ..settings.clone() };
    let asker = Server::start(&asker_settings, &identity(1), echo);
    let answerer = Server::start(settings, &identity(2), answer);
    (asker, answerer, is_dropped)
}

fn is_true(what: &str, value: &AtomicBool) {
    eventually(what, || value.load(Ordering::SeqCst).then_some(()));
}
