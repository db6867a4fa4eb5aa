//! Queue of console lines, and the thread that writes them to standard error.
//!
//! Standard error may be a pipe that is not read. A write to it then never returns, so no thread
//! that serves requests may write to it. A line that does not fit into the queue is dropped and
//! counted; once there is room again, a line reports the number.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

/// Maximum time that the end of the process waits for queued lines.
const DRAIN_MAX: Duration = Duration::from_secs(1);
/// Pause before a retry if another program made the shared standard error non-blocking.
const RETRY_PAUSE: Duration = Duration::from_millis(10);
/// Capacity of the batch that the thread reuses.
const BATCH_CAPACITY: usize = 64 * 1024;

/// Limits of the queue of the console.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScreenLimits {
    pub lines: usize,
    /// A single line may be longer.
    pub bytes: usize,
}

impl Default for ScreenLimits {
    fn default() -> Self {
        Self { lines: 8192, bytes: 4 << 20 }
    }
}

/// The console of the process, created on first use.
static SCREEN: OnceLock<Screen> = OnceLock::new();

thread_local! {
    /// True on the writing thread, whose own lines are never dropped.
    static IS_WRITER: Cell<bool> = const { Cell::new(false) };
}

/// Returns the console of the process. Each write is one line.
pub fn screen() -> Screen {
    SCREEN.get_or_init(Screen::of_process).clone()
}

/// Returns the number of lines dropped since the process started.
pub fn lines_dropped() -> u64 {
    SCREEN.get().map_or(0, Screen::dropped)
}

/// Waits until all lines are written, for one second at most. Call at the end of a process.
pub fn drain_screen() {
    if let Some(screen) = SCREEN.get() {
        screen.drain();
    }
}

/// A console whose writers never wait. Clones share the queue.
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
    /// Number of lines queued or being written.
    lines: usize,
    /// Size of the same lines.
    bytes: usize,
    /// True while the writer waits for lines.
    is_idle: bool,
    /// True if the thread could not be started; callers then write their lines themselves.
    is_without_writer: bool,
    /// Number of dropped lines that have been reported.
    reported: u64,
}

impl Screen {
    fn of_process() -> Self {
        match io::stderr().as_fd().try_clone_to_owned() {
            // std's handle would hold its lock for the duration of a write
            Ok(descriptor) => Self::over(File::from(descriptor)),
            // standard error is closed
            Err(_) => Self::over(io::sink()),
        }
    }

    fn over(sink: impl Write + Send + 'static) -> Self {
        let shared = Arc::new(Shared::default());
        let writing = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("greenroom-console".to_owned());
        if thread.spawn(move || writing.write_loop(sink)).is_err() {
            shared.state().is_without_writer = true;
        }
        Self(shared)
    }

    /// Sets the limits of the queue.
    pub(super) fn limit(&self, limits: ScreenLimits) {
        self.0.state().limits = limits;
    }

    fn dropped(&self) -> u64 {
        self.0.dropped.load(Ordering::Relaxed)
    }

    /// Waits until all lines are written, for one second at most.
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
            // there is no place left to report a failure
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

    fn write_loop(&self, mut sink: impl Write) {
        IS_WRITER.set(true);
        let mut batch = Vec::new();
        loop {
            let lines = self.take(&mut batch);
            let is_written = write_whole(&mut sink, &batch).is_ok();
            let dropped = self.written(lines, batch.len(), is_written);
            if dropped > 0 {
                log::warn!(
                    "{dropped} log lines were dropped: standard error was not read fast enough"
                );
            }
            batch.clear();
            batch.shrink_to(BATCH_CAPACITY);
        }
    }

    /// Waits for lines, moves all of them into `batch` and returns their number.
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

    /// Removes written lines from the queue. Returns the number of dropped lines to report.
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
        dropped - std::mem::replace(&mut state.reported, dropped)
    }
}

/// Writes all bytes, however long it takes.
fn write_whole(sink: &mut impl Write, mut rest: &[u8]) -> io::Result<()> {
    while !rest.is_empty() {
        match sink.write(rest) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(bytes) => rest = &rest[bytes..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                std::thread::sleep(RETRY_PAUSE);
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

    /// A console that performs each write on permission and reports what it has written.
    struct Gated {
        permits: Receiver<io::Result<usize>>,
        written: Sender<String>,
    }

    impl Write for Gated {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let count = self.permits.recv().unwrap()?.min(bytes.len());
            self.written.send(String::from_utf8(bytes[..count].to_vec()).unwrap()).unwrap();
            Ok(count)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    struct Stage {
        screen: Screen,
        permits: Sender<io::Result<usize>>,
        written: Receiver<String>,
    }

    /// Returns a screen whose writer has taken the line `first` and waits for a permit.
    fn stage(lines: usize, bytes: usize) -> Stage {
        let (permits, permitted) = channel();
        let (reports, written) = channel();
        let screen = Screen::over(Gated { permits: permitted, written: reports });
        screen.limit(ScreenLimits { lines, bytes });
        push(&screen, "first\n");
        while !screen.0.state().waiting.is_empty() {
            std::thread::yield_now();
        }
        Stage { screen, permits, written }
    }

    fn push(screen: &Screen, line: &str) {
        assert_eq!(screen.clone().write(line.as_bytes()).unwrap(), line.len());
    }

    #[test]
    fn lines_beyond_the_limits_are_dropped_and_counted() {
        let rows = [("lines", 3, 1000, 2), ("bytes", 1000, 18, 2), ("one line", 1, 1, 0)];
        for (name, lines, bytes, waiting) in rows {
            let Stage { screen, permits, written } = stage(lines, bytes);
            (0..9).for_each(|_| push(&screen, "other\n"));
            assert_eq!(screen.dropped(), 9 - waiting, "{name}");
            for _ in 0..=waiting.min(1) {
                permits.send(Ok(usize::MAX)).unwrap();
            }
            assert_eq!(written.recv().unwrap(), "first\n", "{name}");
            if waiting > 0 {
                assert_eq!(written.recv().unwrap(), "other\n".repeat(waiting as usize), "{name}");
            }
            screen.drain();
            assert_eq!(screen.0.state().bytes, 0, "{name}");
            push(&screen, "a line that is longer than the limit\n");
            permits.send(Ok(usize::MAX)).unwrap();
            assert!(written.recv().unwrap().starts_with("a line"), "{name}");
        }
    }

    #[test]
    fn dropped_lines_are_reported_once_and_failed_writes_count_as_dropped() {
        let Stage { screen, permits, .. } = stage(1, 1000);
        push(&screen, "no room\n");
        permits.send(Err(io::ErrorKind::BrokenPipe.into())).unwrap();
        screen.drain();
        assert_eq!(screen.dropped(), 2);
        let shared = &screen.0;
        shared.state().lines = 1;
        assert_eq!(shared.written(1, 0, true), 2);
        shared.state().lines = 1;
        assert_eq!(shared.written(1, 0, true), 0);
    }

    #[test]
    fn partial_and_interrupted_writes_are_continued() {
        let Stage { screen, permits, written } = stage(10, 1000);
        permits.send(Ok(2)).unwrap();
        permits.send(Err(io::ErrorKind::Interrupted.into())).unwrap();
        permits.send(Err(io::ErrorKind::WouldBlock.into())).unwrap();
        permits.send(Ok(usize::MAX)).unwrap();
        screen.drain();
        assert_eq!(written.try_iter().collect::<String>(), "first\n");
        assert_eq!(screen.dropped(), 0);
    }
}
