//! The listener of a server that stops: it refuses connections while those that are open are served.

use std::io;
use std::net::{Shutdown as Close, TcpListener};
use std::time::Duration;

use actix_web::dev::ServerHandle;
use actix_web::rt::time::sleep;
#[cfg(target_os = "linux")]
use rustix::event::{PollFd, PollFlags, Timespec, poll};
#[cfg(target_os = "linux")]
use socket2::SockFilter;
use socket2::SockRef;

/// Time for connections that are being made, and for their requests to arrive.
#[cfg(target_os = "linux")]
const HANDSHAKES: Duration = Duration::from_millis(300);
/// Looks, after that time, whether a connection waits to be accepted, with the pause before each. All of
/// it takes less than a second, after which a client tries again and must be refused.
#[cfg(target_os = "linux")]
const LOOKS: u32 = 50;
#[cfg(target_os = "linux")]
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// Time until the thread that accepts connections has paused.
const PAUSE: Duration = Duration::from_millis(1);

/// A program for the filter of a socket: packets that ask for a connection are dropped.
#[cfg(target_os = "linux")]
const NO_SYN: [SockFilter; 4] = {
    const LOAD_BYTE: u16 = 0x30;
    const JUMP_IF_SET: u16 = 0x45;
    const RETURN: u16 = 0x06;
    const TCP_FLAGS: u32 = 13;
    const SYN: u32 = 0x02;
    [
        SockFilter::new(LOAD_BYTE, 0, 0, TCP_FLAGS),
        SockFilter::new(JUMP_IF_SET, 0, 1, SYN),
        SockFilter::new(RETURN, 0, 0, 0),
        SockFilter::new(RETURN, 0, 0, u32::MAX),
    ]
};

/// The listener of a server that is about to run.
#[derive(Debug)]
pub(crate) struct StoppableListener(TcpListener);

impl StoppableListener {
    pub(crate) fn of(listener: &TcpListener) -> io::Result<Self> {
        listener.try_clone().map(Self)
    }

    /// Refuses further connections; those that are there are served. One that the system had made and
    /// the server had not accepted would be reset with the listener, after its client has sent a
    /// request. So on Linux the system first makes no more, which clients take for a lost packet: they
    /// try again a second later, and are refused.
    pub(crate) async fn close(self, server: &ServerHandle) {
        let listener = SockRef::from(&self.0);
        #[cfg(target_os = "linux")]
        match listener.attach_filter(&NO_SYN) {
            Ok(()) => self.empty().await,
            Err(error) => log::debug!("connections that are being made will break: {error}"),
        }
        server.pause().await;
        // without a pause it would log that its socket has ended
        sleep(PAUSE).await;
        if let Err(error) = listener.shutdown(Close::Both) {
            log::debug!("connections are accepted until the end: {error}");
            #[cfg(target_os = "linux")]
            if let Err(error) = listener.detach_filter() {
                log::debug!("no further connections are made: {error}");
            }
            server.resume().await;
        }
    }

    /// Waits until no connection waits to be accepted.
    #[cfg(target_os = "linux")]
    async fn empty(&self) {
        sleep(HANDSHAKES).await;
        for _ in 0..LOOKS {
            let mut waiting = [PollFd::new(&self.0, PollFlags::IN)];
            let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
            if !matches!(poll(&mut waiting, Some(&at_once)), Ok(1..)) {
                return;
            }
            sleep(LOOK_EVERY).await;
        }
    }
}
