//! Connections of other servers, which carry their requests.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use greenroom_actors::ports::links::Answerer;
use tokio::net::{TcpListener, TcpStream};

use crate::accepted::UNFINISHED_MAX;
use crate::answering::Answering;
use crate::connection::{Socket, carry};
use crate::handshake::{HandshakeError, Session};
use crate::shared::Shared;

/// Pause after a failure to accept: the process has no room for another socket.
const PAUSE: Duration = Duration::from_millis(100);

/// Accepts connections until the task is dropped.
pub(crate) async fn accept(
    listener: std::net::TcpListener,
    answerer: Arc<dyn Answerer>,
    shared: Arc<Shared>,
) {
    let listener = match TcpListener::from_std(listener) {
        Ok(listener) => listener,
        Err(error) => return log::error!("cannot accept connections of other servers: {error}"),
    };
    loop {
        match listener.accept().await {
            Ok((socket, from)) => {
                shared.complaints.forget("accept");
                tokio::spawn(serve(socket, from, Arc::clone(&answerer), Arc::clone(&shared)));
            }
            Err(error) => {
                if shared.complaints.is_new("accept", &error.to_string()) {
                    log::warn!("cannot accept a connection of another server: {error}");
                }
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

/// Failure to establish a connection that was accepted.
#[derive(Debug, thiserror::Error)]
enum Unfinished {
    #[error("it took longer than {0:?}")]
    Slow(Duration),
    #[error("more than {UNFINISHED_MAX} connections were waiting to be established")]
    TooMany,
    #[error(transparent)]
    Handshake(#[from] HandshakeError),
}

async fn serve(
    socket: TcpStream,
    from: SocketAddr,
    answerer: Arc<dyn Answerer>,
    shared: Arc<Shared>,
) {
    let (entry, given_up) = shared.accepted.begin();
    let outcome = tokio::select! {
        outcome = tokio::time::timeout(shared.times.handshake, establish(socket, &shared)) => {
            outcome.unwrap_or(Err(Unfinished::Slow(shared.times.handshake)))
        }
        // an error, as this is: a newer connection has taken the place
        _ = given_up => Err(Unfinished::TooMany),
    };
    shared.accepted.finish(entry);
    let host = from.ip().to_string();
    let (socket, session) = match outcome {
        Ok(established) => established,
        Err(error) => {
            let cause = error.to_string();
            if shared.complaints.is_new(&host, &cause) {
                log::warn!("a connection from {host} to the listener of links is refused: {cause}");
            }
            return;
        }
    };
    shared.complaints.forget(&host);
    let Session { peer, version, limits } = session;
    let Some(unwanted) = shared.accepted.keep(entry, peer) else { return };
    let name = shared.peers.named(peer);
    log::debug!("{name} has connected from {from}, with version {version} of the protocol");
    let served = Served(Answering::new(peer, answerer, shared.answers.clone(), limits));
    let ended = tokio::select! {
        ending = carry(socket, &served.0, &shared.times) => ending.to_string(),
        // an error, as this is: the server has connected again, or left
        _ = unwanted => "it was replaced, or the server has left".to_owned(),
    };
    log::debug!("the connection of {name} from {from} ended: {ended}");
    shared.accepted.end(entry, peer);
}

/// A connection in use. Its exchanges end with it.
struct Served(Arc<Answering>);

impl Drop for Served {
    fn drop(&mut self) {
        self.0.lose();
    }
}

async fn establish(
    socket: TcpStream,
    shared: &Shared,
) -> Result<(Box<dyn Socket>, Session), Unfinished> {
    socket.set_nodelay(true).map_err(HandshakeError::from)?;
    let (mut socket, binding): (Box<dyn Socket>, _) = match &shared.tls {
        Some(tls) => tls.accept(socket).await?,
        None => (Box::new(socket), None),
    };
    let is_gone = |node| shared.accepted.is_gone(node);
    let session = shared.greeter.answer(&mut *socket, binding, is_gone).await?;
    Ok((socket, session))
}
