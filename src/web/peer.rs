//! Access to a connection's socket past actix-web: disconnect it, limit its buffer, notice that the
//! client has disconnected.
//!
//! actix-web does not poll a connection whose client does not read, and does not drop a handler
//! whose client has disconnected. So a duplicate of each connection's socket is kept with it.

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

/// Send buffer of streams: the bytes that a client can be behind unnoticed.
const EVENT_SEND_BUFFER_BYTES: usize = 64 * 1024;
/// Interval of checks for a disconnected client during a long call.
pub(crate) const WATCH_INTERVAL: Duration = Duration::from_millis(200);

/// Duplicate of a connection's socket.
#[derive(Debug)]
pub(crate) struct Peer(Arc<TcpStream>);

impl Peer {
    /// Makes the kernel close a connection whose peer does not acknowledge sent bytes for so long:
    /// only the kernel knows about them. For `HttpServer::on_connect`.
    pub(crate) fn limit_writes(connection: &dyn Any, write_timeout: Duration) {
        let Some(stream) = connection.downcast_ref::<actix_web::rt::net::TcpStream>() else {
            return;
        };
        #[cfg(target_os = "linux")]
        if let Err(error) = socket2::SockRef::from(stream).set_tcp_user_timeout(Some(write_timeout))
        {
            log::debug!("cannot set the write timeout of a connection: {error}");
        }
        #[cfg(not(target_os = "linux"))]
        let _ = (stream, write_timeout);
    }

    /// Stores a duplicate with the connection. For `HttpServer::on_connect`.
    pub(crate) fn remember(connection: &dyn Any, extensions: &mut Extensions) {
        let Some(stream) = connection.downcast_ref::<actix_web::rt::net::TcpStream>() else {
            return;
        };
        match stream.as_fd().try_clone_to_owned() {
            Ok(socket) => {
                extensions.insert(Self(Arc::new(TcpStream::from(socket))));
            }
            Err(error) => log::warn!(
                "cannot duplicate the socket of a connection; it stays open if its client stalls: \
                 {error}"
            ),
        }
    }

    /// Returns the peer of a request's connection; `None` in tests without one.
    fn of(request: &HttpRequest) -> Option<&Self> {
        request.conn_data()
    }

    /// Returns a function that closes the connection at once, from any thread. It does not keep the
    /// socket open.
    pub(crate) fn disconnect_of(request: &HttpRequest) -> Disconnect {
        Self::of(request).map_or_else(|| -> Disconnect { Arc::new(|| ()) }, Self::disconnect)
    }

    /// Same as [`Self::disconnect_of`].
    pub(crate) fn disconnect(&self) -> Disconnect {
        let socket = Arc::downgrade(&self.0);
        Arc::new(move || {
            if let Some(socket) = socket.upgrade() {
                // Fails only if the connection has ended by itself.
                let _ = socket.shutdown(Shutdown::Both);
            }
        })
    }

    /// Limits the send buffer of a stream.
    pub(crate) fn bound_send_buffer(request: &HttpRequest) {
        if let Some(Self(socket)) = Self::of(request) {
            let set =
                socket2::SockRef::from(&**socket).set_send_buffer_size(EVENT_SEND_BUFFER_BYTES);
            if let Err(error) = set {
                log::debug!("cannot set the send buffer of a connection: {error}");
            }
        }
    }

    /// Returns true if the client has disconnected. Also true if it has only shut down its sending
    /// side; false as long as a further request is unread.
    fn has_left(&self) -> bool {
        // The descriptor is shared with the framework's non-blocking one: this never waits.
        match self.0.peek(&mut [0]) {
            Ok(received) => received == 0,
            Err(error) => !matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted),
        }
    }
}

/// Send buffer of a connection. actix-web buffers more than a subscriber should be behind, and the
/// socket is the only place that shows whether those bytes have been sent.
#[derive(Debug, Clone)]
pub(crate) struct SendBuffer(Option<Weak<TcpStream>>);

impl SendBuffer {
    /// Returns the buffer of a request's connection; in tests without one, it never fills.
    pub(crate) fn of(request: &HttpRequest) -> Self {
        Self(Peer::of(request).map(|peer| Arc::downgrade(&peer.0)))
    }

    /// Returns a buffer that never fills.
    #[cfg(test)]
    pub(crate) fn unlimited() -> Self {
        Self(None)
    }

    /// Resolves when actix-web has written what it was given before, and the kernel has room for
    /// more.
    pub(crate) async fn writable(&self) {
        // Runs after the connection's task, which writes what it has before it yields.
        let _ = actix_web::rt::spawn(std::future::ready(())).await;
        let Some(socket) = self.0.as_ref().and_then(Weak::upgrade) else { return };
        if is_writable(&socket) {
            return;
        }
        if let Err(error) = becomes_writable(&socket).await {
            log::debug!("cannot wait for a connection to become writable: {error}");
        }
    }
}

async fn becomes_writable(socket: &TcpStream) -> io::Result<()> {
    let watched = actix_web::rt::net::TcpStream::from_std(socket.try_clone()?)?;
    let check = || if is_writable(socket) { Ok(()) } else { Err(ErrorKind::WouldBlock.into()) };
    watched.async_io(Interest::WRITABLE, check).await
}

/// Returns true if a write would not block, which includes a closed connection.
fn is_writable(socket: &TcpStream) -> bool {
    let mut socket = [PollFd::new(socket, PollFlags::OUT)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut socket, Some(&now)).is_ok_and(|ready| ready > 0)
}

/// Check for a disconnected client. Does not keep its socket open.
#[derive(Debug, Clone)]
pub(crate) struct Watch(Option<Weak<TcpStream>>);

impl Watch {
    /// Watches the client of a request; in tests without a connection, it never disconnects.
    pub(crate) fn of(request: &HttpRequest) -> Self {
        Self(Peer::of(request).map(|peer| Arc::downgrade(&peer.0)))
    }

    /// Returns a watch that never reports a disconnect.
    #[cfg(test)]
    pub(crate) fn never() -> Self {
        Self(None)
    }

    /// Returns true if the client has disconnected.
    pub(crate) fn has_left(&self) -> bool {
        match &self.0 {
            Some(socket) => socket.upgrade().is_none_or(|socket| Peer(socket).has_left()),
            None => false,
        }
    }

    /// Resolves when the client has disconnected.
    pub(crate) async fn gone(&self) {
        while !self.has_left() {
            tokio::time::sleep(WATCH_INTERVAL).await;
        }
    }
}

/// Waits for an answer until the client disconnects, which actix-web would not notice. The work
/// itself continues. A quick answer costs no check of the socket.
pub(crate) async fn stop_waiting_on_disconnect<T>(
    request: &HttpRequest,
    answer: impl Future<Output = Result<T, ApiError>>,
) -> Result<T, ApiError> {
    let mut answer = std::pin::pin!(answer);
    tokio::select! {
        biased;
        answered = &mut answer => return answered,
        () = tokio::time::sleep(WATCH_INTERVAL) => {}
    }
    cancel_on_disconnect(request, answer).await
}

/// Drops the work when the client disconnects, which actix-web would not notice.
pub(crate) async fn cancel_on_disconnect<T>(
    request: &HttpRequest,
    work: impl Future<Output = Result<T, ApiError>>,
) -> Result<T, ApiError> {
    let client = Watch::of(request);
    tokio::select! {
        biased;
        done = work => done,
        // This answer is never received.
        () = client.gone() => Err(ApiError::InvalidRequest("the client disconnected".to_owned())),
    }
}
