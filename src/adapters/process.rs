//! Programs that the server runs: their process group, and their output.

use std::collections::VecDeque;
use std::io;
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::Child;
use tokio::signal::unix::{SignalKind, signal};

/// Time that an output may stay open after the end of its program, if another process inherited it.
pub(super) const OUTPUT_GRACE: Duration = Duration::from_millis(200);
/// Size of one read.
const PORTION_BYTES: usize = 8192;

/// One of a program's outputs.
pub(super) struct Pipe<R> {
    reader: Option<R>,
    buffer: Vec<u8>,
}

impl<R: AsyncRead + Unpin> Pipe<R> {
    pub(super) fn of(reader: Option<R>) -> Self {
        Self { reader, buffer: vec![0; PORTION_BYTES] }
    }

    pub(super) fn is_open(&self) -> bool {
        self.reader.is_some()
    }

    /// Reads the next bytes. Never resolves once the pipe is closed, so that a `select!` waits for
    /// its other branches.
    pub(super) async fn read(&mut self) -> &[u8] {
        let Some(reader) = &mut self.reader else { return std::future::pending().await };
        let count = reader.read(&mut self.buffer).await.unwrap_or(0);
        if count == 0 {
            self.reader = None;
        }
        &self.buffer[..count]
    }
}

/// The last bytes of an output.
#[derive(Debug)]
pub(super) struct Tail {
    bytes: VecDeque<u8>,
    bytes_max: usize,
}

impl Tail {
    pub(super) fn of(bytes_max: usize) -> Self {
        Self { bytes: VecDeque::new(), bytes_max }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend(bytes);
        let surplus = self.bytes.len().saturating_sub(self.bytes_max);
        self.bytes.drain(..surplus);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Returns true if earlier bytes may have been dropped.
    #[cfg(feature = "mcp")]
    pub(super) fn is_full(&self) -> bool {
        self.bytes.len() >= self.bytes_max
    }

    /// Returns the bytes as text; invalid UTF-8 is replaced.
    pub(super) fn text(&self) -> String {
        let bytes: Vec<u8> = self.bytes.iter().copied().collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

impl std::fmt::Display for Tail {
    /// Writes the text on one line, with control characters escaped.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&on_one_line(&self.text()))
    }
}

/// Returns a text on one line, with control characters escaped.
pub(super) fn on_one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for char in text.trim_end().chars() {
        match char {
            '"' | '\'' => line.push(char),
            _ => line.extend(char.escape_debug()),
        }
    }
    line
}

/// The process group of a program: the program and everything that it started, unless that has
/// changed its group. Killed on drop, unless the program has been waited for.
pub(super) struct Group(Option<Pid>);

impl Group {
    /// Takes the group of a child that was started as its leader. The child gets the limit of open
    /// files that this process was started with.
    pub(super) fn of(child: &Child) -> Self {
        let group = Self(child.id().and_then(|id| Pid::from_raw(id.try_into().ok()?)));
        group.restore_descriptors();
        group
    }

    pub(super) fn kill(&mut self) {
        if let Some(group) = self.0.take()
            && let Err(error) = kill_process_group(group, Signal::KILL)
        {
            log::warn!(
                "a program and its children may still run: they could not be killed: {error}"
            );
        }
    }

    /// Waits for the end of the program without reaping it. Until it is reaped, no other process
    /// can get its id, so that the rest of its group can still be killed.
    pub(super) async fn ended(&self) -> io::Result<()> {
        let Some(pid) = self.0 else { return std::future::pending().await };
        // registered before the check, so that an end in between is not missed
        let mut children = signal(SignalKind::child())?;
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        while waitid(WaitId::Pid(pid), options)?.is_none() {
            if children.recv().await.is_none() {
                return std::future::pending().await;
            }
        }
        Ok(())
    }

    fn restore_descriptors(&self) {
        #[cfg(target_os = "linux")]
        if let Some(pid) = self.0
            && let Err(error) = super::descriptors::restore_in(pid)
            && error != rustix::io::Errno::SRCH
        {
            log::warn!("cannot restore the limit of open files of a program: {error}");
        }
    }

    /// Limits the memory of each process of the program. It runs already, so it may have started
    /// others: these are limited one by one, each before its own children are listed.
    pub(super) fn limit_memory(&self, bytes_max: u64) {
        #[cfg(target_os = "linux")]
        {
            use rustix::process::{Resource, Rlimit, prlimit};
            let mut processes: Vec<Pid> = self.0.into_iter().collect();
            while let Some(pid) = processes.pop() {
                let limit = Rlimit { current: Some(bytes_max), maximum: Some(bytes_max) };
                // the process may have ended already
                if let Err(error) = prlimit(Some(pid), Resource::Data, limit)
                    && error != rustix::io::Errno::SRCH
                {
                    log::warn!("cannot limit the memory of a program: {error}");
                }
                processes.extend(children_of(pid));
            }
        }
        #[cfg(not(target_os = "linux"))]
        let _ = bytes_max;
    }

    /// Gives up the group after the program was reaped: its id may belong to another process.
    pub(super) fn release(mut self) {
        self.0 = None;
    }
}

/// Lists the children of all threads of a process that were not reaped yet (proc_pid_task(5)).
#[cfg(target_os = "linux")]
fn children_of(pid: Pid) -> Vec<Pid> {
    let threads = std::fs::read_dir(format!("/proc/{}/task", pid.as_raw_nonzero()));
    let threads = threads.into_iter().flatten().filter_map(Result::ok);
    let children =
        threads.filter_map(|it| std::fs::read_to_string(it.path().join("children")).ok());
    let ids = |children: String| -> Vec<Pid> {
        let ids = children.split_whitespace().filter_map(|id| id.parse().ok());
        ids.filter_map(Pid::from_raw).collect()
    };
    children.flat_map(ids).collect()
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn processes_that_a_program_has_started_already_are_limited_too() {
        let mut command = tokio::process::Command::new("sh");
        command.args(["-c", "sh -c 'sleep 60; :' & wait"]).process_group(0);
        let child = command.spawn().unwrap();
        let group = Group::of(&child);
        let program = group.0.unwrap();
        // the program, its shell, and the child of that shell
        let family = loop {
            let inner = children_of(program);
            let innermost: Vec<Pid> = inner.iter().copied().flat_map(children_of).collect();
            if let ([inner], [innermost]) = (&*inner, &*innermost) {
                break [program, *inner, *innermost];
            }
        };
        group.limit_memory(1 << 28);
        for pid in family {
            let limits =
                std::fs::read_to_string(format!("/proc/{}/limits", pid.as_raw_nonzero())).unwrap();
            let data = limits.lines().find(|line| line.starts_with("Max data size")).unwrap();
            assert!(data.contains("268435456"), "{data}");
        }
    }

    #[test]
    fn the_last_output_is_shown_with_control_characters_escaped() {
        let rows: [(&[&[u8]], &str); 5] = [
            (&[b"one\n", b"two\n"], "one\\ntwo"),
            (&[b"it's \"fine\""], "it's \"fine\""),
            (&[b"\x1b[2J\rgone\x07"], "\\u{1b}[2J\\rgone\\u{7}"),
            (&[b"\xff", "\u{202e}abc".as_bytes()], "\u{fffd}\\u{202e}abc"),
            (&[b"  \n"], ""),
        ];
        for (parts, shown) in rows {
            let mut tail = Tail::of(2048);
            parts.iter().for_each(|part| tail.push(part));
            assert_eq!(tail.to_string(), shown);
        }
        let mut tail = Tail::of(2048);
        (0..1000).for_each(|number| tail.push(format!("{number};").as_bytes()));
        let shown = tail.to_string();
        assert_eq!(shown.len(), 2048);
        assert!(shown.ends_with(";998;999;"), "{shown}");
    }
}
