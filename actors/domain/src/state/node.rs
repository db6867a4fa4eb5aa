//! Nodes: one per step that has come to life.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::failure::{AttemptError, ErrorClass};
use crate::ids::ExecutionId;
use crate::plan::{Step, Work};
use crate::principal::Principal;
use crate::state::lanes::Lanes;
use crate::stored::is_zero;
use crate::stored::present;
use crate::time::Timestamp;

/// The nodes of a block (or of the workflow itself), one per step begun, in order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sequence {
    /// `data` of the first step.
    pub data: Arc<Value>,
    pub nodes: Vec<Node>,
}

/// A step of an execution.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Node {
    pub phase: Phase,
    /// `data` of the step.
    pub input: Arc<Value>,
    /// Attempts begun.
    pub attempt: u32,
    /// Attempts that failed by themselves.
    pub failures: u32,
    /// Attempts cut off by a crash.
    pub interruptions: u32,
    /// What the resume brought. `null` is an answer too, and stays one when the state is kept.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub resume: Option<Arc<Value>>,
    /// Who brought it, and when.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resumed: Option<Box<Resumed>>,
    /// How often it has asked for a resume.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub asked: u32,
    pub started_at: Option<Timestamp>,
    pub attempt_started_at: Timestamp,
    /// When the node came to stand where it stands.
    #[serde(default)]
    pub phase_since: Timestamp,
    /// Attempts after which another one followed: the newest ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<AttemptError>,
    /// Events were durable up to here when the current attempt may begin its work.
    pub since_seq: u64,
    pub ended_at: Option<Timestamp>,
    /// Position among all facts of the one that ended the node.
    pub ended_order: u64,
    /// The lanes of a container: one per block, or one per iteration begun.
    pub branches: Vec<Sequence>,
    /// What is known of the lanes, once a container has begun.
    #[serde(skip)]
    pub lanes: Option<Box<Lanes>>,
    /// What an andForEach step goes over.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub items: Vec<Arc<Value>>,
    /// The block that an andBranch step runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chosen: Option<usize>,
    /// Execution started by the current attempt of an andWorkflow step.
    pub child: Option<Child>,
}

/// A resume that a node took.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Resumed {
    pub at: Timestamp,
    /// None when a deadline answered, and where it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Arc<Principal>>,
    /// Whether its deadline passed and the definition answered.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_deadline: bool,
    /// Of the suspension that it answered; None where it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<Arc<str>>,
}

/// The execution that an andWorkflow step waits for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Child {
    pub id: ExecutionId,
    pub workflow: Arc<str>,
    pub input: Arc<Value>,
    /// Number of the newest event of the child that this execution knows.
    pub seq: u64,
    /// When the child last went on after it had asked, and who answered, as far as this execution
    /// has heard of it. What was answered is in the child's own record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resumed: Option<Box<Resumed>>,
}

/// Where a node stands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Phase {
    /// Resumed; its attempt begins as soon as nothing holds it.
    Ready,
    Running,
    Waiting(Box<Wait>),
    /// `retry`: the pause before another attempt; else the step is a sleep.
    Sleeping {
        until: Timestamp,
        fired: bool,
        retry: bool,
    },
    Completed {
        output: Arc<Value>,
    },
    /// `output`: the flow goes on with it all the same.
    Failed {
        error: Arc<str>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        class: Option<ErrorClass>,
        #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
        output: Option<Arc<Value>>,
    },
    Skipped,
    Cancelled,
}

/// A wait for a resume.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Wait {
    /// Of the suspension.
    pub id: Arc<str>,
    pub reason: Arc<str>,
    pub payload: Option<Arc<Value>>,
    pub since: Timestamp,
    /// Number of the event that told of it.
    #[serde(default)]
    pub seq: u64,
    pub deadline: Option<Timestamp>,
    /// The deadline has passed.
    pub fired: bool,
}

/// What a finished node or sequence means for what comes after it.
#[derive(Debug, Clone, PartialEq)]
pub enum Settled {
    Passed { output: Arc<Value>, order: u64 },
    Failed { error: Arc<str>, class: Option<ErrorClass>, step_id: Arc<str>, order: u64 },
}

impl Settled {
    /// Position among all facts.
    pub fn order(&self) -> u64 {
        match self {
            Self::Passed { order, .. } | Self::Failed { order, .. } => *order,
        }
    }
}

impl Sequence {
    pub fn new(data: Arc<Value>) -> Self {
        Self { data, nodes: Vec::new() }
    }

    /// `data` of the step at this index.
    pub fn data_before(&self, index: usize) -> Arc<Value> {
        let before = index.checked_sub(1).and_then(|before| self.nodes.get(before));
        before.and_then(Node::output).unwrap_or_else(|| Arc::clone(&self.data))
    }

    /// How the sequence ended, if it has.
    pub fn settled(&self, steps: &[Step]) -> Option<Settled> {
        let node = self.nodes.last()?;
        let step = steps.get(self.nodes.len() - 1)?;
        match node.settled(step)? {
            passed @ Settled::Passed { .. } => (self.nodes.len() == steps.len()).then_some(passed),
            failed @ Settled::Failed { .. } => Some(failed),
        }
    }

    /// Whether nothing follows in it: it has settled, or was cancelled.
    pub fn is_over(&self, steps: &[Step]) -> bool {
        let Some(last) = self.nodes.last() else { return false };
        if last.is_live() {
            return false;
        }
        last.output().is_none() || self.nodes.len() == steps.len()
    }

    /// Visits every node that has not ended, parents before children.
    pub fn each_live(&self, visit: &mut dyn FnMut(&Node)) {
        if let Some(node) = self.nodes.last().filter(|node| node.is_live()) {
            visit(node);
            for (_, lane) in node.live_lanes() {
                lane.each_live(visit);
            }
        }
    }
}

impl Node {
    pub fn new(input: Arc<Value>, at: Timestamp) -> Self {
        Self {
            phase: Phase::Ready,
            input,
            attempt: 0,
            failures: 0,
            interruptions: 0,
            resume: None,
            resumed: None,
            asked: 0,
            started_at: None,
            attempt_started_at: at,
            phase_since: at,
            errors: Vec::new(),
            since_seq: 0,
            ended_at: None,
            ended_order: 0,
            branches: Vec::new(),
            lanes: None,
            items: Vec::new(),
            chosen: None,
            child: None,
        }
    }

    /// A copy without what is not stored.
    pub fn to_be_stored(&self) -> Self {
        let stored = |sequence: &Sequence| Sequence {
            data: Arc::clone(&sequence.data),
            nodes: sequence.nodes.iter().map(Self::to_be_stored).collect(),
        };
        let branches = self.branches.iter().map(stored).collect();
        Self { branches, lanes: None, ..self.clone() }
    }

    /// Whether the node has not ended.
    pub fn is_live(&self) -> bool {
        match self.phase {
            Phase::Ready | Phase::Running | Phase::Waiting(_) | Phase::Sleeping { .. } => true,
            Phase::Completed { .. } | Phase::Failed { .. } | Phase::Skipped | Phase::Cancelled => {
                false
            }
        }
    }

    /// What the next step gets as `data`, once this node has let the flow pass.
    pub fn output(&self) -> Option<Arc<Value>> {
        match &self.phase {
            Phase::Completed { output } | Phase::Failed { output: Some(output), .. } => {
                Some(Arc::clone(output))
            }
            Phase::Skipped => Some(Arc::clone(&self.input)),
            Phase::Failed { output: None, .. }
            | Phase::Ready
            | Phase::Running
            | Phase::Waiting(_)
            | Phase::Sleeping { .. }
            | Phase::Cancelled => None,
        }
    }

    /// Whether the step gave an output. What a skipped step lets pass is none: it did not run.
    pub fn has_own_output(&self) -> bool {
        matches!(self.phase, Phase::Completed { .. } | Phase::Failed { output: Some(_), .. })
    }

    /// How the node ended, if it has; a cancelled node has no say.
    pub fn settled(&self, step: &Step) -> Option<Settled> {
        if let Some(output) = self.output() {
            return Some(Settled::Passed { output, order: self.ended_order });
        }
        let Phase::Failed { error, class, .. } = &self.phase else { return None };
        let innermost = self.failed_branch(step);
        Some(Settled::Failed {
            error: Arc::clone(error),
            class: *class,
            step_id: innermost.unwrap_or_else(|| Arc::clone(&step.id)),
            order: self.ended_order,
        })
    }

    /// `data` of the next iteration.
    pub fn next_iteration_data(&self) -> Option<Arc<Value>> {
        self.iteration_data(self.branches.len())
    }

    /// `data` of an iteration: its item, or what the round before gave.
    pub fn iteration_data(&self, index: usize) -> Option<Arc<Value>> {
        if !self.items.is_empty() {
            return self.items.get(index).cloned();
        }
        match index.checked_sub(1) {
            None => Some(Arc::clone(&self.input)),
            Some(before) => self.branches.get(before)?.nodes.last()?.output(),
        }
    }

    /// Makes the lane of the next iteration.
    pub(super) fn begin_iteration(&mut self) -> Option<()> {
        let data = self.next_iteration_data()?;
        let lanes = self.lanes.as_mut()?;
        lanes.live.push(self.branches.len());
        self.branches.push(Sequence::new(data));
        Some(())
    }

    /// The lanes that have not ended, in order.
    pub fn live_lanes(&self) -> impl Iterator<Item = (usize, &Sequence)> {
        let live = self.lanes.iter().flat_map(|lanes| &lanes.live);
        live.filter_map(|lane| Some((*lane, self.branches.get(*lane)?)))
    }

    /// How the lane ended that failed first.
    pub fn first_failure(&self, step: &Step) -> Option<Settled> {
        self.end_of_lane(step, self.lanes.as_ref()?.first_failed?)
    }

    /// How the lane ended that completed first.
    pub fn first_passage(&self, step: &Step) -> Option<Settled> {
        self.end_of_lane(step, self.lanes.as_ref()?.first_passed?)
    }

    /// How a lane ended, if it has.
    pub fn end_of_lane(&self, step: &Step, lane: usize) -> Option<Settled> {
        self.branches.get(lane)?.settled(&step.work.branch_of(lane)?.steps)
    }

    /// The lane whose failure failed this container.
    pub fn failed_lane(&self, step: &Step) -> Option<usize> {
        // A race that somebody has won does not fail by its losers.
        if matches!(step.work, Work::Race(_)) && self.first_passage(step).is_some() {
            return None;
        }
        self.lanes.as_ref()?.first_failed
    }

    /// The step whose failure failed this container.
    fn failed_branch(&self, step: &Step) -> Option<Arc<str>> {
        match self.end_of_lane(step, self.failed_lane(step)?)? {
            Settled::Failed { step_id, .. } => Some(step_id),
            Settled::Passed { .. } => None,
        }
    }

    /// The suspension that it waits in, if it does.
    pub(crate) fn wait_id(&self) -> Option<Arc<str>> {
        match &self.phase {
            Phase::Waiting(wait) => Some(Arc::clone(&wait.id)),
            Phase::Ready
            | Phase::Running
            | Phase::Sleeping { .. }
            | Phase::Completed { .. }
            | Phase::Failed { .. }
            | Phase::Skipped
            | Phase::Cancelled => None,
        }
    }

    /// The time that a node waits for, unless it has come.
    pub fn armed_timer(&self) -> Option<Timestamp> {
        match &self.phase {
            Phase::Sleeping { until, fired: false, .. } => Some(*until),
            // The question of a child ends in the child, which tells of it.
            Phase::Waiting(wait) if !wait.fired && self.child.is_none() => wait.deadline,
            Phase::Waiting(_)
            | Phase::Sleeping { .. }
            | Phase::Ready
            | Phase::Running
            | Phase::Completed { .. }
            | Phase::Failed { .. }
            | Phase::Skipped
            | Phase::Cancelled => None,
        }
    }
}
