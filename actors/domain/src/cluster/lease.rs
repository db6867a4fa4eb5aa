//! The time for which a process may believe that it is alive, and others may not count it as gone.
//!
//! No clock is compared with another: a process counts from the beats that it has sent, the others
//! from the beats that they have read. A beat is read after it was sent, and others wait longer
//! than the process itself believes, so a process always knows first.

use std::collections::BTreeMap;
use std::time::Duration;

use super::NodeId;

/// Beats that a process sends during its lease.
const BEATS_PER_LEASE: u32 = 6;

/// Successive looks at an unchanged beat, after the first, before a process counts as gone.
const LOOKS: u32 = BEATS_PER_LEASE;

/// Looks at an unchanged beat, after the first, before a process counts as gone that is known to
/// have ended. What it sent at its end is read until then.
const LOOKS_AFTER_END: u32 = 2;

/// The time for which one beat shows that a process is alive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lease(Duration);

impl Lease {
    pub const fn new(length: Duration) -> Self {
        Self(length)
    }

    pub const fn length(self) -> Duration {
        self.0
    }

    /// Returns the time between two beats.
    pub const fn interval(self) -> Duration {
        Duration::from_nanos(self.0.as_nanos() as u64 / BEATS_PER_LEASE as u64)
    }

    /// Returns the time at which a process must no longer believe that it is alive, if its last
    /// answered beat was sent at the given time. Both are of its monotonic clock.
    pub fn believed_until(self, sent: Duration) -> Duration {
        sent + self.0 - self.interval()
    }

    /// Returns the time between the answer to the first look at a beat and the look at which a
    /// process counts as gone: a tenth less than so many intervals, because looks are not exact.
    fn patience(self, looks: u32) -> Duration {
        self.interval() * looks * 9 / 10
    }

    /// Returns the time between two answered looks beyond which a look in between was missed.
    fn gap(self) -> Duration {
        self.interval() * 7 / 4
    }
}

/// Looks at the beats of other processes: one each time that a beat of this process is answered.
#[derive(Debug)]
pub struct Suspicion {
    lease: Lease,
    last: Option<Duration>,
    seen: BTreeMap<NodeId, Seen>,
}

/// A beat that was seen, and for how long.
#[derive(Debug, Clone, Copy)]
struct Seen {
    beat: u64,
    /// Time of the answer to the first look.
    since: Duration,
    /// Successive looks after the first.
    unchanged: u32,
}

impl Suspicion {
    pub const fn new(lease: Lease) -> Self {
        Self { lease, last: None, seen: BTreeMap::new() }
    }

    /// Notes the beats of all others, and returns those that count as gone. The look was sent and
    /// answered at these times of this process's monotonic clock. A process that has ended believes
    /// nothing, so others need not wait until it would not.
    ///
    /// After a look that is late, whatever the reason, all others are looked at anew: this process
    /// or the store may have stood still, and the others could not beat either.
    pub fn look(
        &mut self,
        (sent, answered): (Duration, Duration),
        beats: impl IntoIterator<Item = (NodeId, u64)>,
        has_ended: impl Fn(NodeId) -> bool,
    ) -> Vec<(NodeId, u64)> {
        let is_late = self.last.is_none_or(|last| sent > last + self.lease.gap())
            || answered > sent + self.lease.gap();
        self.last = Some(sent);
        let mut seen = BTreeMap::new();
        for (node, beat) in beats {
            let before = self.seen.get(&node).filter(|before| before.beat == beat && !is_late);
            let next = match before {
                Some(before) => Seen { unchanged: before.unchanged + 1, ..*before },
                None => Seen { beat, since: answered, unchanged: 0 },
            };
            seen.insert(node, next);
        }
        self.seen = seen;
        // looks are more frequent than beats while commands wait: their number alone shows nothing
        let is_silent = |seen: &Seen, looks: u32| {
            let patience = self.lease.patience(looks);
            seen.unchanged >= looks && sent.saturating_sub(seen.since) >= patience
        };
        let is_gone = |(node, seen): &(&NodeId, &Seen)| {
            is_silent(seen, LOOKS) || is_silent(seen, LOOKS_AFTER_END) && has_ended(**node)
        };
        let gone = self.seen.iter().filter(is_gone);
        gone.map(|(node, seen)| (*node, seen.beat)).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LEASE: Lease = Lease::new(Duration::from_secs(6));
    const A: NodeId = NodeId(1);
    const B: NodeId = NodeId(2);

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn a_process_that_is_killed_counts_as_gone_after_its_lease() {
        let mut suspicion = Suspicion::new(LEASE);
        let mut gone = Vec::new();
        for second in 0..8 {
            let at = ms(1000 * second);
            let alive = (B, second);
            gone.push(suspicion.look((at, at + ms(2)), [(A, 7), alive], |_| false).len());
        }
        assert_eq!(gone, [0, 0, 0, 0, 0, 0, 1, 1]);
    }

    #[test]
    fn a_process_that_has_ended_counts_as_gone_after_two_looks() {
        let mut suspicion = Suspicion::new(LEASE);
        let has_ended = |node| node == A;
        for second in 0..3 {
            let at = ms(1000 * second);
            let gone = suspicion.look((at, at + ms(2)), [(A, 7 + second), (B, 7)], has_ended);
            assert_eq!(gone, [], "its beat changes, so it is another process that has ended");
        }
        for (second, expected) in [(3, vec![]), (4, vec![(A, 9)])] {
            let at = ms(1000 * second);
            let gone = suspicion.look((at, at + ms(2)), [(A, 9), (B, 7)], has_ended);
            assert_eq!(gone, expected, "{second}");
        }
        // the database stood still
        assert_eq!(suspicion.look((ms(8000), ms(8002)), [(A, 9)], has_ended), []);
    }

    #[test]
    fn looks_in_quick_succession_show_no_end() {
        let mut suspicion = Suspicion::new(LEASE);
        for at in [0, 10, 20, 30, 1500, 1600].map(ms) {
            assert_eq!(suspicion.look((at, at), [(A, 7)], |_| true), [], "{at:?}");
        }
        assert_eq!(suspicion.look((ms(1800), ms(1800)), [(A, 7)], |_| true), [(A, 7)]);
    }

    #[test]
    fn a_late_look_begins_anew() {
        let mut suspicion = Suspicion::new(LEASE);
        let late = [0, 1000, 2000, 3000, 4000, 5000, 8000, 9000, 10_000, 11_000, 12_000, 13_000];
        for at in late.map(ms) {
            assert_eq!(suspicion.look((at, at + ms(2)), [(A, 7)], |_| false), [], "{at:?}");
        }
        assert_eq!(suspicion.look((ms(14_000), ms(14_002)), [(A, 7)], |_| false), [(A, 7)]);
    }

    #[test]
    fn a_late_answer_begins_anew() {
        let mut suspicion = Suspicion::new(LEASE);
        for second in 0..6 {
            let at = ms(1000 * second);
            assert_eq!(suspicion.look((at, at), [(A, 7)], |_| false), []);
        }
        assert_eq!(suspicion.look((ms(6000), ms(7800)), [(A, 7)], |_| false), []);
        assert_eq!(suspicion.look((ms(7700), ms(7702)), [(A, 7)], |_| false), []);
    }

    #[test]
    fn a_process_that_was_not_there_is_looked_at_from_its_first_beat_on() {
        let mut suspicion = Suspicion::new(LEASE);
        for second in 0..4 {
            let at = ms(1000 * second);
            suspicion.look((at, at), [(A, 7)], |_| false);
        }
        suspicion.look((ms(4000), ms(4000)), [], |_| false);
        for second in 5..10 {
            let at = ms(1000 * second);
            assert_eq!(suspicion.look((at, at), [(A, 7)], |_| false), []);
        }
    }

    /// Beats of one process: pause before each, time to the commit, and from there to the answer.
    type Beats = Vec<(u64, u64, u64)>;

    fn beats() -> impl Strategy<Value = Beats> {
        let pause = prop_oneof![8 => 1000..1100_u64, 1 => 1000..9000_u64];
        let delay = || prop_oneof![8 => 0..20_u64, 1 => 0..1500_u64];
        prop::collection::vec((pause, delay(), delay()), 1..40)
    }

    /// Returns the times at which beats were sent, committed and answered.
    fn times(beats: &Beats) -> Vec<(u64, u64, u64)> {
        let mut now = 0;
        let time = |&(pause, commit, answer): &(u64, u64, u64)| {
            let sent = now + pause;
            let committed = sent + commit;
            let answered = committed + answer;
            // the next beat is sent an interval after this one at the earliest
            now = sent.max(answered.saturating_sub(1000));
            (sent, committed, answered)
        };
        beats.iter().map(time).collect()
    }

    proptest! {
        /// Whatever pauses and delays there are, a process that counts as gone knows it before.
        #[test]
        fn a_process_never_believes_longer_than_others_wait(
            own in beats(), others in beats(), ahead in 0..5000_u64,
        ) {
            let own = times(&own);
            let mut suspicion = Suspicion::new(LEASE);
            for (sent, read, answered) in times(&others) {
                let (sent, read, answered) = (sent + ahead, read + ahead, answered + ahead);
                let beat = own.iter().filter(|(_, committed, _)| *committed <= read).count();
                let gone = suspicion.look((ms(sent), ms(answered)), [(A, beat as u64)], |_| false);
                if gone.is_empty() {
                    continue;
                }
                // the fence compares the beat: if a newer one is committed, it does nothing
                let fenced = own.iter().all(|(_, committed, _)| {
                    *committed <= read || *committed > answered
                });
                let known = own.iter().filter(|(_, committed, answer)| {
                    *committed <= read && *answer <= answered
                });
                let until = known.map(|(sent, _, _)| LEASE.believed_until(ms(*sent))).max();
                prop_assert!(!fenced || until.is_none_or(|until| until <= ms(answered)));
            }
        }
    }
}
