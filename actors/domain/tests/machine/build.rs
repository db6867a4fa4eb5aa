//! Short constructors of definitions. A function has the name of the step that calls it.

use greenroom_domain::definition::{
    Block, Body, Case, Compensation, Mapping, OnError, OnTimeout, RetryPolicy, StepDefinition,
    StepKind, SuspendRule, WorkflowDefinition,
};
use serde_json::Value;

pub(crate) fn workflow(steps: Vec<StepDefinition>) -> WorkflowDefinition {
    WorkflowDefinition { name: "Order".to_owned(), ..WorkflowDefinition::new("order", steps) }
}

fn function(id: &str) -> Body {
    Body::Run { function: id.to_owned(), version: None }
}

fn blocks<const N: usize>(named: [(&str, Vec<StepDefinition>); N]) -> Vec<Block> {
    named.into_iter().map(|(name, steps)| Block { name: name.to_owned(), steps }).collect()
}

/// Returns a step that the machine evaluates itself.
pub(crate) fn map(id: &str, source: impl Into<Value>) -> StepDefinition {
    StepDefinition::new(id, StepKind::Then { body: Body::Map(Mapping(source.into())) })
}

/// Returns a step with this body.
pub(crate) fn body(id: &str, body: Body) -> StepDefinition {
    StepDefinition::new(id, StepKind::Then { body })
}

/// Returns a step that calls a function.
pub(crate) fn run(id: &str) -> StepDefinition {
    StepDefinition::new(id, StepKind::Then { body: function(id) })
}

pub(crate) fn tap(id: &str) -> StepDefinition {
    StepDefinition::new(id, StepKind::Tap { body: function(id) })
}

pub(crate) fn tap_map(id: &str, source: impl Into<Value>) -> StepDefinition {
    StepDefinition::new(id, StepKind::Tap { body: Body::Map(Mapping(source.into())) })
}

/// Returns an andWhen step whose block is named `then`.
pub(crate) fn when(id: &str, condition: &str, steps: Vec<StepDefinition>) -> StepDefinition {
    let block = Block { name: "then".to_owned(), steps };
    StepDefinition::new(id, StepKind::When { when: condition.to_owned(), block })
}

pub(crate) fn all<const N: usize>(
    id: &str,
    named: [(&str, Vec<StepDefinition>); N],
) -> StepDefinition {
    StepDefinition::new(id, StepKind::All { blocks: blocks(named) })
}

pub(crate) fn race<const N: usize>(
    id: &str,
    named: [(&str, Vec<StepDefinition>); N],
) -> StepDefinition {
    StepDefinition::new(id, StepKind::Race { blocks: blocks(named) })
}

/// Returns an andAll or andRace step with a variable number of blocks.
pub(crate) fn container(
    id: &str,
    is_race: bool,
    steps: Vec<Vec<StepDefinition>>,
) -> StepDefinition {
    let blocks = steps
        .into_iter()
        .enumerate()
        .map(|(index, steps)| Block { name: format!("b{index}"), steps })
        .collect();
    StepDefinition::new(
        id,
        if is_race { StepKind::Race { blocks } } else { StepKind::All { blocks } },
    )
}

pub(crate) fn agent(id: &str, prompt: Option<&str>) -> StepDefinition {
    let prompt = prompt.map(str::to_owned);
    StepDefinition::new(
        id,
        StepKind::Agent { agent: "helper".to_owned(), prompt, schema: None, options: None },
    )
}

/// Returns a step that runs the workflow `part`.
pub(crate) fn child(id: &str) -> StepDefinition {
    StepDefinition::new(id, StepKind::Workflow { workflow: "part".to_owned(), input: None })
}

pub(crate) fn child_with(id: &str, input: impl Into<Value>) -> StepDefinition {
    let input = Some(Mapping(input.into()));
    StepDefinition::new(id, StepKind::Workflow { workflow: "part".to_owned(), input })
}

pub(crate) fn sleep(id: &str, duration_ms: u64) -> StepDefinition {
    StepDefinition::new(id, StepKind::Sleep { duration_ms })
}

pub(crate) fn sleep_until(id: &str, until: &str) -> StepDefinition {
    StepDefinition::new(id, StepKind::SleepUntil { until: until.to_owned() })
}

/// Returns a compensation: a function, or the workflow `part`.
pub(crate) fn compensation(name: &str, is_child: bool, attempts: u32) -> Compensation {
    let kind = if is_child {
        StepKind::Workflow { workflow: "part".to_owned(), input: None }
    } else {
        StepKind::Then { body: function(name) }
    };
    let retry = RetryPolicy { attempts, delay_ms: 100, ..RetryPolicy::default() };
    Compensation { retry, ..Compensation::new(kind) }
}

/// Returns a step that runs its block for each item.
pub(crate) fn for_each(
    id: &str,
    items: impl Into<Value>,
    concurrency: u32,
    steps: Vec<StepDefinition>,
) -> StepDefinition {
    let items = Mapping(items.into());
    StepDefinition::new(id, StepKind::ForEach { items, block: block("body", steps), concurrency })
}

/// Returns a step whose cases run the blocks `case1`, `case2` ..., otherwise the block `default`.
pub(crate) fn branch(
    id: &str,
    cases: Vec<(&str, Vec<StepDefinition>)>,
    default: Option<Vec<StepDefinition>>,
) -> StepDefinition {
    let case = |(index, (when, steps)): (usize, (&str, _))| Case {
        when: when.to_owned(),
        block: block(&format!("case{}", index + 1), steps),
    };
    let cases = cases.into_iter().enumerate().map(case).collect();
    let default = default.map(|steps| block("default", steps));
    StepDefinition::new(id, StepKind::Branch { cases, default })
}

/// Returns an andDoUntil or andDoWhile step.
pub(crate) fn repeat(
    id: &str,
    until: bool,
    when: &str,
    max_iterations: u32,
    steps: Vec<StepDefinition>,
) -> StepDefinition {
    let (when, block) = (when.to_owned(), block("body", steps));
    StepDefinition::new(
        id,
        if until {
            StepKind::DoUntil { when, block, max_iterations }
        } else {
            StepKind::DoWhile { when, block, max_iterations }
        },
    )
}

fn block(name: &str, steps: Vec<StepDefinition>) -> Block {
    Block { name: name.to_owned(), steps }
}

/// Modifiers of a step.
pub(crate) trait Adorned: Sized {
    fn asks(self) -> Self {
        self.asking(SuspendRule::default())
    }
    fn asks_when(self, condition: &str) -> Self {
        self.asking(SuspendRule { when: Some(condition.to_owned()), ..SuspendRule::default() })
    }
    /// A suspension that fails after this many milliseconds.
    fn asks_for(self, deadline_ms: u64) -> Self {
        self.asking(SuspendRule { deadline_ms: Some(deadline_ms), ..SuspendRule::default() })
    }
    /// A suspension that its deadline resumes after this many milliseconds.
    fn asks_until(self, deadline_ms: u64, answer: impl Into<Value>) -> Self {
        self.asking(SuspendRule {
            deadline_ms: Some(deadline_ms),
            on_timeout: OnTimeout::Resume(Mapping(answer.into())),
            ..SuspendRule::default()
        })
    }
    /// Attempts 100, 200, 400 ... milliseconds apart.
    fn tries(self, attempts: u32) -> Self {
        self.retrying(RetryPolicy { attempts, delay_ms: 100, ..RetryPolicy::default() })
    }
    fn ignoring(self) -> Self {
        self.on_error(OnError::Ignore)
    }
    fn instead(self, value: impl Into<Value>) -> Self {
        self.on_error(OnError::Value(Mapping(value.into())))
    }
    fn asking(self, rule: SuspendRule) -> Self;
    fn retrying(self, policy: RetryPolicy) -> Self;
    fn on_error(self, on_error: OnError) -> Self;
    fn takes(self, schema: Value) -> Self;
    fn gives(self, schema: Value) -> Self;
    fn shows(self, schema: Value) -> Self;
    fn wants(self, schema: Value) -> Self;
    fn within(self, timeout_ms: u64) -> Self;
    /// A compensation by the function `undo`, with one attempt.
    fn undone(self) -> Self {
        self.compensated(compensation("undo", false, 1))
    }
    fn compensated(self, compensation: Compensation) -> Self;
}

impl Adorned for StepDefinition {
    fn compensated(self, compensation: Compensation) -> Self {
        Self { compensate: Some(Box::new(compensation)), ..self }
    }
    fn asking(self, rule: SuspendRule) -> Self {
        Self { suspend: Some(rule), ..self }
    }
    fn retrying(self, policy: RetryPolicy) -> Self {
        Self { retry: Some(policy), ..self }
    }
    fn on_error(self, on_error: OnError) -> Self {
        Self { on_error, ..self }
    }
    fn takes(self, schema: Value) -> Self {
        Self { input_schema: Some(schema), ..self }
    }
    fn gives(self, schema: Value) -> Self {
        Self { output_schema: Some(schema), ..self }
    }
    fn shows(self, schema: Value) -> Self {
        Self { suspend_schema: Some(schema), ..self }
    }
    fn wants(self, schema: Value) -> Self {
        Self { resume_schema: Some(schema), ..self }
    }
    fn within(self, timeout_ms: u64) -> Self {
        Self { timeout_ms: Some(timeout_ms), ..self }
    }
}
