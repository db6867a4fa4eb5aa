//! Pause and stop of a run.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use crate::ports::model::{ModelError, ModelErrorKind};
use crate::requests::Unavailable;

use super::GenerateError;

/// Latest commands to the actor.
#[derive(Debug, Default)]
pub(super) struct Control {
    pub(super) is_paused: bool,
    /// True once the user is erased: nothing more is recorded of the user or of the conversation.
    pub(super) forgets_user: bool,
    pub(super) stop: Option<Stop>,
}

/// Reason for stopping a run early.
#[derive(Debug, Clone, Copy)]
pub(super) enum Stop {
    Cancelled,
    /// The process is shutting down, or another one continues the run.
    Interrupted,
}

impl Control {
    /// Returns true once the run stops to be continued later.
    pub(super) fn is_interrupted(&self) -> bool {
        matches!(self.stop, Some(Stop::Interrupted))
    }
}

/// Waits while the run is paused.
pub(super) async fn unpaused(control: &mut watch::Receiver<Control>) {
    // on an error the actor is gone, and this run with it
    let _ = control.wait_for(|control| !control.is_paused).await;
}

/// Time that a run has worked, in all processes, without pauses.
#[derive(Debug, Clone)]
pub(super) struct WorkedTime {
    /// Until the last pause.
    before: watch::Sender<Duration>,
    /// Begin of the current work; `None` during a pause.
    since: Rc<Cell<Option<Instant>>>,
}

impl Default for WorkedTime {
    fn default() -> Self {
        Self { before: watch::Sender::new(Duration::ZERO), since: Rc::default() }
    }
}

impl WorkedTime {
    /// Adds the time that the run has worked earlier.
    pub(super) fn add(&self, earlier: Duration) {
        self.before.send_modify(|before| *before = before.saturating_add(earlier));
    }

    pub(super) fn ms(&self) -> u64 {
        u64::try_from(self.total().as_millis()).unwrap_or(u64::MAX)
    }

    fn total(&self) -> Duration {
        let now = self.since.get().map(|since| since.elapsed()).unwrap_or_default();
        self.before.borrow().saturating_add(now)
    }

    fn begin(&self) {
        self.since.set(Some(Instant::now()));
    }

    fn pause(&self) {
        let worked = self.since.take().map(|since| since.elapsed()).unwrap_or_default();
        self.add(worked);
    }
}

/// Resolves with the caller's error when the run has to stop: a caller wants that, or it has worked
/// longer than `time`.
pub(super) async fn stopped(
    control: watch::Receiver<Control>,
    time: Option<Duration>,
    worked: WorkedTime,
) -> GenerateError {
    let paused = control.clone();
    tokio::select! {
        biased;
        error = stop_requested(control) => error,
        error = out_of_time(paused, time, worked) => error.into(),
    }
}

async fn stop_requested(mut control: watch::Receiver<Control>) -> GenerateError {
    loop {
        let stop = control.wait_for(|control| control.stop.is_some()).await;
        match stop.map(|control| control.stop) {
            Ok(Some(Stop::Cancelled)) => return GenerateError::Cancelled,
            Ok(Some(Stop::Interrupted)) => {
                return Unavailable::Draining { execution: None }.into();
            }
            Ok(None) => {}
            // the actor is gone, and this run with it
            Err(_) => std::future::pending().await,
        }
    }
}

/// Resolves once the run has worked for `time`; never without that. Measures the time that it works.
async fn out_of_time(
    mut control: watch::Receiver<Control>,
    time: Option<Duration>,
    worked: WorkedTime,
) -> ModelError {
    let mut earlier = worked.before.subscribe();
    loop {
        unpaused(&mut control).await;
        worked.begin();
        loop {
            let left = time.map(|time| time.saturating_sub(worked.total()));
            tokio::select! {
                () = after(left) => {
                    let time = time.unwrap_or_default();
                    let message = format!("the run took longer than {time:?}");
                    return ModelError::new(ModelErrorKind::Timeout, message);
                }
                Ok(_) = control.wait_for(|control| control.is_paused) => break,
                // a run that is taken up has worked before
                Ok(()) = earlier.changed() => {}
            }
        }
        worked.pause();
    }
}

/// Resolves after this time; never without one.
async fn after(time: Option<Duration>) {
    match time {
        Some(time) => sleep(time).await,
        None => std::future::pending().await,
    }
}
