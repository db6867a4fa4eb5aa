//! Nodes: one for each step that has begun.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::assignment::AskRules;
use crate::definition::Container;
use crate::failure::{AttemptError, ErrorClass};
use crate::ids::{ExecutionId, PathHead};
use crate::note::CallStage;
use crate::plan::Step;
use crate::principal::Principal;
use crate::question::{Given, Question, Questions};
use crate::state::lanes::Lanes;
use crate::stored::is_zero;
use crate::stored::present;
use crate::time::Timestamp;

/// Nodes of a block or of the workflow, one for each step that has begun, in order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sequence {
    /// `data` of the first step.
    pub data: Arc<Value>,
    pub nodes: Vec<Node>,
}

/// State of a step of an execution.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Node {
    pub phase: Phase,
    /// `data` of the step.
    pub input: Arc<Value>,
    /// Number of attempts started.
    pub attempt: u32,
    /// Number of failed attempts, without interrupted ones.
    pub failures: u32,
    /// Number of attempts that a crash interrupted, since one that followed something elsewhere.
    pub interruptions: u32,
    /// Data of the resume. `null` is data too, also in a snapshot.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub resume: Option<Arc<Value>>,
    /// Time and principal of the resume.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resumed: Option<Box<Resumed>>,
    /// Questions of the tool of the step, and their answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub questions: Option<Box<Questions>>,
    /// Note of the tool of the step since it last failed or asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub noted: Option<Arc<Value>>,
    /// Number of suspensions so far.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub asked: u32,
    pub started_at: Option<Timestamp>,
    pub attempt_started_at: Timestamp,
    /// Start of the phase.
    #[serde(default)]
    pub phase_since: Timestamp,
    /// The newest failed attempts that were followed by another one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<AttemptError>,
    /// Number of the event that must be durable before the current attempt may start its work.
    pub since_seq: u64,
    pub ended_at: Option<Timestamp>,
    /// Position of the fact that ended the node.
    pub ended_order: u64,
    /// Lanes of a container: one for each block, or one for each iteration that has begun.
    pub branches: Vec<Sequence>,
    /// Index of the lanes, once a container has begun.
    #[serde(skip)]
    pub lanes: Option<Box<Lanes>>,
    /// Items of an andForEach step.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub items: Vec<Arc<Value>>,
    /// The block that an andBranch step runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chosen: Option<usize>,
    /// Execution started by the current attempt of an andWorkflow step.
    pub child: Option<Child>,
}

/// A resume of a node.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Resumed {
    pub at: Timestamp,
    /// `None` if the deadline resumed it, or if the principal is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Arc<Principal>>,
    /// True if the deadline passed and `on_timeout` of the definition supplied the data.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_deadline: bool,
    /// Id of the suspension that it ended; `None` if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<Arc<str>>,
}

/// The execution that an andWorkflow step waits for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Child {
    pub id: ExecutionId,
    pub workflow: Arc<str>,
    pub input: Arc<Value>,
    /// Number of the newest recorded event of the child.
    pub seq: u64,
    /// The newest resume of the child that was reported here. The data is in the child's own
    /// record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resumed: Option<Box<Resumed>>,
    /// True if it has completed, with steps that can be compensated.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub compensable: bool,
}

/// Phase of a node.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Phase {
    /// Resumed or released; the next attempt begins once nothing prevents it.
    Ready,
    Running,
    Waiting(Box<Wait>),
    /// `retry`: the delay before another attempt; otherwise the step is a sleep.
    Sleeping {
        until: Timestamp,
        fired: bool,
        retry: bool,
    },
    Completed {
        output: Arc<Value>,
    },
    /// `output`: the value with which the flow continues in spite of the failure.
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

/// Suspension of a node.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Wait {
    /// Id of the suspension.
    pub id: Arc<str>,
    pub reason: Arc<str>,
    pub payload: Option<Arc<Value>>,
    pub since: Timestamp,
    /// Number of the event that published it.
    #[serde(default)]
    pub seq: u64,
    pub deadline: Option<Timestamp>,
    /// The deadline has passed.
    pub fired: bool,
    /// Rules of the ask when it began, if the step has any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ask: Option<Arc<AskRules>>,
}

/// End of a node or a sequence, as its container sees it.
#[derive(Debug, Clone, PartialEq)]
pub enum Settled {
    Passed { output: Arc<Value>, order: u64 },
    Failed { error: Arc<str>, class: Option<ErrorClass>, step_id: Arc<str>, order: u64 },
}

impl Settled {
    /// Returns the position of the ending fact.
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

    /// Returns `data` of the step at this index.
    pub fn data_before(&self, index: usize) -> Arc<Value> {
        let before = index.checked_sub(1).and_then(|before| self.nodes.get(before));
        before.and_then(Node::output).unwrap_or_else(|| Arc::clone(&self.data))
    }

    /// Returns the node at a path, with its step.
    pub fn node_at<'a>(&'a self, steps: &'a [Step], path: &str) -> Option<(&'a Step, &'a Node)> {
        let (mut sequence, mut steps, mut path) = (self, steps, path);
        loop {
            let PathHead { step_id, inner } = PathHead::of(path)?;
            let index = steps.iter().position(|step| &*step.id == step_id)?;
            let (step, node) = (steps.get(index)?, sequence.nodes.get(index)?);
            let Some((lane, rest)) = inner else { return Some((step, node)) };
            let lane = step.work.lane_index(lane)?;
            steps = &step.work.branch_of(lane)?.steps;
            sequence = node.branches.get(lane)?;
            path = rest;
        }
    }

    /// Returns the end of the sequence; `None` if it has not ended, or was cancelled.
    pub fn settled(&self, steps: &[Step]) -> Option<Settled> {
        let node = self.nodes.last()?;
        let step = steps.get(self.nodes.len() - 1)?;
        match node.settled(step)? {
            passed @ Settled::Passed { .. } => (self.nodes.len() == steps.len()).then_some(passed),
            failed @ Settled::Failed { .. } => Some(failed),
        }
    }

    /// Returns true if no step of it follows, also if it was cancelled.
    pub fn has_ended(&self, steps: &[Step]) -> bool {
        let Some(last) = self.nodes.last() else { return false };
        if last.is_live() {
            return false;
        }
        last.output().is_none() || self.nodes.len() == steps.len()
    }

    /// Visits every live node, parents before children.
    pub fn each_live(&self, visit: &mut dyn FnMut(&Node)) {
        if let Some(node) = self.nodes.last().filter(|node| node.is_live()) {
            visit(node);
            for (_, lane) in node.live_lanes() {
                lane.each_live(visit);
            }
        }
    }
}

/// Milliseconds after which an attempt that follows something elsewhere is not suspected of the crash
/// that interrupted it.
const FOLLOWED_MS: i64 = 60_000;
/// Attempts after which it is suspected nevertheless.
const FOLLOWED_ATTEMPTS_MAX: u32 = 100;

impl Node {
    /// Returns the number of interruptions by a crash, with one that is noticed at this time. An attempt
    /// that only waited for its place has caused none; one that follows something elsewhere may last for
    /// days, with several crashes.
    pub(crate) fn interruptions_with(&self, at: Timestamp) -> u32 {
        let lasted_ms = at.0.saturating_sub(self.attempt_started_at.0);
        let is_suspect = lasted_ms < FOLLOWED_MS || self.attempt >= FOLLOWED_ATTEMPTS_MAX;
        match CallStage::of(self.noted.as_deref()) {
            CallStage::WaitsForPlace => self.interruptions,
            CallStage::Follows if !is_suspect => 0,
            CallStage::Works | CallStage::Follows | CallStage::Asks => self.interruptions + 1,
        }
    }

    pub fn new(input: Arc<Value>, at: Timestamp) -> Self {
        Self {
            phase: Phase::Ready,
            input,
            attempt: 0,
            failures: 0,
            interruptions: 0,
            resume: None,
            resumed: None,
            questions: None,
            noted: None,
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

    /// Returns what resumed the step, if anything has.
    pub(crate) fn given(&self) -> Option<Given> {
        let data = Arc::clone(self.resume.as_ref()?);
        Some(Given { data, by: self.resumed.as_ref().and_then(|resumed| resumed.by.clone()) })
    }

    /// Returns the answer to the suspension of the step itself, not to a question of its tool.
    pub(crate) fn own_answer(&self) -> Option<Given> {
        match &self.questions {
            Some(questions) => questions.before.clone(),
            None => self.given(),
        }
    }

    /// Returns the question of the step's tool, if it waits for the answer.
    pub fn question(&self) -> Option<&Arc<Question>> {
        let Phase::Waiting(_) = &self.phase else { return None };
        let questions = self.questions.as_ref().filter(|it| it.is_open)?;
        Some(&questions.newest)
    }

    /// Returns a copy without the fields that are not stored.
    pub fn to_be_stored(&self) -> Self {
        let stored = |sequence: &Sequence| Sequence {
            data: Arc::clone(&sequence.data),
            nodes: sequence.nodes.iter().map(Self::to_be_stored).collect(),
        };
        let branches = self.branches.iter().map(stored).collect();
        Self { branches, lanes: None, ..self.clone() }
    }

    /// Returns true if the node has not ended.
    pub fn is_live(&self) -> bool {
        match self.phase {
            Phase::Ready | Phase::Running | Phase::Waiting(_) | Phase::Sleeping { .. } => true,
            Phase::Completed { .. } | Phase::Failed { .. } | Phase::Skipped | Phase::Cancelled => {
                false
            }
        }
    }

    /// Returns the suspension that the node waits in.
    pub fn wait(&self) -> Option<&Wait> {
        if let Phase::Waiting(wait) = &self.phase { Some(wait) } else { None }
    }

    pub(crate) fn wait_mut(&mut self) -> Option<&mut Wait> {
        if let Phase::Waiting(wait) = &mut self.phase { Some(wait) } else { None }
    }

    /// Returns the error of a failed node and its class.
    pub fn failure(&self) -> Option<(&Arc<str>, Option<ErrorClass>)> {
        let Phase::Failed { error, class, .. } = &self.phase else { return None };
        Some((error, *class))
    }

    /// Returns `data` of the next step, once this node has ended and the flow continues.
    pub fn output(&self) -> Option<Arc<Value>> {
        if let Phase::Completed { output } | Phase::Failed { output: Some(output), .. } =
            &self.phase
        {
            return Some(Arc::clone(output));
        }
        (self.phase == Phase::Skipped).then(|| Arc::clone(&self.input))
    }

    /// Returns true if the step produced an output. A skipped step did not: its input passes
    /// through.
    pub fn has_own_output(&self) -> bool {
        matches!(self.phase, Phase::Completed { .. } | Phase::Failed { output: Some(_), .. })
    }

    /// Returns the end of the node; `None` if it has not ended, or was cancelled.
    pub fn settled(&self, step: &Step) -> Option<Settled> {
        if let Some(output) = self.output() {
            return Some(Settled::Passed { output, order: self.ended_order });
        }
        let (error, class) = self.failure()?;
        let innermost = self.failed_branch(step);
        Some(Settled::Failed {
            error: Arc::clone(error),
            class,
            step_id: innermost.unwrap_or_else(|| Arc::clone(&step.id)),
            order: self.ended_order,
        })
    }

    /// Returns `data` of the next iteration.
    pub fn next_iteration_data(&self) -> Option<Arc<Value>> {
        self.iteration_data(self.branches.len())
    }

    /// Returns `data` of an iteration: its item, or the output of the iteration before.
    pub fn iteration_data(&self, index: usize) -> Option<Arc<Value>> {
        if !self.items.is_empty() {
            return self.items.get(index).cloned();
        }
        match index.checked_sub(1) {
            None => Some(Arc::clone(&self.input)),
            Some(before) => self.branches.get(before)?.nodes.last()?.output(),
        }
    }

    /// Adds the lane of the next iteration.
    pub(super) fn begin_iteration(&mut self) -> Option<()> {
        let data = self.next_iteration_data()?;
        let lanes = self.lanes.as_mut()?;
        lanes.live.push(self.branches.len());
        self.branches.push(Sequence::new(data));
        Some(())
    }

    /// Returns the lanes that have not ended, in order.
    pub fn live_lanes(&self) -> impl Iterator<Item = (usize, &Sequence)> {
        let live = self.lanes.iter().flat_map(|lanes| &lanes.live);
        live.filter_map(|lane| Some((*lane, self.branches.get(*lane)?)))
    }

    /// Returns the end of the lane that failed first.
    pub fn first_failure(&self, step: &Step) -> Option<Settled> {
        self.end_of_lane(step, self.lanes.as_ref()?.first_failed?)
    }

    /// Returns the end of the lane that completed first.
    pub fn first_passage(&self, step: &Step) -> Option<Settled> {
        self.end_of_lane(step, self.lanes.as_ref()?.first_passed?)
    }

    /// Returns the end of a lane; `None` if it has not ended, or was cancelled.
    pub fn end_of_lane(&self, step: &Step, lane: usize) -> Option<Settled> {
        self.branches.get(lane)?.settled(&step.work.branch_of(lane)?.steps)
    }

    /// Returns the lane whose failure failed this container.
    pub fn failed_lane(&self, step: &Step) -> Option<usize> {
        // A race with a winner does not fail because of its losers.
        let has_winner = step.work.container().is_some_and(Container::has_winner);
        if has_winner && self.first_passage(step).is_some() {
            return None;
        }
        self.lanes.as_ref()?.first_failed
    }

    /// Returns the step whose failure failed this container.
    fn failed_branch(&self, step: &Step) -> Option<Arc<str>> {
        match self.end_of_lane(step, self.failed_lane(step)?)? {
            Settled::Failed { step_id, .. } => Some(step_id),
            Settled::Passed { .. } => None,
        }
    }

    /// Returns the id of the suspension that the node waits in.
    pub(crate) fn wait_id(&self) -> Option<Arc<str>> {
        self.wait().map(|wait| Arc::clone(&wait.id))
    }

    /// Returns the time of the node's timer, unless it has fired.
    pub fn armed_timer(&self) -> Option<Timestamp> {
        if let Phase::Sleeping { until, fired: false, .. } = self.phase {
            return Some(until);
        }
        // The deadline of a child fires in the child, which then reports.
        self.wait().filter(|wait| !wait.fired && self.child.is_none())?.deadline
    }
}
