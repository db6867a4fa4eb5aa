//! How many files and connections the process may have open.

use std::io;
use std::os::unix::net::UnixDatagram;
use std::sync::OnceLock;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The soft limit that the process was started with; programs that it starts get it back.
static FOUND: OnceLock<Option<u64>> = OnceLock::new();

/// Raises the soft limit to the hard one; gives what holds now, `None`: there is no limit.
pub(crate) fn raise() -> Option<u64> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    FOUND.get_or_init(|| current);
    if current == maximum {
        return current;
    }
    match setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }) {
        Ok(()) => maximum,
        Err(error) => {
            log::warn!("the limit of open files stays at {}: {error}", shown(current));
            current
        }
    }
}

/// Fewer open files than are needed.
#[derive(Debug, thiserror::Error)]
#[error("only {opened} of {needed} files and sockets can be opened: {reason}")]
pub(crate) struct TooFewFiles {
    opened: usize,
    needed: usize,
    reason: io::Error,
}

/// Finds out whether so many further files can be open at once, by opening sockets. They are closed
/// when this returns.
pub(crate) fn reserve(needed: usize) -> Result<(), TooFewFiles> {
    let mut opened = Vec::with_capacity(needed);
    while opened.len() < needed {
        match UnixDatagram::unbound() {
            Ok(socket) => opened.push(socket),
            Err(reason) => return Err(TooFewFiles { opened: opened.len(), needed, reason }),
        }
    }
    Ok(())
}

/// A limit as people read it.
pub(crate) fn shown(limit: Option<u64>) -> String {
    limit.map_or_else(|| "unlimited".to_owned(), |limit| limit.to_string())
}

/// The soft limit of a program that is started: more than the usual ones break those that select.
#[cfg(target_os = "linux")]
pub(super) fn restore_in(program: rustix::process::Pid) -> rustix::io::Result<()> {
    use rustix::process::prlimit;

    let Some(&found) = FOUND.get() else { return Ok(()) };
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current == found {
        return Ok(());
    }
    prlimit(Some(program), Resource::Nofile, Rlimit { current: found, maximum }).map(drop)
}
