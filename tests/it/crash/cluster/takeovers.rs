//! The time until others serve the slots of a server that is killed or stands still.

use std::time::{Duration, Instant};

use super::Cluster;
use super::member::Life;
use support::eventually;

/// Takeovers of each kind.
const TAKEOVERS: usize = 2;

impl Cluster<'_> {
    /// Kills and pauses servers in turn; returns how long others took to take over, for people.
    pub(super) fn time_takeovers(&self, lives: &mut [Life<'_>]) -> String {
        let (mut killed, mut paused) = (Vec::new(), Vec::new());
        for turn in 0..TAKEOVERS {
            let place = turn % lives.len();
            let node = self.node(&lives[place]);
            lives[place].kill();
            killed.push(self.time_takeover(&node));
            lives[place].restart();
            self.settle(lives);
            let node = self.node(&lives[place]);
            paused.push(lives[place].pause_while(|| self.time_takeover(&node)));
            self.settle(lives);
        }
        format!("takeovers from killed servers in {killed:.1?}, from paused ones in {paused:.1?}")
    }

    /// Returns the number of the member's last server.
    fn node(&self, life: &Life<'_>) -> String {
        self.rows(&format!("SELECT max(node) FROM nodes WHERE name = '{}'", life.member.name()))
    }

    /// Waits until no slot belongs to a server; returns how long that took.
    fn time_takeover(&self, node: &str) -> Duration {
        let begin = Instant::now();
        let left = format!("SELECT count(*) FROM slots WHERE node IS NULL OR node = {node}");
        eventually("a takeover", || (self.rows(&left) == "0").then_some(()));
        begin.elapsed()
    }
}
