//! An end for rules of stores that do not answer.

use std::pin::pin;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use futures_util::future::{Either, select};
use tokio::sync::oneshot;

/// Time limit of one rule.
const RULE_MAX: Duration = Duration::from_secs(120);

/// Checks a rule. Panics with its name after the time limit.
pub(super) async fn in_time<T>(rule: &str, check: impl Future<Output = T>) -> T {
    within(RULE_MAX, rule, check).await
}

/// The time is that of a thread, because an executor may have none, or a paused one.
async fn within<T>(limit: Duration, rule: &str, check: impl Future<Output = T>) -> T {
    let (_ended, end) = mpsc::channel::<()>();
    let (over, is_over) = oneshot::channel();
    thread::spawn(move || {
        if end.recv_timeout(limit) == Err(mpsc::RecvTimeoutError::Timeout) {
            // the check may have ended meanwhile
            let _ = over.send(());
        }
    });
    let checked = match select(pin!(check), is_over).await {
        Either::Left((checked, _)) => Some(checked),
        Either::Right((Ok(()), _)) => None,
        Either::Right((Err(_), check)) => Some(check.await),
    };
    let refusal = format!("{rule}: the store does not answer within {limit:?}");
    checked.expect(&refusal)
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;
    use futures_util::future::pending;

    use super::*;

    #[tokio::test]
    #[should_panic(expected = "texts_are_found: the store does not answer within 1ms")]
    async fn a_silent_store_violates_the_rule() {
        within(Duration::from_millis(1), "texts_are_found", pending::<()>()).await;
    }

    #[test]
    fn a_rule_that_ends_is_not_awaited_longer() {
        assert_eq!(in_time("a", async { 1 }).now_or_never(), Some(1));
    }
}
