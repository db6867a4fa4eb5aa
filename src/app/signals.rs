//! Signals of the operating system.

use std::future::pending;
use std::io;

use rustix::process::Signal as Number;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Signals that stop the server.
pub(super) struct Signals {
    terminate: Signal,
    interrupt: Signal,
    /// Listened to where no file is read again on it.
    hangup: Option<Signal>,
}

impl Signals {
    /// Listens to SIGTERM and SIGINT, and to SIGHUP if it does not mean a reload: a server without a
    /// file ends like the terminal that it was started from, but drained.
    pub(super) fn listen(reloads: bool) -> io::Result<Self> {
        let terminate = signal(SignalKind::terminate())?;
        let interrupt = signal(SignalKind::interrupt())?;
        let hangup = if reloads { None } else { Some(signal(SignalKind::hangup())?) };
        Ok(Self { terminate, interrupt, hangup })
    }

    pub(super) async fn next(&mut self) -> &'static str {
        let hangup = async {
            match &mut self.hangup {
                Some(hangup) => hangup.recv().await,
                None => pending().await,
            }
        };
        tokio::select! {
            _ = hangup => "SIGHUP",
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }
}

/// Ignores SIGHUP until it is listened to: one that asks for a reload would end a server that opens
/// its store. Call from within a runtime.
pub(super) fn outlive_early_hangups() -> io::Result<()> {
    // the handler stays after the stream is dropped
    signal(SignalKind::hangup()).map(drop)
}

/// Makes a write beyond the file size limit (`ulimit -f`) fail as on a full disk, instead of ending
/// the process by SIGXFSZ. Child processes have the default again. Call from within a runtime,
/// before files are written.
pub(super) fn outlive_file_size_limit() -> io::Result<()> {
    // the handler stays after the stream is dropped
    signal(SignalKind::from_raw(Number::XFSZ.as_raw())).map(drop)
}
