//! Continues generations that can continue: those that an earlier process left, and those for which
//! it was not possible at once.

use crate::requests::Unavailable;

use super::Runtime;

impl Runtime {
    /// Continues a generation whose last answer is recorded; later, if that is not possible now.
    pub(super) async fn go_on_now_or_later(&self, id: &str) {
        if let Err(why) = self.go_on(id, None, None).await {
            self.go_on_later(id, &why);
        }
    }

    /// Notes a generation that can continue, and cannot now.
    pub(super) fn go_on_later(&self, id: &str, why: &Unavailable) {
        log::warn!("generation {id} continues later: {why}");
        self.shared.left_behind.add(id.to_owned());
    }

    /// Returns true if as many generations run as may.
    pub(super) fn runs_all_generations(&self) -> bool {
        self.generations.active.live() >= self.shared.limits.generations_live_max
    }

    /// Continues generations that were left behind. Returns those that have to be tried again, without
    /// a wait for room: the caller has other work.
    pub(super) async fn take_up_all(&self, left: Vec<String>) -> Vec<String> {
        let mut again = Vec::new();
        let mut left = left.into_iter();
        for id in left.by_ref() {
            if self.shared.is_draining() {
                return Vec::new();
            }
            if self.runs_all_generations() {
                again.push(id);
                break;
            }
            let Err(why) = self.go_on(&id, None, None).await else { continue };
            log::debug!("generation {id} cannot be continued now: {why}");
            if matches!(why, Unavailable::Corrupt(_)) {
                continue;
            }
            again.push(id);
            if matches!(why, Unavailable::Store { .. }) {
                // the others would only wait for it, one by one
                break;
            }
        }
        again.extend(left);
        again
    }
}
