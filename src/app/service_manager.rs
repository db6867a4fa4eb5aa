//! Messages to a service manager that asks for them in `NOTIFY_SOCKET`, as systemd does with
//! `Type=notify`. Without that variable nothing is sent.
//!
//! Programs of steps and tools do not get the variable: they start with an environment of their own.

use std::ffi::OsStr;
use std::io;
use std::net::SocketAddr;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{self, UnixDatagram};
use std::time::Duration;

use greenroom_actors::Runtime;
use greenroom_actors::runtime::Readiness;
use rustix::time::{ClockId, clock_gettime};
use tokio::time::{Instant, sleep};

/// Names the socket of the service manager: a path, or `@` and a name without a file.
const SOCKET: &str = "NOTIFY_SOCKET";
/// Microseconds without a sign of life after which the service manager restarts the server.
const WATCHDOG: &str = "WATCHDOG_USEC";
/// The process whose signs of life are meant; any one if it is not set.
const WATCHDOG_PROCESS: &str = "WATCHDOG_PID";

/// Interval between looks at the server before it is ready.
const STARTING_EVERY: Duration = Duration::from_millis(50);
/// Longest interval between looks at the server afterwards.
const RUNNING_EVERY: Duration = Duration::from_secs(1);

/// Reports that the store is opened, which takes long if tables of an older version are converted.
pub(super) fn starting() {
    tell("STATUS=opening the store\n");
}

/// Reports that a reload has begun, with the time that `Type=notify-reload` asks for.
pub(super) fn reloading() {
    let now = clock_gettime(ClockId::Monotonic);
    let microseconds = now.tv_sec * 1_000_000 + now.tv_nsec / 1_000;
    tell(&format!("RELOADING=1\nMONOTONIC_USEC={microseconds}\n"));
}

/// Reports that a reload has ended, whether the configuration was applied or rejected.
pub(super) fn reloaded() {
    tell("READY=1\n");
}

/// Reports that the server stops.
pub(super) fn stopping() {
    tell("STOPPING=1\nSTATUS=stopping: running steps may end\n");
}

/// Reports that the server is ready once `/readyz` says so, its status when that changes, and its
/// signs of life if the service manager waits for them. Never returns.
pub(super) async fn follow(runtime: &Runtime, address: SocketAddr) {
    let pause = watchdog().map(|limit| limit / 2);
    let every = pause.map_or(RUNNING_EVERY, |pause| RUNNING_EVERY.min(pause / 2));
    let (mut is_started, mut reported, mut alive) = (false, None, None::<Instant>);
    loop {
        let readiness = readiness(runtime);
        if reported != Some(readiness) {
            let is_first = !is_started && readiness == Readiness::Ready;
            is_started |= is_first;
            let ready = if is_first { "READY=1\n" } else { "" };
            tell(&format!("{ready}STATUS={}\n", status(readiness, address)));
            reported = Some(readiness);
        }
        let is_due = pause.is_some_and(|pause| alive.is_none_or(|at| at.elapsed() >= pause));
        if is_due && lives(runtime) {
            tell("WATCHDOG=1\n");
            alive = Some(Instant::now());
        }
        sleep(if is_started { every } else { STARTING_EVERY }).await;
    }
}

/// Returns the readiness that `/readyz` reports.
fn readiness(runtime: &Runtime) -> Readiness {
    match runtime.cluster_stats() {
        Some(cluster) if cluster.is_leaving => Readiness::Draining,
        Some(_) | None => runtime.readiness(),
    }
}

/// Returns true if the supervisors of all threads of executions have worked lately. This runs on
/// the main thread, which thereby shows that it does as well.
fn lives(runtime: &Runtime) -> bool {
    runtime.stalled_threads().is_empty()
}

fn status(readiness: Readiness, address: SocketAddr) -> String {
    match readiness {
        Readiness::Ready => format!("ready at http://{address}"),
        Readiness::StoreRefusesWrites => "not ready: the store accepts no writes".to_owned(),
        Readiness::Draining => "leaving: accepts no new work".to_owned(),
    }
}

/// Returns the time without a sign of life that the service manager tolerates, if it watches this
/// process.
fn watchdog() -> Option<Duration> {
    let number = |name| std::env::var(name).ok().map(|value| value.parse::<u64>());
    let is_meant = match number(WATCHDOG_PROCESS) {
        Some(process) => process == Ok(std::process::id().into()),
        None => true,
    };
    let limit = number(WATCHDOG)?.ok().filter(|microseconds| is_meant && *microseconds > 0)?;
    Some(Duration::from_micros(limit))
}

/// Sends a message, if there is a service manager. It is lost if the service manager does not read.
fn tell(message: &str) {
    let Some(name) = std::env::var_os(SOCKET) else { return };
    if let Err(error) = send(&name, message) {
        log::warn!("cannot tell the service manager {:?}: {error}", message.trim_end());
    }
}

fn send(name: &OsStr, message: &str) -> io::Result<()> {
    let socket = UnixDatagram::unbound()?;
    socket.set_nonblocking(true)?;
    socket.send_to_addr(message.as_bytes(), &address_of(name)?).map(drop)
}

fn address_of(name: &OsStr) -> io::Result<net::SocketAddr> {
    match name.as_bytes().strip_prefix(b"@") {
        Some(name) => without_file(name),
        None => net::SocketAddr::from_pathname(name),
    }
}

#[cfg(target_os = "linux")]
fn without_file(name: &[u8]) -> io::Result<net::SocketAddr> {
    use std::os::linux::net::SocketAddrExt as _;
    net::SocketAddr::from_abstract_name(name)
}

#[cfg(not(target_os = "linux"))]
fn without_file(_: &[u8]) -> io::Result<net::SocketAddr> {
    Err(io::ErrorKind::Unsupported.into())
}
