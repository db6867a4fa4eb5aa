//! What evaluations and checks cost, counted in steps as they go.
//!
//! A step is about as much work as reading one value: some tens of nanoseconds. Whatever walks
//! values or texts charges for it; once the budget is spent, every charge fails, and the walkers
//! stop where they are. The count depends on the work alone, so a decision costs the same each
//! time. Real time enters only as a question that the budget's owner may bring along.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// What one evaluation, and what follows it by itself, may cost on a thread that others wait
/// for: 2 ms when measured.
pub const TURN_STEPS: u64 = 50_000;

/// What one evaluation may cost at all.
pub const STEPS_MAX: u64 = 30_000_000;

/// Bytes of text that cost one step.
const TEXT_BYTES: usize = 64;

/// Texts up to this length cost nothing more in a loop.
const LOOPED_TEXT_FREE: usize = 4 << 10;

/// How often a loop, as far as its fuel goes, may look at a text again.
const LOOPED_TEXT_FACTOR: u64 = 1024;

/// Steps between two looks at the clock.
const STOP_LOOK_BITS: u32 = 13;

/// Why an evaluation stops before its steps are spent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// It has taken as long as it may.
    Time(Duration),
    /// What comes of it is no longer wanted.
    Cancelled,
}

/// Asked now and then: whether to stop at once.
pub type StopSign = Box<dyn Fn() -> Option<Stop>>;

/// Makes the sign for an evaluation that begins.
pub type StopSigns = Arc<dyn Fn() -> StopSign + Send + Sync>;

/// What an evaluation may cost.
#[derive(Clone)]
pub struct Budget {
    extent: Extent,
    stop: Option<StopSigns>,
}

/// How much a budget is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Extent {
    Turn,
    Whole,
}

impl Extent {
    const fn steps(self) -> u64 {
        match self {
            Self::Turn => TURN_STEPS,
            Self::Whole => STEPS_MAX,
        }
    }
}

impl Budget {
    /// For a thread that others wait for: what costs more is to be done elsewhere.
    pub const fn turn() -> Self {
        Self { extent: Extent::Turn, stop: None }
    }

    /// For a thread of its own: up to [`STEPS_MAX`].
    pub const fn whole() -> Self {
        Self { extent: Extent::Whole, stop: None }
    }

    /// Ends early when a sign says so. Each evaluation within this budget gets one of its own.
    #[must_use]
    pub fn stopped_by(self, signs: StopSigns) -> Self {
        Self { stop: Some(signs), ..self }
    }

    /// Whether what exceeds it is to be tried again with more.
    pub const fn is_turn(&self) -> bool {
        matches!(self.extent, Extent::Turn)
    }
}

impl fmt::Debug for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Budget").field("extent", &self.extent).finish_non_exhaustive()
    }
}

/// What was spent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Effort {
    pub steps: u64,
    /// The budget did not suffice: what came of it counts for nothing.
    pub is_exceeded: bool,
}

/// Why a budget did not suffice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Excess {
    Steps(u64),
    Stopped(Stop),
}

struct Meter {
    /// Of the budget that it is under, if there is one.
    extent: Cell<Option<Extent>>,
    left: Cell<u64>,
    excess: Cell<Option<Excess>>,
    /// In a text with loops, on a thread that others wait for.
    is_looping: Cell<bool>,
    stop: RefCell<Option<StopSign>>,
    /// Whole budgets that did not suffice, on this thread so far.
    excesses: Cell<u64>,
}

thread_local! {
    static METER: Meter = const {
        Meter {
            extent: Cell::new(None),
            left: Cell::new(u64::MAX),
            excess: Cell::new(None),
            is_looping: Cell::new(false),
            stop: RefCell::new(None),
            excesses: Cell::new(0),
        }
    };
}

impl Meter {
    fn charge(&self, steps: u64) -> bool {
        let before = self.left.get();
        let Some(left) = before.checked_sub(steps) else {
            return self.exceed(Excess::Steps(self.extent.get().map_or(u64::MAX, Extent::steps)));
        };
        self.left.set(left);
        if before >> STOP_LOOK_BITS == left >> STOP_LOOK_BITS {
            return true;
        }
        let stop = self.stop.borrow().as_ref().and_then(|sign| sign());
        stop.is_none_or(|stop| self.exceed(Excess::Stopped(stop)))
    }

    /// Whether it counts for a thread that others wait for.
    fn is_turn(&self) -> bool {
        matches!(self.extent.get(), Some(Extent::Turn))
    }

    /// Nothing can be charged any more.
    fn exceed(&self, excess: Excess) -> bool {
        if self.excess.get().is_none() {
            self.excess.set(Some(excess));
            let is_counted = match excess {
                Excess::Steps(_) => !self.is_turn(),
                Excess::Stopped(Stop::Time(_)) => true,
                Excess::Stopped(Stop::Cancelled) => false,
            };
            self.excesses.set(self.excesses.get() + u64::from(is_counted));
        }
        self.left.set(0);
        false
    }
}

/// Puts the meter back as it was, also when the work panics.
struct Outer {
    extent: Option<Extent>,
    left: u64,
    excess: Option<Excess>,
    stop: Option<StopSign>,
}

impl Outer {
    fn begin(budget: &Budget) -> Self {
        METER.with(|meter| Self {
            extent: meter.extent.replace(Some(budget.extent)),
            left: meter.left.replace(budget.extent.steps()),
            excess: meter.excess.replace(None),
            stop: meter.stop.replace(budget.stop.as_ref().map(|signs| signs())),
        })
    }
}

impl Drop for Outer {
    fn drop(&mut self) {
        METER.with(|meter| {
            meter.extent.set(self.extent);
            meter.left.set(self.left);
            meter.excess.set(self.excess);
            meter.stop.replace(self.stop.take());
        });
    }
}

/// Works within a budget of its own, and tells what was spent of it.
pub fn within<T>(budget: &Budget, work: impl FnOnce() -> T) -> (T, Effort) {
    let outer = Outer::begin(budget);
    let done = work();
    let effort = METER.with(|meter| Effort {
        steps: budget.extent.steps() - meter.left.get(),
        is_exceeded: meter.excess.get().is_some(),
    });
    drop(outer);
    (done, effort)
}

/// Works within the budget there is; where there is none, within that of a turn.
pub(crate) fn bounded<T>(work: impl FnOnce() -> T) -> T {
    if METER.with(|meter| meter.extent.get().is_some()) {
        return work();
    }
    within(&Budget::turn(), work).0
}

/// Pays for so many steps; false when they are no longer there.
pub fn charge(steps: u64) -> bool {
    METER.with(|meter| meter.charge(steps))
}

/// Pays for walking through a text once, and in a loop for doing so again and again.
pub(crate) fn charge_text(bytes: usize) -> bool {
    METER.with(|meter| {
        let once = 1 + steps_of(bytes / TEXT_BYTES);
        let again = meter.is_looping.get() && bytes > LOOPED_TEXT_FREE;
        meter.charge(if again { once.saturating_mul(LOOPED_TEXT_FACTOR) } else { once })
    })
}

/// Pays for so many things of some size each.
pub(crate) fn charge_all(count: usize, each: usize) -> bool {
    charge(steps_of(count).saturating_mul(steps_of(each)))
}

fn steps_of(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

/// Whether the budget has been exceeded.
pub(crate) fn is_exceeded() -> bool {
    METER.with(|meter| meter.excess.get().is_some())
}

/// Spends what is left: something with a bound of its own takes more than so many steps.
pub(crate) fn exceed(steps: u64) {
    METER.with(|meter| meter.exceed(Excess::Steps(steps)));
}

/// How many whole budgets did not suffice on this thread, so far.
pub fn excesses() -> u64 {
    METER.with(|meter| meter.excesses.get())
}

/// How the budget was exceeded, if it was: `takes more than 50000 steps`.
pub fn excess() -> Option<String> {
    METER.with(|meter| meter.excess.get()).map(|excess| match excess {
        Excess::Steps(steps) => format!("takes more than {steps} steps"),
        Excess::Stopped(Stop::Time(after)) => format!("took longer than {after:?}"),
        Excess::Stopped(Stop::Cancelled) => "was cancelled".to_owned(),
    })
}

/// Lets texts that are read cost what a loop can make of them. Elsewhere the loop itself is
/// asked to stop.
pub(crate) fn looping<T>(work: impl FnOnce() -> T) -> T {
    let _around =
        METER.with(|meter| Loop { is_looping: meter.is_looping.replace(meter.is_turn()) });
    work()
}

/// Says again of the meter what it said before a loop, also when the work panics.
struct Loop {
    is_looping: bool,
}

impl Drop for Loop {
    fn drop(&mut self) {
        METER.with(|meter| meter.is_looping.set(self.is_looping));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_spent_and_then_nothing_more() {
        let (taken, effort) = within(&Budget::turn(), || {
            (charge(TURN_STEPS), is_exceeded(), charge(1), is_exceeded(), charge(1))
        });
        assert_eq!(taken, (true, false, false, true, false));
        assert_eq!(effort, Effort { steps: TURN_STEPS, is_exceeded: true });
        assert!(!is_exceeded(), "outside of it nothing is left of it");
    }

    #[test]
    fn budgets_inside_of_others_are_their_own() {
        let (_, outer) = within(&Budget::whole(), || {
            assert!(charge(7));
            let (_, inner) = within(&Budget::turn(), || charge(TURN_STEPS + 1));
            assert!(inner.is_exceeded);
            assert!(charge(3) && !is_exceeded());
        });
        assert_eq!(outer, Effort { steps: 10, is_exceeded: false });
    }

    #[test]
    fn what_panics_leaves_the_meter_as_it_was() {
        let panicked = std::panic::catch_unwind(|| {
            within(&Budget::turn(), || looping(|| std::panic::resume_unwind(Box::new(()))))
        });
        assert!(panicked.is_err());
        assert!(charge(STEPS_MAX) && !is_exceeded());
        let (_, effort) = within(&Budget::turn(), || charge_text(8 << 10));
        assert_eq!(effort.steps, 129, "there is no loop around it any more");
    }

    #[test]
    fn a_stop_sign_is_seen_in_time() {
        let after = Duration::from_secs(1);
        for (stop, said, counted) in
            [(Stop::Time(after), "took longer than 1s", 1), (Stop::Cancelled, "was cancelled", 0)]
        {
            let signs: StopSigns = Arc::new(move || Box::new(move || Some(stop)));
            let before = excesses();
            let (why, effort) = within(&Budget::whole().stopped_by(signs), || {
                while charge(1) {}
                excess()
            });
            assert_eq!(why.as_deref(), Some(said));
            assert!(effort.is_exceeded);
            assert_eq!(excesses() - before, counted, "{said}");
        }
    }

    #[test]
    fn each_evaluation_has_a_stop_sign_of_its_own() {
        let signs: StopSigns = Arc::new(|| {
            let looks = Cell::new(0);
            Box::new(move || {
                looks.set(looks.get() + 1);
                (looks.get() > 2).then_some(Stop::Time(Duration::ZERO))
            })
        });
        let budget = Budget::whole().stopped_by(signs);
        let paid = || (0_u64..).take_while(|_| charge(1)).count();
        let [first, second] = [0, 1].map(|_| within(&budget, paid).0);
        assert!(first > 2 << STOP_LOOK_BITS, "{first}");
        assert_eq!(first, second);
    }

    #[test]
    fn texts_in_loops_cost_more_where_others_wait() {
        let cost = |budget: &Budget, bytes| within(budget, || looping(|| charge_text(bytes))).1;
        let plain = 1 + (8 << 10) / 64;
        assert_eq!(cost(&Budget::whole(), 8 << 10).steps, plain);
        assert!(cost(&Budget::turn(), 8 << 10).is_exceeded);
        assert_eq!(cost(&Budget::turn(), 4 << 10).steps, 65, "short ones do not");
    }
}
