//! Cost of evaluations and checks, counted in steps while they run.
//!
//! A step is about the work of reading one value: some tens of nanoseconds. Code that walks values
//! or texts charges for it; once the budget is spent, every charge fails and the code stops. The
//! count depends on the work alone, so a decision costs the same each time. Real time enters only
//! through the stop sign that the owner of a budget may add.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Budget of one evaluation, and of the decisions that follow it, on a shared thread: 2 ms when
/// measured.
pub const TURN_STEPS: u64 = 50_000;

/// Budget of one evaluation on a worker thread.
pub const STEPS_MAX: u64 = 30_000_000;

/// Bytes of text per step.
const TEXT_BYTES: usize = 64;

/// Texts up to this length are not charged more in a loop.
const LOOPED_TEXT_FREE: usize = 4 << 10;

/// Number of times that a loop is assumed to read a text, within its fuel.
const LOOPED_TEXT_FACTOR: u64 = 1024;

/// Steps between two checks of the stop sign, as a power of two.
const STOP_LOOK_BITS: u32 = 13;

/// Reason to stop an evaluation before its steps are spent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// It has exceeded its time limit.
    Time(Duration),
    /// Its result is no longer needed.
    Cancelled,
}

/// Polled during an evaluation; returns a reason to stop at once.
pub type StopSign = Box<dyn Fn() -> Option<Stop>>;

/// Creates the stop sign of a new evaluation.
pub type StopSigns = Arc<dyn Fn() -> StopSign + Send + Sync>;

/// Budget of an evaluation.
#[derive(Clone)]
pub struct Budget {
    extent: Extent,
    stop: Option<StopSigns>,
}

/// Size of a budget.
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
    /// Creates the budget for a shared thread; work that costs more belongs on a worker.
    pub const fn turn() -> Self {
        Self { extent: Extent::Turn, stop: None }
    }

    /// Creates the budget for a worker thread: [`STEPS_MAX`].
    pub const fn whole() -> Self {
        Self { extent: Extent::Whole, stop: None }
    }

    /// Adds stop signs; each evaluation within this budget gets a new one.
    #[must_use]
    pub fn stopped_by(self, signs: StopSigns) -> Self {
        Self { stop: Some(signs), ..self }
    }

    /// Returns true if work that exceeds it is repeated with a larger budget.
    pub const fn is_turn(&self) -> bool {
        matches!(self.extent, Extent::Turn)
    }
}

impl fmt::Debug for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Budget").field("extent", &self.extent).finish_non_exhaustive()
    }
}

/// Cost of a piece of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Effort {
    pub steps: u64,
    /// True if the budget was exceeded; the result of the work is invalid.
    pub is_exceeded: bool,
}

/// Reason why a budget was exceeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Excess {
    Steps(u64),
    Stopped(Stop),
}

struct Meter {
    /// Size of the current budget, if there is one.
    extent: Cell<Option<Extent>>,
    left: Cell<u64>,
    excess: Cell<Option<Excess>>,
    /// True inside a template with loops, on a shared thread.
    is_looping: Cell<bool>,
    stop: RefCell<Option<StopSign>>,
    /// Number of whole budgets exceeded on this thread.
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

    /// Returns true under the budget of a shared thread.
    fn is_turn(&self) -> bool {
        matches!(self.extent.get(), Some(Extent::Turn))
    }

    /// Records the excess and makes every later charge fail.
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

/// Restores the meter on drop, also after a panic.
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

/// Runs work within a new budget, and returns its result and its cost.
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

/// Runs work within the current budget, or within that of a turn if there is none.
pub(crate) fn bounded<T>(work: impl FnOnce() -> T) -> T {
    if METER.with(|meter| meter.extent.get().is_some()) {
        return work();
    }
    within(&Budget::turn(), work).0
}

/// Charges steps; returns false if the budget is exceeded.
pub fn charge(steps: u64) -> bool {
    METER.with(|meter| meter.charge(steps))
}

/// Charges for reading a text once; in a loop, for reading it many times.
pub(crate) fn charge_text(bytes: usize) -> bool {
    METER.with(|meter| {
        let once = 1 + steps_of(bytes / TEXT_BYTES);
        let again = meter.is_looping.get() && bytes > LOOPED_TEXT_FREE;
        meter.charge(if again { once.saturating_mul(LOOPED_TEXT_FACTOR) } else { once })
    })
}

/// Charges for `count` items of `each` steps.
pub(crate) fn charge_all(count: usize, each: usize) -> bool {
    charge(steps_of(count).saturating_mul(steps_of(each)))
}

fn steps_of(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

/// Returns true if the budget is exceeded.
pub(crate) fn is_exceeded() -> bool {
    METER.with(|meter| meter.excess.get().is_some())
}

/// Marks the budget as exceeded by work that has a separate limit of `steps`.
pub(crate) fn exceed(steps: u64) {
    METER.with(|meter| meter.exceed(Excess::Steps(steps)));
}

/// Returns the number of whole budgets exceeded on this thread.
pub fn excesses() -> u64 {
    METER.with(|meter| meter.excesses.get())
}

/// Returns the excess in words, if there is one: `takes more than 50000 steps`.
pub fn excess() -> Option<String> {
    METER.with(|meter| meter.excess.get()).map(|excess| match excess {
        Excess::Steps(steps) => format!("takes more than {steps} steps"),
        Excess::Stopped(Stop::Time(after)) => format!("took longer than {after:?}"),
        Excess::Stopped(Stop::Cancelled) => "was cancelled".to_owned(),
    })
}

/// Charges texts at the price of a loop during this work. Needed on shared threads only: elsewhere
/// the loop itself is stopped.
pub(crate) fn looping<T>(work: impl FnOnce() -> T) -> T {
    let _restore =
        METER.with(|meter| Loop { is_looping: meter.is_looping.replace(meter.is_turn()) });
    work()
}

/// Restores the meter's flag after a loop, also after a panic.
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
    fn every_charge_fails_once_the_budget_is_spent() {
        let (taken, effort) = within(&Budget::turn(), || {
            (charge(TURN_STEPS), is_exceeded(), charge(1), is_exceeded(), charge(1))
        });
        assert_eq!(taken, (true, false, false, true, false));
        assert_eq!(effort, Effort { steps: TURN_STEPS, is_exceeded: true });
        assert!(!is_exceeded(), "the excess ends with the budget");
    }

    #[test]
    fn nested_budgets_are_independent() {
        let (_, outer) = within(&Budget::whole(), || {
            assert!(charge(7));
            let (_, inner) = within(&Budget::turn(), || charge(TURN_STEPS + 1));
            assert!(inner.is_exceeded);
            assert!(charge(3) && !is_exceeded());
        });
        assert_eq!(outer, Effort { steps: 10, is_exceeded: false });
    }

    #[test]
    fn a_panic_restores_the_meter() {
        let panicked = std::panic::catch_unwind(|| {
            within(&Budget::turn(), || looping(|| std::panic::resume_unwind(Box::new(()))))
        });
        assert!(panicked.is_err());
        assert!(charge(STEPS_MAX) && !is_exceeded());
        let (_, effort) = within(&Budget::turn(), || charge_text(8 << 10));
        assert_eq!(effort.steps, 129, "the loop has ended");
    }

    #[test]
    fn a_stop_sign_ends_the_evaluation() {
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
    fn each_evaluation_has_a_new_stop_sign() {
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
    fn texts_in_loops_cost_more_on_shared_threads() {
        let cost = |budget: &Budget, bytes| within(budget, || looping(|| charge_text(bytes))).1;
        let plain = 1 + (8 << 10) / 64;
        assert_eq!(cost(&Budget::whole(), 8 << 10).steps, plain);
        assert!(cost(&Budget::turn(), 8 << 10).is_exceeded);
        assert_eq!(cost(&Budget::turn(), 4 << 10).steps, 65, "short ones do not");
    }
}
