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
    let late = control.clone();
    tokio::select! {
        biased;
        stop = told_to_stop(control) => match stop {
            Stop::Cancelled => GenerateError::Cancelled,
            Stop::Interrupted => Unavailable::Draining { execution: None }.into(),
        },
        error = out_of_time(late, time) => error.into(),
    }
}

async fn told_to_stop(mut control: watch::Receiver<Control>) -> Stop {
    loop {
        if let Ok(control) = control.wait_for(|control| control.stop.is_some()).await
            && let Some(stop) = control.stop
        {
            return stop;
        }
        std::future::pending::<()>().await;
    }
}

/// The time in which the run is held does not count.
async fn out_of_time(mut control: watch::Receiver<Control>, time: Option<Duration>) -> ModelError {
    let Some(time) = time else { return std::future::pending().await };
    let mut left = time;
    loop {
        released(&mut control).await;
        let since = Instant::now();
        tokio::select! {
            () = sleep(left) => {
                let message = format!("the run took longer than {time:?}");
                return ModelError::new(ModelErrorKind::Timeout, message);
            }
            _ = control.wait_for(|control| control.is_held) => {
                left = left.saturating_sub(since.elapsed());
            }
        }
    }
}
