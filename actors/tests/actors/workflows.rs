//! Definitions and functions for the tests.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use greenroom_actors::agent::AgentDefinition;
use greenroom_actors::domain::definition::{
    Block, Body, Mapping, OnTimeout, RetryPolicy, StepDefinition, StepKind, SuspendRule,
    WorkflowDefinition,
};
use greenroom_actors::function::{StepContext, StepError, StepFunction, StepOutcome};
use greenroom_actors::ports::model::LanguageModel;
use greenroom_actors::registry::Registry;
use greenroom_actors::requests::{ExecutionOutcome, ResumeExecution, StartError, StartExecution};
use greenroom_actors::testkit::World;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

pub(crate) fn workflow(id: &str, steps: Vec<StepDefinition>) -> WorkflowDefinition {
    WorkflowDefinition::new(id, steps)
}

pub(crate) fn step(id: &str, kind: StepKind) -> StepDefinition {
    StepDefinition::new(id, kind)
}

pub(crate) fn map(id: &str, value: Value) -> StepDefinition {
    step(id, StepKind::Then { body: Body::Map(Mapping(value)) })
}

pub(crate) fn run(id: &str, function: &str) -> StepDefinition {
    let body = Body::Run { function: function.to_owned(), version: None };
    step(id, StepKind::Then { body })
}

pub(crate) fn sleep(id: &str, ms: u64) -> StepDefinition {
    step(id, StepKind::Sleep { duration_ms: ms })
}

pub(crate) fn child(id: &str, workflow: &str) -> StepDefinition {
    step(id, StepKind::Workflow { workflow: workflow.to_owned(), input: None })
}

/// Returns a loop that runs one step for each item, all concurrently.
pub(crate) fn for_each(id: &str, items: &str, inside: StepDefinition) -> StepDefinition {
    let block = Block { name: "body".to_owned(), steps: vec![inside] };
    let items = Mapping(Value::from(items));
    step(id, StepKind::ForEach { items, block, concurrency: 1000 })
}

pub(crate) fn race(id: &str, blocks: Vec<(&str, Vec<StepDefinition>)>) -> StepDefinition {
    step(id, StepKind::Race { blocks: named(blocks) })
}

pub(crate) fn all(id: &str, blocks: Vec<(&str, Vec<StepDefinition>)>) -> StepDefinition {
    step(id, StepKind::All { blocks: named(blocks) })
}

fn named(blocks: Vec<(&str, Vec<StepDefinition>)>) -> Vec<Block> {
    blocks.into_iter().map(|(name, steps)| Block { name: name.to_owned(), steps }).collect()
}

/// Returns a step that suspends and outputs the data of its resume.
pub(crate) fn ask(id: &str) -> StepDefinition {
    StepDefinition {
        suspend: Some(SuspendRule::default()),
        resume_schema: Some(json!({ "type": "object", "required": ["approved"] })),
        ..map(id, json!("resume"))
    }
}

pub(crate) fn ask_until(id: &str, deadline_ms: u64) -> StepDefinition {
    let on_timeout = OnTimeout::Resume(Mapping(json!({ "approved": "false" })));
    let rule = SuspendRule { deadline_ms: Some(deadline_ms), on_timeout, ..Default::default() };
    StepDefinition { suspend: Some(rule), ..ask(id) }
}

pub(crate) fn retried(step: StepDefinition, attempts: u32, delay_ms: u64) -> StepDefinition {
    let policy = RetryPolicy { attempts, delay_ms, ..RetryPolicy::default() };
    StepDefinition { retry: Some(policy), ..step }
}

/// Runs an execution beside the test.
pub(crate) fn spawn(
    world: &World,
    request: StartExecution,
) -> JoinHandle<Result<ExecutionOutcome, StartError>> {
    let runtime = world.runtime.clone();
    actix::spawn(async move { runtime.execute(request).await })
}

pub(crate) fn resume(data: Value) -> ResumeExecution {
    ResumeExecution { data, ..Default::default() }
}

/// Adds an agent with this model.
pub(crate) fn add_agent(
    registry: &mut Registry,
    id: &str,
    model: impl LanguageModel + 'static,
    agent: AgentDefinition,
) {
    let agent = AgentDefinition { id: id.to_owned(), model: "scripted".into(), ..agent };
    registry.models.insert("scripted".to_owned(), Arc::new(model));
    registry.agents.insert(id.to_owned(), Arc::new(agent));
}

/// Counts calls of functions.
#[derive(Clone, Default)]
pub(crate) struct Calls(Arc<AtomicUsize>);

impl Calls {
    pub(crate) fn add_one(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }

    pub(crate) fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

pub(crate) fn function<F, R>(body: F) -> StepFunction
where
    F: Fn(StepContext) -> R + Send + Sync + 'static,
    R: Future<Output = Result<StepOutcome, StepError>> + Send + 'static,
{
    Arc::new(move |context| Box::pin(body(context)))
}

/// Adds functions: `slow` takes 100 ms, `hang` never ends, `boom` panics, `flaky` fails in its
/// first two attempts, `asks` suspends. All count their calls.
pub(crate) fn with_functions(registry: Registry, calls: &Calls) -> Registry {
    let mut registry = registry;
    let mut add = |name: &str, body: StepFunction| {
        let calls = calls.clone();
        let counted: StepFunction = Arc::new(move |context| {
            calls.add_one();
            body(context)
        });
        registry.functions.insert(name.to_owned(), counted);
    };
    add(
        "slow",
        function(|_| async {
            tokio::time::sleep(Duration::from_millis(100)).await;
            Ok(json!("slow").into())
        }),
    );
    add("hang", function(|_| std::future::pending()));
    add("boom", function(|_| async { panic!("a defect in the step") }));
    add(
        "flaky",
        function(|context| async move {
            if context.attempt < 3 { Err("not yet".into()) } else { Ok(json!("done").into()) }
        }),
    );
    add(
        "asks_much",
        function(|_| async {
            let payload = Some(json!("x".repeat(9 << 10)));
            Ok(StepOutcome::Suspended { reason: None, payload })
        }),
    );
    add(
        "asks",
        function(|context| async move {
            match context.resume {
                None => Ok(StepOutcome::Suspended {
                    reason: Some("Which one?".to_owned()),
                    payload: Some(json!([1, 2])),
                }),
                Some(answer) => Ok(Value::clone(&answer).into()),
            }
        }),
    );
    registry
}
