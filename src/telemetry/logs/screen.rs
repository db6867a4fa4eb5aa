//! Where lines of the console go: into a bounded queue, and from there, on a thread of its own, to
//! standard error.
//!
//! Standard error may be a pipe that is not read. Then a write to it never returns, so that no
//! thread that serves anything may make one. A line that has no room in the queue is dropped and
//! counted, and as soon as there is room again a line says how many were.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

/// How long the end of the process waits for what is still to be written.
const DRAIN_MAX: Duration = Duration::from_secs(1);
/// Before another try where standard error was made non-blocking by a program that shares it.
const TRY_AGAIN: Duration = Duration::from_millis(10);
/// Memory that the thread keeps for its next batch.
const BATCH_KEPT: usize = 64 * 1024;

/// Bounds of what waits for the console.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScreenLimits {
    pub lines: usize,
    /// A single line may have more.
    pub bytes: usize,
}

impl Default for ScreenLimits {
    fn default() -> Self {
        Self { lines: 8192, bytes: 4 << 20 }
    }
}

/// The console of the process, made when it is first needed.
static SCREEN: OnceLock<Screen> = OnceLock::new();

thread_local! {
    /// Whether this thread writes to a screen: what it has to say itself always has room.
    static IS_WRITER: Cell<bool> = const { Cell::new(false) };
}

/// The console of the process. Each write is a line.
pub fn screen() -> Screen {
    SCREEN.get_or_init(Screen::of_process).clone()
}

/// Lines that the console had no room for since the process began.
pub fn lines_dropped() -> u64 {
    SCREEN.get().map_or(0, Screen::dropped)
}

/// Waits until the console has what was written to it, for a second at most. For the end of a
/// process.
pub fn drain_screen() {
    if let Some(screen) = SCREEN.get() {
        screen.drain();
    }
}

/// A console that is never waited for. Clones are the same one.
#[derive(Debug, Clone)]
pub struct Screen(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    filled: Condvar,
    emptied: Condvar,
    dropped: AtomicU64,
}

#[derive(Debug, Default)]
struct State {
    limits: ScreenLimits,
    waiting: Vec<u8>,
    /// Those that wait, and those that are being written.
    lines: usize,
    /// Of the same.
    bytes: usize,
    /// Whether the writer has nothing to do.
    is_idle: bool,
    /// No thread could be started: lines are written by whoever has them.
    is_without_writer: bool,
    /// Dropped lines that have been told.
    told: u64,
}

impl Screen {
    fn of_process() -> Self {
        match io::stderr().as_fd().try_clone_to_owned() {
            // not through std's handle: its lock would be held for as long as a write takes
            Ok(descriptor) => Self::over(File::from(descriptor)),
            // closed: there is no console
            Err(_) => Self::over(io::sink()),
        }
    }

    fn over(sink: impl Write + Send + 'static) -> Self {
        let shared = Arc::new(Shared::default());
        let writing = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("greenroom-console".to_owned());
        if thread.spawn(move || writing.write_for_ever(sink)).is_err() {
            shared.state().is_without_writer = true;
        }
        Self(shared)
    }

    /// Bounds what waits from now on.
    pub(super) fn limit(&self, limits: ScreenLimits) {
        self.0.state().limits = limits;
    }

    fn dropped(&self) -> u64 {
        self.0.dropped.load(Ordering::Relaxed)
    }

    /// Waits until everything is written, for a second at most.
    pub fn drain(&self) {
        let Shared { emptied, .. } = &*self.0;
        let waited = emptied.wait_timeout_while(self.0.state(), DRAIN_MAX, |state| state.lines > 0);
        drop(waited);
    }
}

impl Write for Screen {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.0.push(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl State {
    fn has_room(&self, bytes: usize) -> bool {
        let ScreenLimits { lines: lines_max, bytes: bytes_max } = self.limits;
        self.lines == 0 || (self.lines < lines_max && self.bytes + bytes <= bytes_max)
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, line: &[u8]) {
        let mut state = self.state();
        if state.is_without_writer {
            drop(state);
            // nobody can be told of a console that refuses
            let _ = io::stderr().write_all(line);
            return;
        }
        if !state.has_room(line.len()) && !IS_WRITER.get() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
            return;
        }
        state.waiting.extend_from_slice(line);
        state.lines += 1;
        state.bytes += line.len();
        if std::mem::take(&mut state.is_idle) {
            self.filled.notify_one();
        }
    }

    fn write_for_ever(&self, mut sink: impl Write) {
        IS_WRITER.set(true);
        let mut batch = Vec::new();
        loop {
            let lines = self.take(&mut batch);
            let is_written = write_whole(&mut sink, &batch).is_ok();
            let untold = self.written(lines, batch.len(), is_written);
            if untold > 0 {
                log::warn!("{untold} log lines were dropped: the console was not read");
            }
            batch.clear();
            batch.shrink_to(BATCH_KEPT);
        }
    }

    /// Waits for lines, and takes all that wait.
    fn take(&self, batch: &mut Vec<u8>) -> usize {
        let mut state = self.state();
        while state.waiting.is_empty() {
            state.is_idle = true;
            state = self.filled.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.is_idle = false;
        std::mem::swap(&mut state.waiting, batch);
        state.lines
    }

    /// Makes room for others. Gives the number of dropped lines that the console is to be told of.
    fn written(&self, lines: usize, bytes: usize, is_written: bool) -> u64 {
        let mut state = self.state();
        state.lines -= lines;
        state.bytes -= bytes;
        if state.lines == 0 {
            self.emptied.notify_all();
        }
        if !is_written {
            self.dropped.fetch_add(lines as u64, Ordering::Relaxed);
            return 0;
        }
        let dropped = self.dropped.load(Ordering::Relaxed);
        dropped - std::mem::replace(&mut state.told, dropped)
    }
}

/// Writes all of it, however long it takes.
fn write_whole(sink: &mut impl Write, mut rest: &[u8]) -> io::Result<()> {
    while !rest.is_empty() {
        match sink.write(rest) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(bytes) => rest = &rest[bytes..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                std::thread::sleep(TRY_AGAIN);
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};

    use super::*;

    /// A console that writes when it is told to, and says what it has written.
    struct Gated {
        go_on: Receiver<io::Result<usize>>,
        written: Sender<String>,
    }

    impl Write for Gated {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let count = self.go_on.recv().unwrap()?.min(bytes.len());
            self.written.send(String::from_utf8(bytes[..count].to_vec()).unwrap()).unwrap();
            Ok(count)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    struct Stage {
        screen: Screen,
        go_on: Sender<io::Result<usize>>,
        written: Receiver<String>,
    }

    /// A screen whose writer has taken the line `first` and waits at the gate with it.
    fn stage(lines: usize, bytes: usize) -> Stage {
        let (go_on, gate) = channel();
        let (told, written) = channel();
        let screen = Screen::over(Gated { go_on: gate, written: told });
        screen.limit(ScreenLimits { lines, bytes });
        push(&screen, "first\n");
        while !screen.0.state().waiting.is_empty() {
            std::thread::yield_now();
        }
        Stage { screen, go_on, written }
    }

    fn push(screen: &Screen, line: &str) {
        assert_eq!(screen.clone().write(line.as_bytes()).unwrap(), line.len());
    }

    #[test]
    fn what_has_no_room_is_dropped_and_counted() {
        let rows = [("lines", 3, 1000, 2), ("bytes", 1000, 18, 2), ("one line", 1, 1, 0)];
        for (name, lines, bytes, waiting) in rows {
            let Stage { screen, go_on, written } = stage(lines, bytes);
            (0..9).for_each(|_| push(&screen, "other\n"));
            assert_eq!(screen.dropped(), 9 - waiting, "{name}");
            for _ in 0..=waiting.min(1) {
                go_on.send(Ok(usize::MAX)).unwrap();
            }
            assert_eq!(written.recv().unwrap(), "first\n", "{name}");
            if waiting > 0 {
                assert_eq!(written.recv().unwrap(), "other\n".repeat(waiting as usize), "{name}");
            }
            screen.drain();
            assert_eq!(screen.0.state().bytes, 0, "{name}");
            push(&screen, "a line that is longer than all that may wait\n");
            go_on.send(Ok(usize::MAX)).unwrap();
            assert!(written.recv().unwrap().starts_with("a line"), "{name}");
        }
    }

    #[test]
    fn dropped_lines_are_told_once_and_those_that_the_console_refuses_count() {
        let Stage { screen, go_on, .. } = stage(1, 1000);
        push(&screen, "no room\n");
        go_on.send(Err(io::ErrorKind::BrokenPipe.into())).unwrap();
        screen.drain();
        assert_eq!(screen.dropped(), 2);
        let shared = &screen.0;
        shared.state().lines = 1;
        assert_eq!(shared.written(1, 0, true), 2);
        shared.state().lines = 1;
        assert_eq!(shared.written(1, 0, true), 0);
    }

    #[test]
    fn a_console_that_takes_a_little_at_a_time_gets_all_of_it() {
        let Stage { screen, go_on, written } = stage(10, 1000);
        go_on.send(Ok(2)).unwrap();
        go_on.send(Err(io::ErrorKind::Interrupted.into())).unwrap();
        go_on.send(Err(io::ErrorKind::WouldBlock.into())).unwrap();
        go_on.send(Ok(usize::MAX)).unwrap();
        screen.drain();
        assert_eq!(written.try_iter().collect::<String>(), "first\n");
        assert_eq!(screen.dropped(), 0);
    }
}
