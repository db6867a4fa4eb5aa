//! Carries frames over a connection until it ends.

use std::convert::Infallible;
use std::io;
use std::sync::atomic::{AtomicU32, Ordering};

use bytes::BytesMut;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::Notify;
use tokio::time::MissedTickBehavior;

use crate::frame::{self, Frame, Violation};
use crate::settings::LinkTimes;

/// Size of what is written at once, and read at once.
const CHUNK_BYTES: usize = 64 * 1024;

/// A connection, encrypted or not.
pub(crate) trait Socket: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Socket for T {}

/// A side of a connection: what its frames mean.
pub(crate) trait Side: Send + Sync {
    /// Takes in a frame. Infallible waits: a reader that is slow holds up nothing else.
    fn receive(&self, frame: Frame) -> Result<(), Violation>;

    /// Writes the next frame; returns false if nothing waits.
    fn take(&self, to: &mut Vec<u8>) -> bool;

    fn push_ping(&self);

    /// Notified when something waits to be sent.
    fn filled(&self) -> &Notify;
}

/// Reason for the end of a connection.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Ending {
    #[error("the other server ended the connection")]
    Closed,
    #[error("{0}")]
    Failed(io::Error),
    #[error("the other server breaks the protocol: {0}")]
    Violated(#[from] Violation),
    #[error("the other server is silent")]
    Silent,
}

impl From<io::Error> for Ending {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::UnexpectedEof {
            Self::Closed
        } else {
            Self::Failed(error)
        }
    }
}

/// Carries frames in both directions; returns why that ended.
pub(crate) async fn carry(socket: Box<dyn Socket>, side: &impl Side, times: &LinkTimes) -> Ending {
    let (reader, writer) = tokio::io::split(socket);
    // ticks since something was received
    let silence = AtomicU32::new(0);
    let ended = tokio::select! {
        ended = read(reader, side, &silence) => ended,
        ended = write(writer, side) => ended,
        ended = pulse(side, &silence, times) => ended,
    };
    match ended {
        Ok(never) => match never {},
        Err(ending) => ending,
    }
}

async fn read(
    mut reader: impl AsyncRead + Unpin,
    side: &impl Side,
    silence: &AtomicU32,
) -> Result<Infallible, Ending> {
    let mut received = BytesMut::new();
    loop {
        while let Some(frame) = frame::take(&mut received)? {
            side.receive(frame)?;
        }
        received.reserve(CHUNK_BYTES);
        if reader.read_buf(&mut received).await? == 0 {
            return Err(Ending::Closed);
        }
        silence.store(0, Ordering::Relaxed);
    }
}

async fn write(
    mut writer: impl AsyncWrite + Unpin,
    side: &impl Side,
) -> Result<Infallible, Ending> {
    let mut chunk = Vec::with_capacity(2 * CHUNK_BYTES);
    loop {
        while chunk.len() < CHUNK_BYTES && side.take(&mut chunk) {}
        if chunk.is_empty() {
            side.filled().notified().await;
            continue;
        }
        writer.write_all(&chunk).await?;
        writer.flush().await?;
        chunk.clear();
    }
}

/// Pings, and ends when the other side is silent. Ticks that were missed are not made up for: a
/// process that stood still looks at what has arrived before it gives up.
async fn pulse(
    side: &impl Side,
    silence: &AtomicU32,
    times: &LinkTimes,
) -> Result<Infallible, Ending> {
    let mut ticks = tokio::time::interval(times.ping);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        if silence.fetch_add(1, Ordering::Relaxed) >= times.silent_pings {
            return Err(Ending::Silent);
        }
        side.push_ping();
    }
}
