//! Cost of many clients that stream the changes of asks.

use std::fmt;
use std::time::{Duration, Instant};

use support::client::{Events, Wire};
use support::server::Server;

use crate::process::Process;
use crate::{Outcome, token};

/// Time without changes in which CPU is measured: each second has one read of the open asks.
const IDLE: Duration = Duration::from_secs(5);

/// Figures of so many streams at once.
#[derive(Debug)]
pub(crate) struct Streams {
    subscribers: usize,
    /// Resident bytes of the server before the streams, with them, and after an event on each.
    memory: [u64; 3],
    /// CPU of the server in [`IDLE`].
    idle_cpu: Duration,
    /// Streams on which the ask came.
    reached: usize,
    /// Time from the request that opened the ask until the last stream had it.
    last: Duration,
}

impl Streams {
    /// Opens the streams, then an ask, and reads it on every stream.
    pub(crate) fn measure(server: &Server, subscribers: usize) -> Outcome<Self> {
        let authorization = format!("Bearer {}", token::signed());
        let headers = [("authorization", &*authorization)];
        let process = Process { id: server.child.id() };
        let before = memory(process)?;
        let open = |_| -> Outcome<Events> {
            let mut wire = Wire::open(server.address)?;
            wire.send("GET", "/inbox/stream", &headers, None)?;
            Ok(Events::read(wire)?)
        };
        let mut streams = (0..subscribers).map(open).collect::<Outcome<Vec<_>>>()?;
        let with_all = memory(process)?;
        let spent = process.spent()?;
        std::thread::sleep(IDLE);
        let idle_cpu = (process.spent()? - spent).cpu;

        let begun = Instant::now();
        let with_type = [headers[0], ("content-type", "application/json")];
        let body = b"{\"input\":{},\"options\":{\"executionId\":\"streamed\"}}";
        let executed = server.send("POST", "/workflows/approval/execute", &with_type, Some(body));
        if !executed.text().contains("\"suspended\"") {
            return Err(format!("no ask: {}", executed.text()).into());
        }
        let mut reached = 0;
        for stream in &mut streams {
            reached += usize::from(comes(stream)?);
        }
        let last = begun.elapsed();
        Ok(Self {
            subscribers,
            memory: [before, with_all, memory(process)?],
            idle_cpu,
            reached,
            last,
        })
    }

    pub(crate) fn failure(&self) -> Option<String> {
        let Self { subscribers, reached, .. } = self;
        (reached < subscribers)
            .then(|| format!("the ask came on {reached} of {subscribers} streams"))
    }
}

/// Reads until the ask comes; returns false at an end of the stream before.
fn comes(stream: &mut Events) -> Outcome<bool> {
    while let Some(event) = stream.next()? {
        if event.data.contains("\"streamed\"") {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns the resident memory in bytes.
fn memory(process: Process) -> Outcome<u64> {
    let status = std::fs::read_to_string(format!("/proc/{}/status", process.id))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.ok_or("no memory")?.trim().trim_end_matches(" kB");
    Ok(kilobytes.parse::<u64>()? * 1024)
}

impl fmt::Display for Streams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { subscribers, memory, idle_cpu, reached, last } = self;
        let [before, with_all, after] = memory.map(|bytes| bytes as f64 / 1e6);
        let each = (after - before) * 1e3 / (*subscribers).max(1) as f64;
        let idle = idle_cpu.as_secs_f64() * 1e3 / IDLE.as_secs_f64();
        let last = last.as_secs_f64();
        write!(
            f,
            "{subscribers} streams: {before:.1} MB before them, {with_all:.1} MB with them, {after:.1} MB \
             after an event on each ({each:.1} kB for each stream); {idle:.0} ms of CPU each second \
             without changes; {reached} had the new ask, the last {last:.2} s after its request"
        )
    }
}
