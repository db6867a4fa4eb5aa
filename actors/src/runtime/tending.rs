//! Regular work for generations that wait for people: those that were left behind continue, and asks
//! end whose deadline has passed, or for which no step and no generation waits.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::agent::generation::continuable::Continuable;
use crate::agent::generation::continuation::answer_of_timeout;
use crate::ask_alarm::next_look::NextLook;
use crate::domain::time::Timestamp;
use crate::ports::store::{Ask, AskChange, AskState, AskSubject, DueAsks, Generations, Row};
use crate::requests::Unavailable;

use super::Runtime;
use super::suspended::Change;

/// Interval between looks for asks of calls whose deadline has passed, beside the deadlines that this
/// process knows.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// Generations that are taken over at once, and asks that are read at once.
const PAGE: usize = 100;

/// Time after which a generation that could not continue is tried again; it doubles up to
/// [`LOOK_EVERY`].
const TRY_AGAIN_AFTER: Duration = Duration::from_millis(100);

/// Pause while too many generations run to take up another one.
const WHILE_FULL: Duration = Duration::from_millis(200);

impl Runtime {
    /// Ends asks of calls whose deadline has passed, the first due first.
    async fn expire_calls(&self, now: Timestamp) -> Result<(), Unavailable> {
        let mut after = None;
        loop {
            let DueAsks { asks, next } = self.shared.store.due_asks(now, after, PAGE).await?;
            for ask in asks {
                if self.shared.is_draining() {
                    return Ok(());
                }
                match self.expire_if_call(&ask, now).await {
                    Ok(()) => {}
                    Err(why @ Unavailable::Corrupt(_)) => log::error!("ask {}: {why}", ask.id),
                    Err(why) => return Err(why),
                }
            }
            if next.is_none() {
                return Ok(());
            }
            after = next;
        }
    }

    /// Ends an ask of a call if its deadline has passed.
    async fn expire_if_call(&self, ask: &Ask, now: Timestamp) -> Result<(), Unavailable> {
        let is_over = ask.deadline.is_some_and(|deadline| deadline <= now);
        match &ask.subject {
            AskSubject::Call(call) if is_over => {
                self.expire_call(&ask.id, &call.generation_id, now).await
            }
            AskSubject::Call(_) | AskSubject::Step(_) => Ok(()),
        }
    }

    /// Ends an ask of a call, unless its generation does not wait for it.
    async fn expire_call(
        &self,
        ask_id: &Arc<str>,
        generation_id: &str,
        at: Timestamp,
    ) -> Result<(), Unavailable> {
        let changed = self.change_continuation(generation_id, async |found: &Continuable| {
            let mut continuation = found.continuation.clone();
            let Some((_, asked)) = found.continuation.asked(ask_id) else {
                return Ok::<_, Unavailable>(Change::None(()));
            };
            continuation.answer(ask_id, answer_of_timeout(asked.on_timeout));
            let (id, state) = (Arc::clone(ask_id), AskState::Expired);
            let asks = vec![AskChange::Close { id, state, at, answer: None }];
            Ok(Change::Put { continuation: Box::new(continuation), asks, value: () })
        });
        if let Some(((), true)) = changed.await? {
            self.go_on_now_or_later(generation_id).await;
        }
        Ok(())
    }
}

/// Takes over generations whose processes are gone; returns their ids. A single process calls this
/// before it starts any.
pub(super) async fn adopt_interrupted(store: &dyn Generations) -> Result<Vec<String>, Unavailable> {
    let (mut after, mut left) = (Row::MIN, Vec::new());
    loop {
        let page = store.adopt_interrupted(after, PAGE).await.map_err(Unavailable::from)?;
        let Some((last, _)) = page.last() else { return Ok(left) };
        after = *last;
        left.extend(page.into_iter().map(|(_, id)| id));
    }
}

/// Continues the generations that were left behind, and those of other processes that are gone; ends
/// asks whose deadline has passed; until the runtime drains or is dropped.
pub(super) fn tend_generations(runtime: &Runtime, mut left: Vec<String>) {
    let weak = runtime.downgrade();
    let mut next_look = NextLook::now(&runtime.shared, LOOK_EVERY);
    actix::spawn(async move {
        let (mut is_abandoned, mut looked_at, mut next_sweep) = (false, None, Instant::now());
        let mut pause = TRY_AGAIN_AFTER;
        loop {
            let Some(runtime) = weak.upgrade() else { return };
            let shared = &runtime.shared;
            if shared.is_draining() {
                return;
            }
            let level = shared.level_of_failure(log::Level::Warn);
            if is_abandoned {
                match adopt_interrupted(&*shared.store).await {
                    Ok(found) => {
                        left.extend(found);
                        is_abandoned = false;
                    }
                    Err(why) => log::log!(level, "cannot continue interrupted generations: {why}"),
                }
            }
            left.extend(shared.left_behind.take());
            left = runtime.take_up_all(std::mem::take(&mut left)).await;
            if next_look.is_due() {
                let now = shared.clock.now();
                if shared.ownership.does_housework()
                    && let Err(why) = runtime.expire_calls(now).await
                {
                    log::log!(level, "cannot end asks whose deadline has passed: {why}");
                }
                next_look.plan(shared, now).await;
            }
            if Instant::now() >= next_sweep && shared.ownership.does_housework() {
                next_sweep = Instant::now() + shared.limits.every(LOOK_EVERY);
                match runtime.end_orphans(looked_at).await {
                    Ok(next) => looked_at = next,
                    Err(why) => log::log!(level, "cannot look for asks of what has ended: {why}"),
                }
            }
            let (abandoned, left_behind) =
                (Arc::clone(&shared.abandoned), Arc::clone(&shared.left_behind));
            let clock = Arc::clone(&shared.clock);
            let is_full = runtime.runs_all_generations();
            drop(runtime);
            if left.is_empty() {
                pause = TRY_AGAIN_AFTER;
            } else if is_full {
                pause = WHILE_FULL;
            }
            tokio::select! {
                () = abandoned.notified() => is_abandoned = true,
                () = left_behind.added() => pause = TRY_AGAIN_AFTER,
                () = next_look.wait(&*clock) => {}
                () = tokio::time::sleep(pause), if !left.is_empty() || is_abandoned => {
                    pause = (pause * 2).min(LOOK_EVERY);
                }
            }
        }
    });
}
