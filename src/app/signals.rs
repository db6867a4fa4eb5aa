//! Signals of the operating system.

use std::io;

use rustix::process::Signal as Number;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Signals that stop the server.
pub(super) struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    pub(super) fn listen() -> io::Result<Self> {
        let terminate = signal(SignalKind::terminate())?;
        let interrupt = signal(SignalKind::interrupt())?;
        Ok(Self { terminate, interrupt })
    }

    pub(super) async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }
}

/// Makes a write beyond the file size limit (`ulimit -f`) fail as on a full disk, instead of ending
/// the process by SIGXFSZ. Child processes have the default again. Call from within a runtime,
/// before files are written.
pub(super) fn outlive_file_size_limit() -> io::Result<()> {
    // the handler stays after the stream is dropped
    signal(SignalKind::from_raw(Number::XFSZ.as_raw())).map(drop)
}
