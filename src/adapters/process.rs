//! Programs that the server runs: the group that ends with them, and what they say.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::io;
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::Child;
use tokio::signal::unix::{SignalKind, signal};

/// How long an output may stay open behind a program's end, where somebody inherited it.
pub(super) const OUTPUT_GRACE: Duration = Duration::from_millis(200);
/// What is read at once.
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

    /// What comes next. A closed pipe waits for ever, so that others get their turn.
    pub(super) async fn read(&mut self) -> &[u8] {
        let Some(reader) = &mut self.reader else { return std::future::pending().await };
        let count = reader.read(&mut self.buffer).await.unwrap_or(0);
        if count == 0 {
            self.reader = None;
        }
        &self.buffer[..count]
    }
}

/// The end of what was said.
#[derive(Debug)]
pub(super) struct Tail {
    said: VecDeque<u8>,
    bytes_max: usize,
}

impl Tail {
    pub(super) fn of(bytes_max: usize) -> Self {
        Self { said: VecDeque::new(), bytes_max }
    }

    pub(super) fn push(&mut self, said: &[u8]) {
        self.said.extend(said);
        let surplus = self.said.len().saturating_sub(self.bytes_max);
        self.said.drain(..surplus);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.said.is_empty()
    }

    /// As it was said, where it is text.
    pub(super) fn text(&self) -> String {
        let bytes: Vec<u8> = self.said.iter().copied().collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

impl std::fmt::Display for Tail {
    /// On one line, with nothing in it that a terminal would obey.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for char in self.text().trim_end().chars() {
            match char {
                '"' | '\'' => f.write_char(char)?,
                _ => write!(f, "{}", char.escape_debug())?,
            }
        }
        Ok(())
    }
}

/// A program and everything that it started, as far as that has not made a group of its own. Ended
/// when it goes out of scope before the program has ended.
pub(super) struct Group(Option<Pid>);

impl Group {
    /// Of a child that was started as the first of its group. It gets the limit of open files that
    /// this process was started with.
    pub(super) fn of(child: &Child) -> Self {
        let group = Self(child.id().and_then(|id| Pid::from_raw(id.try_into().ok()?)));
        group.restore_descriptors();
        group
    }

    pub(super) fn kill(&mut self) {
        if let Some(group) = self.0.take()
            && let Err(error) = kill_process_group(group, Signal::KILL)
        {
            log::warn!("a program was not ended: {error}");
        }
    }

    /// Waits for the end of the program, which keeps its number until it is waited for: nobody else
    /// can have the number of its group, and what it left behind can be ended.
    pub(super) async fn ended(&self) -> io::Result<()> {
        let Some(pid) = self.0 else { return std::future::pending().await };
        // heard from before the look, so that an end in between is not missed
        let mut children = signal(SignalKind::child())?;
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        while waitid(WaitId::Pid(pid), look)?.is_none() {
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
            log::warn!("a program keeps the raised limit of open files: {error}");
        }
    }

    /// Bounds the memory of each process of the program. It runs already, so that it may have started
    /// others: those are bounded one by one, each before it is asked what it has started itself.
    pub(super) fn limit_memory(&self, bytes_max: u64) {
        #[cfg(target_os = "linux")]
        {
            use rustix::process::{Resource, Rlimit, prlimit};
            let mut processes: Vec<Pid> = self.0.into_iter().collect();
            while let Some(pid) = processes.pop() {
                let limit = Rlimit { current: Some(bytes_max), maximum: Some(bytes_max) };
                // of one that has ended already there is nothing to bound
                if let Err(error) = prlimit(Some(pid), Resource::Data, limit)
                    && error != rustix::io::Errno::SRCH
                {
                    log::warn!("the memory of a program is not bounded: {error}");
                }
                processes.extend(children_of(pid));
            }
        }
        #[cfg(not(target_os = "linux"))]
        let _ = bytes_max;
    }

    /// The program was waited for: its number may be somebody else's.
    pub(super) fn release(mut self) {
        self.0 = None;
    }
}

/// What the threads of a process have started and not yet waited for (proc_pid_task(5)).
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
    async fn what_a_program_has_started_already_is_bounded_too() {
        let mut command = tokio::process::Command::new("sh");
        command.args(["-c", "sh -c 'sleep 60; :' & wait"]).process_group(0);
        let child = command.spawn().unwrap();
        let group = Group::of(&child);
        let program = group.0.unwrap();
        // the program, the shell within it, and what that waits for
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
    fn the_end_of_what_was_said_is_shown_harmlessly() {
        let rows: [(&[&[u8]], &str); 5] = [
            (&[b"one\n", b"two\n"], "one\\ntwo"),
            (&[b"it's \"fine\""], "it's \"fine\""),
            (&[b"\x1b[2J\rgone\x07"], "\\u{1b}[2J\\rgone\\u{7}"),
            (&[b"\xff", "\u{202e}abc".as_bytes()], "\u{fffd}\\u{202e}abc"),
            (&[b"  \n"], ""),
        ];
        for (said, shown) in rows {
            let mut tail = Tail::of(2048);
            said.iter().for_each(|part| tail.push(part));
            assert_eq!(tail.to_string(), shown);
        }
        let mut tail = Tail::of(2048);
        (0..1000).for_each(|number| tail.push(format!("{number};").as_bytes()));
        let shown = tail.to_string();
        assert_eq!(shown.len(), 2048);
        assert!(shown.ends_with(";998;999;"), "{shown}");
    }
}
