//! What others want of a run while it works.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use crate::ports::model::{ModelError, ModelErrorKind};
use crate::requests::Unavailable;

use super::GenerateError;

/// As the actor was told last.
#[derive(Debug, Default)]
pub(super) struct Control {
    pub(super) is_held: bool,
    pub(super) stop: Option<Stop>,
}

/// Why a run stops before its end.
#[derive(Debug, Clone, Copy)]
pub(super) enum Stop {
    Cancelled,
    /// The process is about to end.
    Interrupted,
}

/// Waits while the run is held.
pub(super) async fn released(control: &mut watch::Receiver<Control>) {
    // an error says that the actor has gone, and the run goes with it
    let _ = control.wait_for(|control| !control.is_held).await;
}

/// Resolves when the run has to stop, with what its caller is told.
pub(super) async fn stopped(
    control: watch::Receiver<Control>,
    time: Option<Duration>,
) -> GenerateError {
    let Some(time) = time else { return told_to_stop(control).await };
    let held = control.clone();
    tokio::select! {
        biased;
        error = told_to_stop(control) => error,
        error = out_of_time(held, time) => error.into(),
    }
}

async fn told_to_stop(mut control: watch::Receiver<Control>) -> GenerateError {
    loop {
        let stop = control.wait_for(|control| control.stop.is_some()).await;
        match stop.map(|control| control.stop) {
            Ok(Some(Stop::Cancelled)) => return GenerateError::Cancelled,
            Ok(Some(Stop::Interrupted)) => {
                return Unavailable::Draining { execution: None }.into();
            }
            Ok(None) => {}
            // the actor has gone, and the run goes with it
            Err(_) => std::future::pending().await,
        }
    }
}

/// The time in which the run is held does not count.
async fn out_of_time(mut control: watch::Receiver<Control>, time: Duration) -> ModelError {
    let mut left = time;
    loop {
        released(&mut control).await;
        let since = Instant::now();
        tokio::select! {
            () = sleep(left) => {
                let message = format!("the run took longer than {time:?}");
                return ModelError::new(ModelErrorKind::Timeout, message);
            }
            Ok(_) = control.wait_for(|control| control.is_held) => {
                left = left.saturating_sub(since.elapsed());
            }
        }
    }
}
