//! The limit of files and connections that the process may have open.

use std::io;
use std::os::unix::net::UnixDatagram;
use std::sync::OnceLock;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The soft limit that the process was started with; programs that it starts get it back.
static INITIAL: OnceLock<Option<u64>> = OnceLock::new();

/// Raises the soft limit to the hard one. Returns the limit in effect, `None` for no limit.
pub(crate) fn raise() -> Option<u64> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    INITIAL.get_or_init(|| current);
    if current == maximum {
        return current;
    }
    match setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }) {
        Ok(()) => maximum,
        Err(error) => {
            log::warn!("cannot raise the limit of open files above {}: {error}", shown(current));
            current
        }
    }
}

/// The limit of open files is too low.
#[derive(Debug, thiserror::Error)]
#[error("only {opened} of {needed} files and sockets can be opened: {reason}")]
pub(crate) struct TooFewFiles {
    opened: usize,
    needed: usize,
    reason: io::Error,
}

/// Checks that so many more files can be open at once, by opening sockets. They are closed when
/// this returns.
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

/// Formats a limit for people.
pub(crate) fn shown(limit: Option<u64>) -> String {
    limit.map_or_else(|| "unlimited".to_owned(), |limit| limit.to_string())
}

/// Restores the soft limit in a started program: a raised one breaks programs that use `select`.
#[cfg(target_os = "linux")]
pub(super) fn restore_in(program: rustix::process::Pid) -> rustix::io::Result<()> {
    use rustix::process::prlimit;

    let Some(&initial) = INITIAL.get() else { return Ok(()) };
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current == initial {
        return Ok(());
    }
    prlimit(Some(program), Resource::Nofile, Rlimit { current: initial, maximum }).map(drop)
}
