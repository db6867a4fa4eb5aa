//! The other end of a connection, seen past the framework: cut it, bound its buffer, hear that
//! it has left.
//!
//! The framework does not poll a connection whose client does not read, and does not drop a
//! handler whose client has left. So a duplicate of each connection's socket is kept beside it.

use std::any::Any;
use std::io::{self, ErrorKind};
use std::net::{Shutdown, TcpStream};
use std::os::fd::AsFd;
use std::sync::{Arc, Weak};
use std::time::Duration;

use actix_web::HttpRequest;
use actix_web::dev::Extensions;
use greenroom_actors::observe::disconnect::Disconnect;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::io::Interest;

use crate::api::ApiError;

/// Send buffer of connections that carry events: what a reader can be behind without knowing.
const EVENT_SEND_BUFFER_BYTES: usize = 64 * 1024;
/// How often the other end is looked at while a long call runs.
pub(crate) const WATCH_INTERVAL: Duration = Duration::from_millis(200);

/// A duplicate of a connection's socket.
#[derive(Debug)]
pub(crate) struct Peer(Arc<TcpStream>);

impl Peer {
    /// Has the kernel end a connection whose other end takes nothing for so long although something
    /// is to be sent: it alone knows what has not been taken. For `HttpServer::on_connect`.
    pub(crate) fn limit_writes(connection: &dyn Any, write_timeout: Duration) {
        let Some(stream) = connection.downcast_ref::<actix_web::rt::net::TcpStream>() else {
            return;
        };
        #[cfg(target_os = "linux")]
        if let Err(error) = socket2::SockRef::from(stream).set_tcp_user_timeout(Some(write_timeout))
        {
            log::debug!("a connection has no time limit for writes: {error}");
        }
        #[cfg(not(target_os = "linux"))]
        let _ = (stream, write_timeout);
    }

    /// Keeps a duplicate with the connection. For `HttpServer::on_connect`.
    pub(crate) fn remember(connection: &dyn Any, extensions: &mut Extensions) {
        let Some(stream) = connection.downcast_ref::<actix_web::rt::net::TcpStream>() else {
            return;
        };
        match stream.as_fd().try_clone_to_owned() {
            Ok(socket) => {
                extensions.insert(Self(Arc::new(TcpStream::from(socket))));
            }
            // Out of descriptors: the connection works, but cannot be cut when it stalls.
            Err(error) => log::warn!("a connection's socket cannot be duplicated: {error}"),
        }
    }

    /// The other end of a request's connection; `None` in tests without one.
    fn of(request: &HttpRequest) -> Option<&Self> {
        request.conn_data()
    }

    /// Ends the connection at once, from any thread, for whoever finds it stalled. Does not keep
    /// the socket open after the connection has gone.
    pub(crate) fn disconnect_of(request: &HttpRequest) -> Disconnect {
        Self::of(request).map_or_else(|| -> Disconnect { Arc::new(|| ()) }, Self::disconnect)
    }

    /// As [`Self::disconnect_of`].
    pub(crate) fn disconnect(&self) -> Disconnect {
        let socket = Arc::downgrade(&self.0);
        Arc::new(move || {
            if let Some(socket) = socket.upgrade() {
                // Fails only when the connection has ended by itself.
                let _ = socket.shutdown(Shutdown::Both);
            }
        })
    }

    /// Bounds what the kernel takes in for a reader of events.
    pub(crate) fn bound_send_buffer(request: &HttpRequest) {
        if let Some(Self(socket)) = Self::of(request) {
            let set =
                socket2::SockRef::from(&**socket).set_send_buffer_size(EVENT_SEND_BUFFER_BYTES);
            if let Err(error) = set {
                log::debug!("a send buffer keeps its size: {error}");
            }
        }
    }

    /// Whether the other end has left. Takes a client that closes only its sending side for one
    /// that has left; sees nothing while a further request waits unread.
    fn has_left(&self) -> bool {
        // The descriptor is shared with the framework's non-blocking one: this never waits.
        match self.0.peek(&mut [0]) {
            Ok(received) => received == 0,
            Err(error) => !matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted),
        }
    }
}

/// Whether a connection takes in what is written to it. The framework buffers more than a reader
/// of events should be behind, and there is no other way to know how much of that is left.
#[derive(Debug, Clone)]
pub(crate) struct Room(Option<Weak<TcpStream>>);

impl Room {
    /// Of a request's connection; in tests without one, there is always room.
    pub(crate) fn of(request: &HttpRequest) -> Self {
        Self(Peer::of(request).map(|peer| Arc::downgrade(&peer.0)))
    }

    /// Always room, of no connection.
    #[cfg(test)]
    pub(crate) fn plenty() -> Self {
        Self(None)
    }

    /// Resolves when the framework has handed over what it was given before, and the kernel has
    /// room for more.
    pub(crate) async fn wait(&self) {
        // Runs after the connection's task, which writes what it has before it rests.
        let _ = actix_web::rt::spawn(std::future::ready(())).await;
        let Some(socket) = self.0.as_ref().and_then(Weak::upgrade) else { return };
        if is_writable(&socket) {
            return;
        }
        if let Err(error) = becomes_writable(&socket).await {
            log::debug!("a connection is not waited for: {error}");
        }
    }
}

async fn becomes_writable(socket: &TcpStream) -> io::Result<()> {
    let watched = actix_web::rt::net::TcpStream::from_std(socket.try_clone()?)?;
    let look = || if is_writable(socket) { Ok(()) } else { Err(ErrorKind::WouldBlock.into()) };
    watched.async_io(Interest::WRITABLE, look).await
}

/// Whether a write would not wait; one to a connection that has ended does not.
fn is_writable(socket: &TcpStream) -> bool {
    let mut socket = [PollFd::new(socket, PollFlags::OUT)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut socket, Some(&now)).is_ok_and(|ready| ready > 0)
}

/// Looks whether a request's client is still there. Does not keep its socket open.
#[derive(Debug, Clone)]
pub(crate) struct Watch(Option<Weak<TcpStream>>);

impl Watch {
    /// Watches the client of a request; in tests without a connection, one that never leaves.
    pub(crate) fn of(request: &HttpRequest) -> Self {
        Self(Peer::of(request).map(|peer| Arc::downgrade(&peer.0)))
    }

    /// Watches nobody.
    #[cfg(test)]
    pub(crate) fn never() -> Self {
        Self(None)
    }

    /// Whether the client has left.
    pub(crate) fn has_left(&self) -> bool {
        match &self.0 {
            Some(socket) => socket.upgrade().is_none_or(|socket| Peer(socket).has_left()),
            None => false,
        }
    }

    /// Resolves when the client has left.
    pub(crate) async fn gone(&self) {
        while !self.has_left() {
            tokio::time::sleep(WATCH_INTERVAL).await;
        }
    }
}

/// Stops waiting when the client leaves, which the framework would not: what was begun goes on by
/// itself. A quick answer costs no look at the socket.
pub(crate) async fn while_there<T>(
    request: &HttpRequest,
    answer: impl Future<Output = Result<T, ApiError>>,
) -> Result<T, ApiError> {
    let mut answer = std::pin::pin!(answer);
    tokio::select! {
        biased;
        answered = &mut answer => return answered,
        () = tokio::time::sleep(WATCH_INTERVAL) => {}
    }
    unless_gone(request, answer).await
}

/// Drops the work when the client leaves, which the framework would not.
pub(crate) async fn unless_gone<T>(
    request: &HttpRequest,
    work: impl Future<Output = Result<T, ApiError>>,
) -> Result<T, ApiError> {
    let client = Watch::of(request);
    tokio::select! {
        biased;
        done = work => done,
        // Nobody reads this answer.
        () = client.gone() => Err(ApiError::InvalidRequest("the client has left".to_owned())),
    }
}
