//! The asks that the store is filled with: the same in every run, but for the time.

use std::sync::Arc;

use greenroom_actors::domain::assignment::{AskRules, Assignee};
use greenroom_actors::domain::time::Timestamp;
use greenroom_actors::ports::store::{AskKind, AskState, Claim};

const WORKFLOWS: u64 = 20;
const AGENTS: u64 = 5;
const USERS: u64 = 1_000;
/// A third of the asks is asked of one of these roles, `staff` and `role-1` to `role-9`.
const ROLES: u64 = 10;

const MINUTE_MS: u64 = 60_000;
const HOUR_MS: u64 = 60 * MINUTE_MS;
const DAY_MS: u64 = 24 * HOUR_MS;
/// Time in which they have opened, up to now, and time in which the deadlines of open ones are.
const SPAN_MS: u64 = 30 * DAY_MS;

/// Numbers of asks. Open ones are evenly spread among the closed ones.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Spread {
    pub(crate) open: u64,
    pub(crate) closed: u64,
    pub(crate) now: Timestamp,
}

/// An ask, with what it belongs to.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) number: u64,
    pub(crate) kind: AskKind,
    /// The workflow of a step, the agent of a call.
    pub(crate) of: Arc<str>,
    pub(crate) user: Arc<str>,
    pub(crate) rules: AskRules,
    pub(crate) opened: Timestamp,
    pub(crate) deadline: Option<Timestamp>,
    pub(crate) closed: Option<(AskState, Timestamp)>,
    /// Only of open ones.
    pub(crate) claim: Option<Claim>,
}

impl Spread {
    /// Returns the asks in the order in which they opened.
    pub(crate) fn asks(self) -> impl Iterator<Item = Asked> {
        (0..self.open + self.closed).map(move |number| self.ask(number))
    }

    fn ask(self, number: u64) -> Asked {
        let all = self.open + self.closed;
        let mut draws = Draws::of(number);
        let (kind, of) = match draws.below(20) {
            0..9 => (AskKind::Step, name("workflow", draws.below(WORKFLOWS))),
            9..12 => (AskKind::Function, name("workflow", draws.below(WORKFLOWS))),
            12..18 => (AskKind::Approval, name("agent", draws.below(AGENTS))),
            _ => (AskKind::Input, name("agent", draws.below(AGENTS))),
        };
        let user = name("user", draws.below(USERS));
        let to = match draws.below(3) {
            0 => Vec::new(),
            1 => vec![Assignee::User(name("user", draws.below(USERS)))],
            _ => vec![Assignee::Role(role(draws.below(ROLES)))],
        };
        let age_ms = (all - number) * SPAN_MS / all;
        let opened = Timestamp(self.now.0.saturating_sub_unsigned(age_ms));
        let is_open = (number + 1) * self.open / all > number * self.open / all;
        let has_deadline = draws.below(2) == 0;
        let state = match draws.below(10) {
            0 => AskState::Withdrawn,
            1 if has_deadline => AskState::Expired,
            _ => AskState::Answered,
        };
        let closed = (!is_open).then(|| (state, opened.plus_ms(draws.below(HOUR_MS))));
        let ahead_ms = HOUR_MS + draws.below(SPAN_MS / MINUTE_MS) * MINUTE_MS;
        let due = if is_open { self.now.plus_ms(ahead_ms) } else { opened.plus_ms(HOUR_MS) };
        let is_claimed = is_open && draws.below(5) == 0;
        let until = self.now.plus_ms(DAY_MS);
        let claim = is_claimed.then(|| Claim { by: name("user", draws.below(USERS)), until });
        let deadline = has_deadline.then_some(due);
        let rules = AskRules { to, ..AskRules::default() };
        Asked { number, kind, of, user, rules, opened, deadline, closed, claim }
    }
}

impl Asked {
    /// Returns the id of its execution or generation, as long as most are.
    pub(crate) fn owner_id(&self) -> String {
        format!("{:036}", self.number)
    }

    pub(crate) fn id(&self) -> Arc<str> {
        Arc::from(format!("ask_{:032}", self.number))
    }
}

fn name(of: &str, number: u64) -> Arc<str> {
    Arc::from(format!("{of}-{number}"))
}

/// Returns the name of a role. The first one is that of the caller.
fn role(number: u64) -> Arc<str> {
    if number == 0 { Arc::from("staff") } else { name("role", number) }
}

/// Numbers drawn from those that a number is scattered to (splitmix64).
struct Draws(u64);

impl Draws {
    fn of(number: u64) -> Self {
        let bits = (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        Self(bits ^ (bits >> 31))
    }

    fn below(&mut self, count: u64) -> u64 {
        let drawn = self.0 % count;
        // all draws of an ask together need 61 bits at most
        self.0 /= count;
        drawn
    }
}
