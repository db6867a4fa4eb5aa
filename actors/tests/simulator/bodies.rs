//! Functions and model of the world: they succeed, fail, panic, are slow, suspend, hang, or ignore
//! cancellation.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::future::FutureExt;
use futures_util::stream::{self, BoxStream, StreamExt};
use greenroom_actors::domain::fact::{Fact, Recorded};
use greenroom_actors::domain::ids::{ExecutionId, StepPath, compensated_path};
use greenroom_actors::function::{StepContext, StepError, StepFunction, StepOutcome};
use greenroom_actors::ports::external_calls::scripted::{ScriptedCalls, ScriptedEnd};
use greenroom_actors::ports::model::{
    FinishReason, LanguageModel, Message, ModelAnswer, ModelError, ModelErrorKind, ModelEvent,
    ModelRequest, Role, ToolCall, Usage,
};
use serde_json::json;

use crate::simulator::approvals::PAY;
use crate::simulator::compensations::compensated_execution;
use crate::simulator::dice::Dice;
use crate::simulator::due::reversals_of;
use crate::simulator::stage::{RunningBody, Stage};

/// Maximum duration of work that does not hang.
pub(super) const WORK_MS: u64 = 90_000;

pub(crate) fn function(stage: &Arc<Stage>, process: u64) -> StepFunction {
    let stage = Arc::clone(stage);
    Arc::new(move |context| {
        let StepContext { execution_id: id, path, attempt, idempotency_key, .. } = &context;
        let running = begin((&stage, process), id, path, *attempt, idempotency_key);
        work(Arc::clone(&stage), context, running).boxed()
    })
}

/// Servers and programs: like functions, except that they never suspend.
pub(crate) fn external_calls(stage: &Arc<Stage>, process: u64) -> ScriptedCalls {
    let stage = Arc::clone(stage);
    ScriptedCalls::new(move |call| {
        let key = &call.origin.idempotency_key;
        let (id, attempt) = call.origin.attempt.clone().unwrap();
        let name = &call.origin.name;
        let path = Arc::from(name.strip_prefix("step ").unwrap_or(name));
        // the scripted call decides how long it runs
        drop(begin((&stage, process), &id, &path, attempt, key));
        let mut dice = Dice::about(stage.seed, &format!("{key} {attempt}"));
        let output = json!({ "by": &*path, "n": attempt });
        match if stage.is_healed() { 0 } else { dice.below(100) } {
            0..40 => ScriptedEnd::Gives(output),
            40..75 => ScriptedEnd::Later(Duration::from_millis(dice.millis(WORK_MS)), output),
            75..88 => ScriptedEnd::Fails("it did not work out".to_owned()),
            88..93 => ScriptedEnd::Panics,
            _ => ScriptedEnd::Hangs,
        }
    })
}

/// Checks the invariants of a call of a body.
fn begin(
    (stage, process): (&Arc<Stage>, u64),
    id: &ExecutionId,
    path: &StepPath,
    attempt: u32,
    idempotency_key: &str,
) -> RunningBody {
    stage.note(&format!("{id} {path} #{attempt} is called"));
    // another process may be running it
    let is_believed = process == 0 || stage.book.is_believed(process);
    stage.require(is_believed, || {
        format!("{id} {path} was called by process {process}, which may be gone")
    });
    // its compensations may be in the record of a reversal
    let is_compensation = compensated_path(path).is_some();
    let reversals = if is_compensation { reversals_of(stage, id) } else { Vec::new() };
    let records = [id.clone()].into_iter().chain(reversals);
    let begun = records.into_iter().find(|record| has_begun(&stage.facts(record), path, attempt));
    stage.require(begun.is_some(), || {
        format!("attempt {attempt} of {id} {path} was called without a durable fact of its start")
    });
    let performer = begun.as_ref().unwrap_or(id);
    let key = format!("{}/{path}", compensated_execution(performer, &stage.facts(performer)));
    stage.require(idempotency_key == key, || format!("{idempotency_key} is the key of {key}"));
    stage.called(process, performer, path, attempt)
}

/// Returns true if this attempt has begun and has not ended.
fn has_begun(facts: &[Recorded], path: &StepPath, attempt: u32) -> bool {
    let mut has_begun = false;
    for recorded in facts {
        match &recorded.fact {
            Fact::StepStarted { path: of, attempt: number, .. } if of == path => {
                has_begun = *number == attempt;
            }
            Fact::StepCompleted { path: of, .. }
            | Fact::StepFailed { path: of, .. }
            | Fact::StepReleased { path: of, .. }
            | Fact::StepCancelled { path: of, .. }
                if of == path =>
            {
                has_begun = false;
            }
            _ => {}
        }
    }
    has_begun
}

async fn work(
    stage: Arc<Stage>,
    context: StepContext,
    _running: RunningBody,
) -> Result<StepOutcome, StepError> {
    let StepContext { execution_id: id, path, attempt, resume, cancellation, .. } = context;
    let mut dice = Dice::about(stage.seed, &format!("{id} {path} {attempt}"));
    let choice = if stage.is_healed() { 0 } else { dice.below(100) };
    let output = json!({ "by": &*path, "n": attempt });
    match choice {
        0..40 => {}
        40..68 => sleep(&stage, dice.millis(WORK_MS)).await,
        68..80 => {
            sleep(&stage, dice.millis(1_000)).await;
            return Err("it did not work out".into());
        }
        80..84 => panic!("a simulated defect"),
        84..92 if resume.is_none() => {
            sleep(&stage, dice.millis(1_000)).await;
            let payload = dice.chance(50).then(|| json!({ "of": &*path }));
            return Ok(StepOutcome::Suspended { reason: None, payload });
        }
        92..96 => {
            // work in another task that ignores its cancellation
            let elsewhere = Arc::clone(&stage);
            let working = tokio::spawn(async move {
                sleep(&elsewhere, dice.millis(WORK_MS)).await;
                cancellation.is_cancelled()
            });
            let _ = working.await;
        }
        96.. => stage.healing().await,
        _ => {}
    }
    Ok(StepOutcome::Completed(output))
}

/// Sleeps, unless the world is healed earlier.
pub(super) async fn sleep(stage: &Stage, ms: u64) {
    if ms > 0 {
        let _ = tokio::time::timeout(Duration::from_millis(ms), stage.healing()).await;
    }
}

/// A model that answers, fails or hangs at random.
pub(crate) struct Model {
    stage: Arc<Stage>,
    asked: Arc<AtomicU64>,
}

impl Model {
    pub(crate) fn new(stage: &Arc<Stage>) -> Self {
        Self { stage: Arc::clone(stage), asked: Arc::default() }
    }
}

async fn answer(
    stage: Arc<Stage>,
    number: u64,
    request: ModelRequest,
) -> Result<ModelAnswer, ModelError> {
    let mut dice = Dice::about(stage.seed, &format!("model {number}"));
    let choice = if stage.is_healed() { 0 } else { dice.below(100) };
    sleep(&stage, if choice < 30 { 0 } else { dice.millis(WORK_MS) }).await;
    match choice {
        80..90 => return Err(ModelError::new(ModelErrorKind::Other, "no answer")),
        90..93 => panic!("a simulated defect"),
        93.. => stage.healing().await,
        _ => {}
    }
    let usage =
        Usage { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2, ..Usage::default() };
    let has_results = |message: &Message| message.role == Role::Tool;
    if dice.chance(40) && !request.tools.is_empty() && !request.messages.iter().any(has_results) {
        let calls = (0..dice.between(1, 2)).map(|call| ToolCall {
            tool_call_id: format!("c{call}"),
            tool_name: PAY.to_owned(),
            input: json!({}),
        });
        return Ok(ModelAnswer { tool_calls: calls.collect(), usage, ..ModelAnswer::default() });
    }
    let text =
        if dice.chance(20) { "no object".to_owned() } else { json!({ "n": number }).to_string() };
    Ok(ModelAnswer { text, usage, ..ModelAnswer::default() })
}

impl LanguageModel for Model {
    fn name(&self) -> &str {
        "simulated"
    }

    fn is_remote(&self) -> bool {
        true
    }

    fn stream(&self, request: ModelRequest) -> BoxStream<'static, Result<ModelEvent, ModelError>> {
        let number = self.asked.fetch_add(1, Ordering::Relaxed);
        let answering = answer(Arc::clone(&self.stage), number, request);
        let events = async move {
            let events = match answering.await {
                Err(error) => vec![Err(error)],
                Ok(ModelAnswer { text, usage, tool_calls, .. }) => {
                    let calls = tool_calls.into_iter().map(ModelEvent::ToolCall);
                    let finish_reason = FinishReason::Stop;
                    let finished = ModelEvent::Finished { usage, finish_reason, served: None };
                    let pieces = [ModelEvent::TextDelta(text)].into_iter().chain(calls);
                    pieces.chain([finished]).map(Ok).collect()
                }
            };
            stream::iter(events)
        };
        events.flatten_stream().boxed()
    }
}
