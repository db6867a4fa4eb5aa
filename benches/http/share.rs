//! The slots of servers that share a database.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use support::client::Wire;

use crate::Outcome;

/// Number of slots of a database.
pub(crate) const SLOTS: usize = 4096;

/// Time in which servers must have divided the slots: at once if they are started together, else a few
/// at a time.
const SHARE_TIMEOUT: Duration = Duration::from_secs(120);
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Waits until each of the servers knows all others and has as many slots as they.
pub(crate) fn wait_until_shared(servers: &[SocketAddr]) -> Outcome<()> {
    let (deadline, count) = (Instant::now() + SHARE_TIMEOUT, servers.len());
    let parts = [SLOTS / count, SLOTS.div_ceil(count)];
    let expected = parts.map(|part| format!("\nslots: {part} of {SLOTS}\nservers: {count}\n"));
    for server in servers {
        loop {
            let mut wire = Wire::open(*server)?;
            wire.send("GET", "/readyz", &[], None)?;
            let text = wire.reply()?.text();
            if expected.iter().any(|part| text.contains(part)) {
                break;
            }
            if Instant::now() > deadline {
                return Err(format!("the slots are not divided: {text}").into());
            }
            std::thread::sleep(POLL_INTERVAL);
        }
    }
    Ok(())
}
