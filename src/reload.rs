//! Changes of the configuration's files: when one stands still, and what became of the newest.
//!
//! Knows neither what is in the files nor what is made of it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock};

/// Files that are read and looked at again.
pub(crate) trait Readings {
    /// What they were like.
    type Files: PartialEq;
    /// What was made of them.
    type Made;

    /// Reads them.
    fn read(&self) -> (Self::Made, Self::Files);

    /// Looks at the same files again.
    fn look(&self, files: &Self::Files) -> Self::Files;
}

/// Sees changes that stand still: editors write in pieces, and some by way of other files.
pub(crate) struct Watcher<R: Readings> {
    readings: R,
    /// As they were when they were last acted upon.
    acted: R::Files,
    /// Read since, and not yet seen to stand still.
    fresh: Option<(R::Made, R::Files)>,
}

impl<R: Readings> Watcher<R> {
    /// Watches from a reading on.
    pub(crate) fn new(readings: R, read: R::Files) -> Self {
        Self { readings, acted: read, fresh: None }
    }

    /// One look. Gives what was made of a change when the files are as they were when it was
    /// read, which was at the look before.
    pub(crate) fn tick(&mut self) -> Option<R::Made> {
        if let Some((made, files)) = self.fresh.take()
            && self.readings.look(&files) == files
        {
            self.acted = files;
            return Some(made);
        }
        if self.readings.look(&self.acted) != self.acted {
            self.fresh = Some(self.readings.read());
        }
        None
    }

    /// Reads at once, whether or not something has changed.
    pub(crate) fn now(&mut self) -> R::Made {
        let (made, files) = self.readings.read();
        (self.acted, self.fresh) = (files, None);
        made
    }
}

/// How it stands with changes of the configuration.
#[derive(Debug, Default)]
pub struct Standing {
    taken: AtomicU64,
    refused: AtomicU64,
    /// Why the newest change was refused, for everybody to read.
    refusal: RwLock<Option<String>>,
}

impl Standing {
    /// Notes that a change was taken.
    pub(crate) fn take(&self) {
        self.taken.fetch_add(1, Ordering::Relaxed);
        *self.refusal.write().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Notes that a change was refused. The reason has neither secrets nor paths of this machine.
    pub(crate) fn refuse(&self, reason: String) {
        self.refused.fetch_add(1, Ordering::Relaxed);
        *self.refusal.write().unwrap_or_else(PoisonError::into_inner) = Some(reason);
    }

    /// Why the newest change was refused; none when it was taken, or when there was none.
    pub fn refusal(&self) -> Option<String> {
        self.refusal.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Changes that were taken, and those that were refused.
    pub fn counts(&self) -> (u64, u64) {
        (self.taken.load(Ordering::Relaxed), self.refused.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::rc::Rc;

    use super::*;

    /// A file that is a number; each reading gives it.
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
    fn a_change_is_given_once_when_it_stands_still() {
        let file = File::default();
        let mut watcher = Watcher::new(file.clone(), 0);
        // what is in the file at each look, and what the look gives
        let looks = [
            (0, None),
            (1, None),
            (1, Some(1)),
            (1, None),
            // in the middle of being written
            (2, None),
            (3, None),
            (4, None),
            (4, Some(4)),
            // there and back again
            (5, None),
            (4, None),
            (4, None),
            // back to what was before
            (1, None),
            (1, Some(1)),
            (1, None),
        ];
        for (index, (now, given)) in looks.into_iter().enumerate() {
            file.now.set(now);
            assert_eq!(watcher.tick(), given, "look {index}");
        }
        assert_eq!(file.reads.get(), 6, "a file that stands still is read once");
    }

    #[test]
    fn asked_at_once_it_does_not_wait_for_a_second_look() {
        let file = File::default();
        let mut watcher = Watcher::new(file.clone(), 0);
        file.now.set(1);
        assert_eq!((watcher.now(), watcher.tick()), (1, None));
        file.now.set(2);
        assert_eq!(watcher.tick(), None);
        assert_eq!((watcher.now(), watcher.tick(), watcher.tick()), (2, None, None));
    }

    #[test]
    fn a_change_that_is_taken_takes_the_refusal_away() {
        let standing = Standing::default();
        standing.refuse("line 1".to_owned());
        standing.refuse("line 2".to_owned());
        assert_eq!(standing.refusal().as_deref(), Some("line 2"));
        standing.take();
        assert_eq!((standing.refusal(), standing.counts()), (None, (1, 2)));
    }
}
