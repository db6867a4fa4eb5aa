//! Pause and stop of a run.

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
    pub(super) stop: Option<Stop>,
}

/// Reason for stopping a run early.
#[derive(Debug, Clone, Copy)]
pub(super) enum Stop {
    Cancelled,
    /// The process is shutting down.
    Interrupted,
}

/// Waits while the run is paused.
pub(super) async fn unpaused(control: &mut watch::Receiver<Control>) {
    // on an error the actor is gone, and this run with it
    let _ = control.wait_for(|control| !control.is_paused).await;
}

/// Resolves with the caller's error when the run has to stop.
pub(super) async fn stopped(
    control: watch::Receiver<Control>,
    time: Option<Duration>,
) -> GenerateError {
    let Some(time) = time else { return stop_requested(control).await };
    let paused = control.clone();
    tokio::select! {
        biased;
        error = stop_requested(control) => error,
        error = out_of_time(paused, time) => error.into(),
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

/// Resolves after `time`, not counting pauses.
async fn out_of_time(mut control: watch::Receiver<Control>, time: Duration) -> ModelError {
    let mut left = time;
    loop {
        unpaused(&mut control).await;
        let since = Instant::now();
        tokio::select! {
            () = sleep(left) => {
                let message = format!("the run took longer than {time:?}");
                return ModelError::new(ModelErrorKind::Timeout, message);
            }
            Ok(_) = control.wait_for(|control| control.is_paused) => {
                left = left.saturating_sub(since.elapsed());
            }
        }
    }
}
