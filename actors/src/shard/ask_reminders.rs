//! Reminders and escalations of asks.
//!
//! One process looks for what is due. An ask is changed only if it has not been changed meanwhile,
//! so that nothing happens twice while another process takes the work over.

use std::sync::Weak;
use std::time::Duration;

use crate::domain::assignment::{AskRules, Passed};
use crate::domain::time::Timestamp;
use crate::ports::store::{Ask, AskRevision, DueAsks};
use crate::requests::Unavailable;
use crate::shared::Shared;

/// Interval between looks, which cost one read: the longest delay of a reminder.
const LOOK_EVERY: Duration = Duration::from_secs(15);

/// Asks that are read at once.
const PAGE: usize = 100;

/// Does what is due until the runtime drains or is dropped.
pub(crate) async fn remind(shared: Weak<Shared>) {
    loop {
        let Some(shared) = shared.upgrade().filter(|shared| !shared.is_draining()) else { return };
        if shared.ownership.does_housework()
            && let Err(why) = look(&shared).await
        {
            let level = shared.level_of_failure(log::Level::Warn);
            log::log!(level, "cannot remind of what waits in the inbox, trying again: {why}");
        }
        drop(shared);
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

async fn look(shared: &Shared) -> Result<(), Unavailable> {
    let (now, mut after) = (shared.clock.now(), None);
    loop {
        let DueAsks { asks, next } = shared.store.due_asks(now, after, PAGE).await?;
        for ask in asks {
            if shared.is_draining() {
                return Ok(());
            }
            pass(shared, ask, now).await?;
        }
        if next.is_none() {
            return Ok(());
        }
        after = next;
    }
}

/// Does what is due of an ask, unless it has changed meanwhile, or its deadline has passed.
async fn pass(shared: &Shared, ask: Ask, now: Timestamp) -> Result<(), Unavailable> {
    // the runtime ends those of calls, and the timer of its step any other
    if ask.deadline.is_some_and(|deadline| deadline <= now) {
        return Ok(());
    }
    let (rules, passed) = ask.rules.clone().pass(ask.opened_at, now);
    let revision = AskRevision {
        id: ask.id.clone(),
        revision: ask.revision,
        next_due: ask.next_due(&rules),
        rules: rules.clone(),
        claim: ask.claim.clone(),
    };
    let is_first = shared.store.revise_ask(revision).await?;
    if is_first {
        log_passed(&ask, &rules, passed);
    }
    Ok(())
}

fn log_passed(ask: &Ask, rules: &AskRules, passed: Passed) {
    let Ask { id, reason, opened_at, .. } = ask;
    let asked = rules.to.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let since = opened_at.to_iso();
    if passed.is_escalated {
        log::info!("ask {id} has no answer since {since}, now asking {asked}: {reason}");
    } else if passed.is_reminded {
        let asked = if asked.is_empty() { "anyone" } else { &asked };
        log::info!("ask {id} waits for {asked} since {since}: {reason}");
    }
}
