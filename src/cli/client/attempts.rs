//! Connecting again after a stream has ended early.

use std::time::Duration;

use super::exit::{Exit, Failure};
use super::screen::note;

/// Attempts to connect again, for about half a minute: a server that restarts is back by then.
const ATTEMPTS_MAX: u32 = 14;

/// Pause before the first of them; each later one is twice as long, up to 32 times.
const PAUSE: Duration = Duration::from_millis(100);

/// Time after which a stream counts as progress though it had nothing new: less than the interval of
/// heartbeats, so that one which a proxy ends every half minute can be followed for hours.
const LASTING: Duration = Duration::from_secs(10);

/// Attempts since the last progress.
#[derive(Debug, Default)]
pub(super) struct Attempts {
    made: u32,
}

impl Attempts {
    /// Forgets the attempts so far: the stream has had something new.
    pub(super) fn begin_anew(&mut self) {
        self.made = 0;
    }

    /// Notes how long a stream has been alive.
    pub(super) fn note_stream(&mut self, lasted: Duration) {
        if lasted >= LASTING {
            self.begin_anew();
        }
    }

    /// Waits before the next attempt. Returns the failure that ended the stream if it lasts, or if
    /// another attempt cannot mend it.
    pub(super) async fn pause(&mut self, ended: Result<(), Failure>) -> Result<(), Failure> {
        match ended {
            Err(failure) if !failure.is_transient() || self.made == ATTEMPTS_MAX => {
                return Err(failure);
            }
            Ok(()) if self.made == ATTEMPTS_MAX => {
                let why = "the server ends the stream again and again";
                return Err(Failure::new(Exit::Failed, why));
            }
            Ok(()) | Err(_) => {}
        }
        if self.made == 0 {
            note("the stream has ended early; connecting again");
        }
        tokio::time::sleep(PAUSE * 2_u32.pow(self.made.min(5))).await;
        self.made += 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn streams_that_lasted_are_progress() {
        let mut attempts = Attempts::default();
        for _ in 0..20 {
            attempts.note_stream(Duration::from_secs(3600));
            attempts.pause(Ok(())).await.unwrap();
        }
        // the last of them was followed by an attempt already
        for _ in 1..ATTEMPTS_MAX {
            attempts.note_stream(Duration::from_secs(1));
            attempts.pause(Ok(())).await.unwrap();
        }
        attempts.note_stream(Duration::from_secs(1));
        attempts.pause(Ok(())).await.unwrap_err();
    }

    #[tokio::test(start_paused = true)]
    async fn attempts_end_unless_there_is_progress() {
        let lost = || Failure::new(Exit::Failed, "lost").transient(true);
        let mut attempts = Attempts::default();
        for _ in 0..ATTEMPTS_MAX {
            attempts.pause(Err(lost())).await.unwrap();
        }
        assert_eq!(attempts.pause(Err(lost())).await, Err(lost()));
        let refused = attempts.pause(Ok(())).await.unwrap_err().to_string();
        assert!(refused.contains("again and again"), "{refused}");
        attempts.begin_anew();
        assert_eq!(attempts.pause(Ok(())).await, Ok(()));
        let refused = Failure::new(Exit::NotFound, "gone");
        assert_eq!(attempts.pause(Err(refused.clone())).await, Err(refused));
    }
}
