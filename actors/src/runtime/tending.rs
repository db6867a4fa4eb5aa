//! Work for generations that no request begins: those that were left behind continue, asks whose
//! deadline has passed end.

use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::mpsc;

use crate::domain::principal::Principal;
use crate::ports::store::{Generations, Row};
use crate::requests::Unavailable;
use crate::runtime::{Runtime, SystemActors};
use crate::shard::arbiters::Arbiters;
use crate::shared::Shared;

use super::rows::RowReads;

/// Interval between looks for asks of calls whose deadline has passed.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// Generations that are taken over at once.
const PAGE: usize = 100;

impl Runtime {
    /// Continues a generation, now or as soon as it is possible.
    pub(super) async fn go_on_soon(&self, id: &str, by: Option<&Principal>) {
        if let Err(why) = self.go_on(id, by, None).await {
            self.go_on_later(Arc::from(id), &why).await;
        }
    }

    /// Has a generation continued as soon as it is possible.
    pub(super) async fn go_on_later(&self, id: Arc<str>, why: &Unavailable) {
        log::warn!("generation {id} continues later: {why}");
        let _ = self.generations.awaited.send(id).await;
    }

    fn downgrade(&self) -> WeakRuntime {
        WeakRuntime {
            shared: Arc::downgrade(&self.shared),
            system: Arc::downgrade(&self.system),
            arbiters: Arc::downgrade(&self.arbiters),
            row_reads: self.row_reads.clone(),
        }
    }
}

/// A runtime that this does not keep alive.
struct WeakRuntime {
    shared: Weak<Shared>,
    system: Weak<SystemActors>,
    arbiters: Weak<Arbiters>,
    row_reads: RowReads,
}

impl WeakRuntime {
    fn upgrade(&self) -> Option<Runtime> {
        let shared = self.shared.upgrade()?;
        Some(Runtime {
            generations: shared.generations.get()?.clone(),
            shared,
            system: self.system.upgrade()?,
            arbiters: self.arbiters.upgrade()?,
            row_reads: self.row_reads.clone(),
        })
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

/// Continues generations that something has begun to wait for, until the runtime drains or is
/// dropped. An answer that came first has found nothing that waited.
pub(super) fn continue_awaited(runtime: &Runtime, mut awaited: mpsc::Receiver<Arc<str>>) {
    let weak = runtime.downgrade();
    actix::spawn(async move {
        while let Some(id) = awaited.recv().await {
            while let Some(runtime) = weak.upgrade() {
                let Err(why) = runtime.go_on(&id, None, None).await else { break };
                if runtime.shared.is_draining() {
                    return;
                }
                let level = runtime.shared.level_of_failure(log::Level::Warn);
                log::log!(level, "generation {id} cannot be continued now: {why}");
                if matches!(why, Unavailable::Corrupt(_)) {
                    break;
                }
                drop(runtime);
                tokio::time::sleep(LOOK_EVERY).await;
            }
        }
    });
}

/// Continues the generations that were left behind, and those of other processes that are gone; ends
/// asks whose deadline has passed; until the runtime drains or is dropped.
pub(super) fn tend_generations(runtime: &Runtime, mut left: Vec<String>) {
    let weak = runtime.downgrade();
    actix::spawn(async move {
        let mut is_abandoned = false;
        loop {
            let Some(runtime) = weak.upgrade() else { return };
            let shared = &runtime.shared;
            if shared.is_draining() {
                return;
            }
            if is_abandoned {
                match adopt_interrupted(&*shared.store).await {
                    Ok(found) => (left, is_abandoned) = (found, false),
                    Err(why) => {
                        let level = shared.level_of_failure(log::Level::Warn);
                        log::log!(level, "cannot continue interrupted generations: {why}");
                    }
                }
            }
            runtime.take_up_all(std::mem::take(&mut left)).await;
            if shared.ownership.does_housework()
                && let Err(why) = runtime.expire_calls().await
            {
                let level = shared.level_of_failure(log::Level::Warn);
                log::log!(level, "cannot end asks whose deadline has passed: {why}");
            }
            let abandoned = Arc::clone(&shared.abandoned);
            drop(runtime);
            tokio::select! {
                () = abandoned.notified() => is_abandoned = true,
                () = tokio::time::sleep(LOOK_EVERY) => {}
            }
        }
    });
}
