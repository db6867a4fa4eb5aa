//! Random requests of callers.

use std::sync::Arc;

use greenroom_actors::domain::fact::Suspension;
use greenroom_actors::domain::ids::ExecutionId;
use greenroom_actors::ports::store::{Projection, Status};
use greenroom_actors::requests::Target;

use crate::simulator::approvals;
use crate::simulator::callers::{Answer, Caller, Settled, Start, target};
use crate::simulator::dice::Dice;
use crate::simulator::promises::Wish;
use crate::simulator::stage::Stage;

/// Maximum number of executions that callers start.
const STARTS_MAX: u64 = 12;

#[derive(Clone)]
pub(crate) enum Request {
    Execute(Start),
    Resume(Target, Answer),
    /// An answer through the inbox, to the suspension that it names.
    Answer(Target, Answer),
    Suspend(Target),
    Cancel(Target),
    Describe(Target),
    /// An answer to the ask of a call: approved or not, with its number.
    Approve(Arc<str>, bool, u64),
}

impl Request {
    pub(crate) async fn send(self, caller: Caller) -> Settled {
        match self {
            Self::Execute(start) => caller.execute(start).await,
            Self::Resume(target, answer) => caller.resume(target, answer).await,
            Self::Answer(target, answer) => caller.answer(target, answer).await,
            Self::Suspend(target) => caller.suspend(target).await,
            Self::Cancel(target) => caller.cancel(target).await,
            Self::Describe(target) => caller.describe(target).await,
            Self::Approve(ask, approved, token) => caller.approve(ask, approved, token).await,
        }
    }

    /// Returns what an execution or a resume asks for.
    pub(crate) fn wish(&self) -> Option<(Wish, u64)> {
        match self {
            Self::Execute(start) => Some((Wish::Execute, start.token)),
            Self::Resume(_, answer) | Self::Answer(_, answer) => Some((Wish::Resume, answer.token)),
            Self::Approve(_, _, token) => Some((Wish::Approve, *token)),
            Self::Suspend(_) | Self::Cancel(_) | Self::Describe(_) => None,
        }
    }

    /// Returns true if it can be repeated without being carried out twice.
    pub(crate) fn is_repeatable(&self) -> bool {
        match self {
            Self::Execute(start) => start.key.is_some(),
            Self::Resume(_, answer) | Self::Answer(_, answer) => answer.key.is_some(),
            Self::Suspend(_) | Self::Cancel(_) | Self::Describe(_) | Self::Approve(..) => false,
        }
    }
}

/// The requests so far.
pub(crate) struct Requests {
    stage: Arc<Stage>,
    started: Vec<Start>,
    /// Execution of the last request, which further requests often address.
    last: Option<Target>,
}

impl Requests {
    pub(crate) fn new(stage: &Arc<Stage>) -> Self {
        Self { stage: Arc::clone(stage), started: Vec::new(), last: None }
    }

    pub(crate) fn start(&mut self, dice: &mut Dice) -> Vec<Request> {
        if self.started.len() as u64 >= STARTS_MAX {
            return Vec::new();
        }
        let number = dice.below(self.stage.plans.len() as u64);
        let chosen = ExecutionId::trusted(format!("e{}", self.started.len()));
        let start = Start {
            workflow: format!("w{number}"),
            id: dice.chance(70).then_some(chosen),
            token: self.stage.token(),
            key: dice.chance(40).then(|| format!("key {}", self.started.len())),
        };
        let copies = (0..copies(dice)).map(|_| self.of_start(&start)).collect();
        self.started.push(start);
        copies
    }

    /// Repeats an earlier start: with its key, or with the same id only.
    pub(crate) fn start_again(&mut self, dice: &mut Dice) -> Vec<Request> {
        if self.started.is_empty() {
            return Vec::new();
        }
        let which = usize::try_from(dice.below(self.started.len() as u64)).unwrap();
        let earlier = &self.started[which];
        let start = if earlier.key.is_some() && dice.chance(70) {
            earlier.clone()
        } else {
            let Some(id) = earlier.id.clone() else { return Vec::new() };
            let token = self.stage.token();
            Start { workflow: earlier.workflow.clone(), id: Some(id), token, key: None }
        };
        vec![self.of_start(&start)]
    }

    fn of_start(&self, start: &Start) -> Request {
        // two starts without a key are two requests for one id
        Request::Execute(match &start.key {
            Some(_) => start.clone(),
            None => Start { token: self.stage.token(), ..start.clone() },
        })
    }

    pub(crate) fn resume(&mut self, dice: &mut Dice) -> Vec<Request> {
        let Some(target) = self.pick_target(dice) else { return Vec::new() };
        let waiting = self.stage.projection(&target.execution_id).and_then(|it| it.suspension);
        let suspension_id = waiting.as_ref().and_then(|it| it.id.as_deref().map(str::to_owned));
        let suspension_id = suspension_id.filter(|_| dice.chance(50));
        let is_about_compensation = waiting.as_ref().is_some_and(is_of_compensation);
        let step_id = match dice.below(10) {
            0..5 => None,
            5..8 => waiting.map(|suspension| suspension.step_id.to_string()),
            8 => Some(format!("s{}", dice.between(1, 6))),
            _ => Some("unknown".to_owned()),
        };
        let by_inbox = suspension_id.is_some() && dice.chance(40);
        let copies = copies(dice);
        let is_one_wish = dice.chance(50);
        let token = self.stage.token();
        let key = is_one_wish.then(|| format!("key {token}"));
        let is_right = dice.chance(80);
        let answer = Answer { step_id, suspension_id, is_right, is_about_compensation, token, key };
        let copy = |_| {
            let token = if is_one_wish { token } else { self.stage.token() };
            let (target, answer) = (target.clone(), Answer { token, ..answer.clone() });
            if by_inbox { Request::Answer(target, answer) } else { Request::Resume(target, answer) }
        };
        (0..copies).map(copy).collect()
    }

    /// Returns answers to an ask of a call.
    pub(crate) fn approve(&self, dice: &mut Dice) -> Vec<Request> {
        let open = approvals::open(&self.stage);
        if open.is_empty() {
            return Vec::new();
        }
        let ask = dice.pick(&open);
        let answers = 0..copies(dice);
        answers.map(|_| self.approval(&ask, dice.chance(70))).collect()
    }

    fn approval(&self, ask: &Arc<str>, approved: bool) -> Request {
        Request::Approve(Arc::clone(ask), approved, self.stage.token())
    }

    /// Returns a request about a random execution.
    pub(crate) fn about(
        &mut self,
        dice: &mut Dice,
        request: impl FnOnce(Target) -> Request,
    ) -> Vec<Request> {
        self.pick_target(dice).map(request).into_iter().collect()
    }

    /// Returns an execution, mostly that of the last request.
    pub(crate) fn pick_target(&mut self, dice: &mut Dice) -> Option<Target> {
        if dice.chance(60) && self.last.is_some() {
            return self.last.clone();
        }
        let all = self.stage.executions();
        let open: Vec<&Projection> = all.iter().filter(|it| !it.status.is_terminal()).collect();
        let found = match (open.is_empty(), all.is_empty()) {
            (_, true) => return None,
            (true, false) => dice.pick(&all),
            (false, false) => Projection::clone(dice.pick(&open)),
        };
        self.last = Some(target(&found.header.workflow_id, &found.header.id));
        self.last.clone()
    }

    /// Returns answers to all suspensions that wait for callers, or `None` if everything has ended.
    pub(crate) fn answers(&self) -> Option<Vec<Request>> {
        let mut open = self.stage.executions();
        open.retain(|it| !it.status.is_terminal());
        let is_asked = |it: &&Projection| {
            let is_asked = it.suspension.as_ref().is_none_or(|it| !waits_for_generation(it));
            // a child that its parent no longer needs asks alone when it compensates
            let is_alone = it.suspension.as_ref().is_some_and(is_of_compensation);
            let asks = it.header.parent.is_none() || is_alone;
            it.status == Status::Suspended && asks && is_asked
        };
        let answers = open.iter().filter(is_asked).map(|found| {
            let target = target(&found.header.workflow_id, &found.header.id);
            let token = self.stage.token();
            // several steps may wait; they are answered one by one
            let step_id = found.suspension.as_ref().map(|it| it.path.to_string());
            let is_about_compensation = found.suspension.as_ref().is_some_and(is_of_compensation);
            let (suspension_id, key) = (None, None);
            let is_right = true;
            let answer =
                Answer { step_id, suspension_id, is_right, is_about_compensation, token, key };
            Request::Resume(target, answer)
        });
        let asks = approvals::open(&self.stage);
        let approvals = asks.iter().map(|ask| self.approval(ask, true));
        (!open.is_empty()).then(|| answers.chain(approvals).collect())
    }
}

/// Returns true if a step waits for answers to its generation.
fn waits_for_generation(suspension: &Suspension) -> bool {
    suspension.payload.as_ref().is_some_and(|payload| payload["generationId"].is_string())
}

/// Returns true if a compensation has failed and asks, here or in a child.
fn is_of_compensation(suspension: &Arc<Suspension>) -> bool {
    suspension.payload.as_ref().is_some_and(|payload| payload["attempts"].is_u64())
}

fn copies(dice: &mut Dice) -> u64 {
    if dice.chance(20) { 2 } else { 1 }
}
