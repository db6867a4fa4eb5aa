//! Detection of changed configuration files, and the outcome of the newest reload. Independent of
//! the content of the files.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};

use greenroom_actors::domain::time::Timestamp;
use greenroom_actors::ports::clock::{Clock as _, SystemClock};

/// Files that are read, and checked for changes.
pub(crate) trait Readings {
    /// State of the files, to compare.
    type Files: PartialEq;
    /// Result of reading.
    type Made;

    /// Reads the files.
    fn read(&self) -> (Self::Made, Self::Files);

    /// Returns the current state of the same files.
    fn look(&self, files: &Self::Files) -> Self::Files;
}

/// Detects completed changes: editors write in pieces, and some via temporary files.
pub(crate) struct Watcher<R: Readings> {
    readings: R,
    /// State of the files that were last returned.
    current: R::Files,
    /// Read since; returned once the files are unchanged at the next tick.
    fresh: Option<(R::Made, R::Files)>,
}

impl<R: Readings> Watcher<R> {
    /// Creates a watcher for files that have been read in the state `read`.
    pub(crate) fn new(readings: R, read: R::Files) -> Self {
        Self { readings, current: read, fresh: None }
    }

    /// Checks the files. Returns a change that was read at the previous tick if the files are still
    /// the same.
    pub(crate) fn tick(&mut self) -> Option<R::Made> {
        if let Some((made, files)) = self.fresh.take()
            && self.readings.look(&files) == files
        {
            self.current = files;
            return Some(made);
        }
        if self.readings.look(&self.current) != self.current {
            self.fresh = Some(self.readings.read());
        }
        None
    }

    /// Reads the files at once, changed or not.
    pub(crate) fn now(&mut self) -> R::Made {
        let (made, files) = self.readings.read();
        (self.current, self.fresh) = (files, None);
        made
    }
}

/// Outcomes of reloads of the configuration.
#[derive(Debug)]
pub struct ReloadStatus {
    /// Time since which the configuration is in use.
    since: AtomicI64,
    taken: AtomicU64,
    refused: AtomicU64,
    /// True if the newest change was rejected. The reason is in the log alone.
    is_refused: AtomicBool,
}

/// The configuration of the start is in use from now on.
impl Default for ReloadStatus {
    fn default() -> Self {
        Self {
            since: AtomicI64::new(SystemClock.now().0),
            taken: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            is_refused: AtomicBool::new(false),
        }
    }
}

impl ReloadStatus {
    /// Records that a change was applied.
    pub(crate) fn take(&self) {
        self.since.store(SystemClock.now().0, Ordering::Relaxed);
        self.taken.fetch_add(1, Ordering::Relaxed);
        self.is_refused.store(false, Ordering::Relaxed);
    }

    /// Records that a change was rejected.
    pub(crate) fn refuse(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
        self.is_refused.store(true, Ordering::Relaxed);
    }

    /// Returns true if the newest change was rejected.
    pub fn is_refused(&self) -> bool {
        self.is_refused.load(Ordering::Relaxed)
    }

    /// Returns the time since which the configuration is in use: of the newest change that was applied,
    /// or of the start.
    pub fn since(&self) -> Timestamp {
        Timestamp(self.since.load(Ordering::Relaxed))
    }

    /// Returns the numbers of applied and of rejected changes.
    pub fn counts(&self) -> (u64, u64) {
        (self.taken.load(Ordering::Relaxed), self.refused.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::rc::Rc;

    use super::*;

    /// A file that contains a number, which reading returns.
    #[derive(Clone, Default)]
    struct File {
        now: Rc<Cell<u32>>,
        reads: Rc<Cell<u32>>,
    }

    impl Readings for File {
        type Files = u32;
        type Made = u32;

        fn read(&self) -> (u32, u32) {
            self.reads.set(self.reads.get() + 1);
            (self.now.get(), self.now.get())
        }

        fn look(&self, _: &u32) -> u32 {
            self.now.get()
        }
    }

    #[test]
    fn a_change_is_returned_once_when_it_is_complete() {
        let file = File::default();
        let mut watcher = Watcher::new(file.clone(), 0);
        // content of the file at each tick, and the result of the tick
        let looks = [
            (0, None),
            (1, None),
            (1, Some(1)),
            (1, None),
            // the file is being written
            (2, None),
            (3, None),
            (4, None),
            (4, Some(4)),
            // changed and reverted
            (5, None),
            (4, None),
            (4, None),
            // back to an earlier content
            (1, None),
            (1, Some(1)),
            (1, None),
        ];
        for (index, (now, given)) in looks.into_iter().enumerate() {
            file.now.set(now);
            assert_eq!(watcher.tick(), given, "tick {index}");
        }
        assert_eq!(file.reads.get(), 6, "an unchanged file is not read again");
    }

    #[test]
    fn now_returns_the_content_without_a_second_tick() {
        let file = File::default();
        let mut watcher = Watcher::new(file.clone(), 0);
        file.now.set(1);
        assert_eq!((watcher.now(), watcher.tick()), (1, None));
        file.now.set(2);
        assert_eq!(watcher.tick(), None);
        assert_eq!((watcher.now(), watcher.tick(), watcher.tick()), (2, None, None));
    }

    #[test]
    fn an_applied_change_clears_the_refusal() {
        let reload_status = ReloadStatus::default();
        assert!(!reload_status.is_refused());
        reload_status.refuse();
        reload_status.refuse();
        assert!(reload_status.is_refused());
        reload_status.take();
        assert_eq!((reload_status.is_refused(), reload_status.counts()), (false, (1, 2)));
    }
}
