//! The end of a lane by a panic: a defect of this program.
//!
//! What was queued for the lane would wait for ever, and whether its last batch is stored is not
//! known. So the process ends like one that lost the database, and the next one continues from what
//! the database has.

use std::panic::AssertUnwindSafe;
use std::sync::atomic::Ordering;

use futures_util::FutureExt as _;
use greenroom_actors::ports::store::AppendError;

use super::register::GENERATIONS;
use super::work::Work;
use super::{Batches, Lane};
use crate::membership::Cause;

impl<W: Work> Lane<W> {
    /// Serves requests until the store is closed. After a panic it stores nothing more, and answers
    /// all requests with the loss.
    pub(super) async fn run(mut self) {
        let mut taken: Batches<W> = Vec::new();
        let serving = AssertUnwindSafe(self.serve(&mut taken));
        let Err(panic) = serving.catch_unwind().await else { return };
        self.session = None;
        let lane = match self.key.lane {
            GENERATIONS => "the lane of generations".to_owned(),
            lane => format!("lane {lane}"),
        };
        self.shared.membership.lose(Cause::panicked(&lane, &*panic));
        for batch in taken.drain(..).rev() {
            self.queued.fetch_sub(batch.len(), Ordering::Relaxed);
            self.answer(batch, &Err(AppendError::Unsettled));
        }
        while let Some(batch) = self.gather().await {
            self.queued.fetch_sub(batch.len(), Ordering::Relaxed);
            self.answer(batch, &Err(AppendError::Lost));
        }
    }
}
