//! Creation of a machine: by the start of an execution, or from its record.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::fact::{Fact, Recorded, Start};
use crate::ids::ExecutionId;
use crate::machine::{Batch, Machine, Moment};
use crate::nesting::depth_of;
use crate::plan::Plan;
use crate::state::{MisplacedFact, State};

impl Machine {
    /// Starts an execution and runs it ahead.
    pub fn start(
        plan: Arc<Plan>,
        id: ExecutionId,
        start: Box<Start>,
        moment: &Moment<'_>,
    ) -> (Self, Batch) {
        let by = start.replayed.as_ref().and_then(|replayed| replayed.by.clone());
        let fact = Fact::WorkflowStarted(start.clone());
        let first = Recorded { seq: 1, at: moment.now, fact, by };
        let mut state = State::begin(id, start, moment.now);
        state.index(&plan);
        let is_copy = state.start.replayed.is_some() || state.start.reversal.is_some();
        let mut machine = Self::around(plan, state);
        // The values of the other execution may be older than the limit.
        if is_copy {
            machine.input_depth = depth_of(&machine.state.start.input);
        }
        let mut batch = Batch { facts: vec![first], ..Batch::default() };
        machine.run_ahead(0, moment, &mut batch);
        (machine, batch)
    }

    /// Rebuilds an execution from all its facts.
    pub fn replay(
        plan: Arc<Plan>,
        id: ExecutionId,
        facts: &[Recorded],
    ) -> Result<Self, MisplacedFact> {
        let misplaced = || MisplacedFact { seq: 1, path: String::new() };
        let (first, rest) = facts.split_first().ok_or_else(misplaced)?;
        let Fact::WorkflowStarted(start) = &first.fact else { return Err(misplaced()) };
        Self::restore(plan, State::begin(id, start.clone(), first.at), rest)
    }

    /// Rebuilds an execution from a snapshot and the facts after it.
    pub fn restore(
        plan: Arc<Plan>,
        mut state: State,
        facts: &[Recorded],
    ) -> Result<Self, MisplacedFact> {
        state.index(&plan);
        for recorded in facts {
            state.apply(&plan, recorded)?;
        }
        let mut machine = Self::around(plan, state);
        machine.input_depth = depth_of(&machine.state.start.input);
        machine.unrecovered = machine.has_interrupted_bodies();
        Ok(machine)
    }

    fn around(plan: Arc<Plan>, state: State) -> Self {
        let start = &state.start;
        let user = start.context.get("user").map(|user| Arc::new(user.clone()));
        Self {
            plan,
            state,
            user,
            has_more: false,
            is_costly: false,
            unrecovered: false,
            input_depth: 0,
            last_reported: BTreeMap::new(),
        }
    }
}
