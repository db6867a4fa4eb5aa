//! The program's own check of an answer: how many run at once, for how long, and what becomes of one
//! that panics or blocks.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use tokio::time::{Instant, timeout};

use crate::observe::blocked::timed;
use crate::ports::answer_guard::{AnswerGuard, GivenAnswer};
use crate::replay::ReplayError;
use crate::requests::{AskError, ResumeError, Unavailable};
use crate::shared::Shared;

/// Time after which a check counts as a refusal.
pub(crate) const CHECK_TIMEOUT: Duration = Duration::from_secs(10);

/// Reason why an answer did not pass.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum NotPassed {
    /// For the one who gave it.
    Refused(String),
    /// Too many are checked.
    Unavailable(Unavailable),
}

impl Shared {
    /// Returns true if the program checks answers itself.
    pub(crate) fn checks_answers(&self) -> bool {
        self.answer_guard.is_some()
    }

    /// Asks the program whether an answer passes. A check that panics or takes too long refuses.
    pub(crate) async fn check_answer(&self, given: GivenAnswer) -> Result<(), NotPassed> {
        let Some(guard) = self.answer_guard.clone() else { return Ok(()) };
        let Ok(_permit) = self.answer_checks.try_acquire() else {
            log::warn!(
                "an answer was refused as busy: {} are being checked, the limit \
                 limits.answer_checks_max",
                self.limits.answer_checks_max
            );
            return Err(NotPassed::Unavailable(Unavailable::Busy { execution: None }));
        };
        self.decided(guard, given).await.map_err(NotPassed::Refused)
    }

    async fn decided(&self, guard: Arc<dyn AnswerGuard>, given: GivenAnswer) -> Result<(), String> {
        // the call itself may panic or block before it returns a future
        let checking = AssertUnwindSafe(async move { guard.check(given).await }).catch_unwind();
        let checking = timed(checking.boxed(), |held| self.warn_of_blocking(held));
        match timeout(CHECK_TIMEOUT, checking).await {
            Ok(Ok(decided)) => decided,
            Ok(Err(_)) => {
                log::error!("the check of an answer panicked: the answer is refused");
                Err("it could not be checked; the log of the server has the reason".to_owned())
            }
            Err(_) => {
                let limit = CHECK_TIMEOUT.as_secs();
                log::error!(
                    "the check of an answer took longer than {limit} s: the answer is refused"
                );
                Err(format!("it could not be checked within {limit} s; try again"))
            }
        }
    }

    fn warn_of_blocking(&self, held: Duration) {
        if self.warned.is_due("on_answer", Instant::now()) {
            let held_ms = held.as_millis();
            log::warn!(
                "the check of an answer (on_answer) blocked its thread for {held_ms} ms, and every \
                 execution on it; move the work to tokio::task::spawn_blocking"
            );
        }
    }
}

impl From<NotPassed> for ResumeError {
    fn from(why: NotPassed) -> Self {
        match why {
            NotPassed::Refused(reason) => Self::Refused(reason),
            NotPassed::Unavailable(why) => why.into(),
        }
    }
}

impl From<NotPassed> for AskError {
    fn from(why: NotPassed) -> Self {
        match why {
            NotPassed::Refused(reason) => Self::Refused(reason),
            NotPassed::Unavailable(why) => why.into(),
        }
    }
}

impl From<NotPassed> for ReplayError {
    fn from(why: NotPassed) -> Self {
        match why {
            NotPassed::Refused(reason) => Self::Refused(reason),
            NotPassed::Unavailable(why) => why.into(),
        }
    }
}
