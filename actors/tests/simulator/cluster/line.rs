//! Everything that a process exchanges with the disk and with other processes passes its line, which
//! stands still while the process is silent. Its own timers continue.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use crate::simulator::store::{ATTEMPT_EVERY, Faults, wait};

pub(crate) struct Line {
    faults: Arc<Faults>,
    /// Time since when the process is silent.
    silent: watch::Sender<Option<Instant>>,
    is_dead: AtomicBool,
    /// Time of silence after which the process notices that it cannot write.
    noticed_after: Duration,
    ends: Mutex<Option<Instant>>,
}

impl Line {
    pub(crate) fn new(faults: &Arc<Faults>, noticed_after: Duration) -> Self {
        Self {
            faults: Arc::clone(faults),
            silent: watch::Sender::new(None),
            is_dead: AtomicBool::new(false),
            noticed_after,
            ends: Mutex::default(),
        }
    }

    /// Lets the process be silent until a time, or speak.
    pub(crate) fn silence(&self, until: Option<Instant>) {
        *self.ends.lock().unwrap() = until;
        self.silent.send_replace(until.map(|_| Instant::now()));
    }

    /// Returns the time at which its silence ends, if it is silent.
    pub(crate) fn silent_until(&self) -> Option<Instant> {
        *self.ends.lock().unwrap()
    }

    /// Lets nothing pass from now on.
    pub(crate) fn end(&self) {
        self.is_dead.store(true, Ordering::SeqCst);
        self.silent.send_replace(None);
    }

    pub(crate) fn is_dead(&self) -> bool {
        self.is_dead.load(Ordering::SeqCst)
    }

    fn is_silent(&self) -> bool {
        self.silent.borrow().is_some()
    }

    /// Returns true if the process can reach the disk.
    pub(crate) fn is_open(&self) -> bool {
        !self.is_silent() && !self.faults.is_down.load(Ordering::SeqCst)
    }

    /// Returns true once the process notices that the disk does not answer.
    pub(crate) fn is_missed(&self) -> bool {
        self.silent.borrow().is_some_and(|since| since.elapsed() >= self.noticed_after)
    }

    /// Waits until the process speaks; for ever once it has ended.
    pub(crate) async fn spoken(&self) {
        let mut silent = self.silent.subscribe();
        let _ = silent.wait_for(Option::is_none).await;
        if self.is_dead() {
            std::future::pending().await
        }
    }

    /// Waits until the process can reach the disk.
    pub(crate) async fn opened(&self) {
        self.spoken().await;
        while !self.is_open() {
            wait(ATTEMPT_EVERY).await;
            self.spoken().await;
        }
    }
}
