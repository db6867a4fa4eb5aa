//! Rules of generations.

use std::sync::Arc;

use serde_json::json;

use super::bench::Bench;
use super::read;
use crate::domain::ids::ExecutionId;
use crate::domain::message::{ToolCall, ToolOutcome, ToolResult};
use crate::domain::time::Timestamp;
use crate::domain::trace::{EntityType, Trace, TraceOrigin};
use crate::ports::model::{FinishReason, Served, Usage};
use crate::ports::store::{
    ContinuationChange, GenerationEntry, GenerationPage, GenerationRecord, GenerationStatus,
    GenerationStep, GenerationWrite, PageSize, Period, StepOrigin, TurnTiming,
};

pub(super) async fn run(bench: &impl AsyncFn() -> Bench) {
    rule!(a_record_is_stored_whole, bench().await);
    rule!(a_later_record_replaces_an_earlier_one, bench().await);
    rule!(a_later_step_replaces_an_earlier_one, bench().await);
    rule!(steps_of_a_first_record_can_be_changed, bench().await);
    rule!(a_restarted_run_has_no_old_steps, bench().await);
    rule!(the_history_is_in_the_order_of_first_records, bench().await);
    rule!(agents_are_apart, bench().await);
    rule!(generations_of_a_user_are_counted_and_paged, bench().await);
    rule!(a_restart_interrupts_generations_without_a_step, bench().await);
}

/// Returns a working generation of the agent `clerk`.
pub(super) fn working(id: &str) -> GenerationRecord {
    GenerationRecord {
        id: id.to_owned(),
        agent_id: "clerk".to_owned(),
        status: GenerationStatus::Working,
        start_time: Timestamp(100),
        end_time: None,
        input: json!([{ "role": "user", "content": "hi" }]),
        output: None,
        usage: None,
        error: None,
        user_id: None,
        conversation_id: None,
        origin: None,
        trace: Trace::of(id, EntityType::Agent, &Arc::from("clerk"), TraceOrigin::New),
    }
}

/// Returns a completed generation.
pub(super) fn completed(id: &str) -> GenerationRecord {
    GenerationRecord {
        status: GenerationStatus::Completed,
        end_time: Some(Timestamp(150)),
        output: Some(json!({ "text": "grün \u{0000} 👋" })),
        usage: Some(Usage { total_tokens: 3, ..Usage::default() }),
        user_id: Some("u1".to_owned()),
        conversation_id: Some("c1".to_owned()),
        ..working(id)
    }
}

pub(super) fn step(text: &str) -> Arc<GenerationStep> {
    Arc::new(GenerationStep { text: text.to_owned(), ..GenerationStep::default() })
}

fn step_with_tools() -> Arc<GenerationStep> {
    let (tool_call_id, tool_name, input) = ("t1".to_owned(), "add".to_owned(), json!({ "n": 1 }));
    let call = ToolCall { tool_call_id, tool_name, input };
    let ToolCall { tool_call_id, tool_name, input } = call.clone();
    let outcome = ToolOutcome::Error("no \"such\" number".to_owned());
    Arc::new(GenerationStep {
        text: String::new(),
        reasoning: "perhaps 🤔".to_owned(),
        tool_calls: vec![call],
        tool_results: vec![ToolResult { tool_call_id, tool_name, input, outcome }],
        usage: Usage { prompt_tokens: 5, ..Usage::default() },
        finish_reason: FinishReason::ToolCalls,
        timing: timing(),
    })
}

fn timing() -> TurnTiming {
    let period = |start, end| Period { start: Timestamp(start), end };
    TurnTiming {
        chat: Some(period(101, Some(Timestamp(105)))),
        first_piece: Some(Timestamp(103)),
        served: Some(Box::new(Served::of("small"))),
        calls: vec![period(106, None)],
        ..TurnTiming::default()
    }
}

/// Returns a write without messages.
pub(super) fn with_steps(
    record: &GenerationRecord,
    steps: &[(u32, Arc<GenerationStep>)],
) -> GenerationWrite {
    GenerationWrite {
        row: 0,
        record: record.clone(),
        steps: steps.to_vec(),
        messages: None,
        continuation: ContinuationChange::Keep,
    }
}

pub(super) async fn record(bench: &Bench, write: GenerationWrite) {
    let write = GenerationWrite { row: bench.generation_row(), ..write };
    let id = write.record.id.clone();
    assert_eq!(bench.store.record_generation(write).await, Ok(()), "record {id}");
}

pub(super) async fn entry(bench: &Bench, id: &str) -> Option<GenerationEntry> {
    read(bench.store.generation(id)).await
}

async fn assert_kept(bench: &Bench, record: &GenerationRecord, steps: &[Arc<GenerationStep>]) {
    let steps = steps.iter().map(|step| (**step).clone()).collect();
    let expected = GenerationEntry { record: record.clone(), steps };
    assert_eq!(entry(bench, &record.id).await.as_ref(), Some(&expected), "by its id");
    let page = read(bench.store.generations(&record.agent_id, None, 0, PageSize::of(100))).await;
    let listed = page.entries.iter().find(|entry| entry.record.id == record.id);
    assert_eq!(listed, Some(&expected), "in the history");
}

/// Returns the ids of a page.
pub(super) async fn page(bench: &Bench, agent: &str, offset: u64, limit: usize) -> Vec<String> {
    let page = read(bench.store.generations(agent, None, offset, PageSize::of(limit))).await;
    page.entries.into_iter().map(|entry| entry.record.id).collect()
}

pub(super) async fn total(bench: &Bench, agent: &str) -> u64 {
    read(bench.store.generations(agent, None, 0, PageSize::of(1))).await.total
}

async fn a_record_is_stored_whole(bench: Bench) {
    assert_eq!(entry(&bench, "g1").await, None, "nothing is stored at first");
    assert_eq!(total(&bench, "clerk").await, 0, "no history");
    let one = completed("g1");
    let steps = [step_with_tools(), step("done")];
    record(&bench, with_steps(&one, &[(0, steps[0].clone()), (1, steps[1].clone())])).await;
    assert_kept(&bench, &one, &steps).await;
    let mut two = working("g2");
    two.status = GenerationStatus::Error;
    two.error = Some("provider said no".to_owned());
    two.origin = Some(StepOrigin {
        execution_id: ExecutionId::trusted("e1"),
        path: Arc::from("checks/ask"),
    });
    record(&bench, with_steps(&two, &[])).await;
    assert_kept(&bench, &two, &[]).await;
}

async fn a_later_record_replaces_an_earlier_one(bench: Bench) {
    record(&bench, with_steps(&working("g1"), &[])).await;
    assert_kept(&bench, &working("g1"), &[]).await;
    record(&bench, with_steps(&completed("g1"), &[])).await;
    assert_kept(&bench, &completed("g1"), &[]).await;
    assert_eq!(total(&bench, "clerk").await, 1, "it is one generation");
}

async fn a_later_step_replaces_an_earlier_one(bench: Bench) {
    let g1 = working("g1");
    record(&bench, with_steps(&g1, &[(0, step("first"))])).await;
    assert_kept(&bench, &g1, &[step("first")]).await;
    record(&bench, with_steps(&g1, &[(1, step_with_tools())])).await;
    assert_kept(&bench, &g1, &[step("first"), step_with_tools()]).await;
    record(&bench, with_steps(&g1, &[(1, step("second")), (2, step("third"))])).await;
    let steps = [step("first"), step("second"), step("third")];
    assert_kept(&bench, &g1, &steps).await;
    record(&bench, with_steps(&completed("g1"), &[])).await;
    assert_kept(&bench, &completed("g1"), &steps).await;
}

async fn steps_of_a_first_record_can_be_changed(bench: Bench) {
    let g1 = completed("g1");
    record(&bench, with_steps(&g1, &[(0, step("first")), (1, step("second"))])).await;
    record(&bench, with_steps(&g1, &[(1, step("again")), (2, step("third"))])).await;
    assert_kept(&bench, &g1, &[step("first"), step("again"), step("third")]).await;
}

async fn a_restarted_run_has_no_old_steps(bench: Bench) {
    let old = [(0, step("first")), (1, step("second")), (2, step("third"))];
    for (name, interrupted_run) in [("working", working("g1")), ("completed", completed("g2"))] {
        record(&bench, with_steps(&interrupted_run, &old)).await;
        let again = working(&interrupted_run.id);
        record(&bench, with_steps(&again, &[])).await;
        record(&bench, with_steps(&again, &[(0, step("again"))])).await;
        let done = completed(&interrupted_run.id);
        record(&bench, with_steps(&done, &[(0, step("again")), (1, step(name))])).await;
        assert_kept(&bench, &done, &[step("again"), step(name)]).await;
    }
}

async fn the_history_is_in_the_order_of_first_records(bench: Bench) {
    for i in 1..=5 {
        let mut one = working(&format!("g{i}"));
        // start times do not matter: clocks are set back
        one.start_time = Timestamp(1000 - i);
        record(&bench, with_steps(&one, &[])).await;
    }
    record(&bench, with_steps(&completed("g2"), &[])).await;
    let cases: [(u64, usize, &[&str]); 7] = [
        (0, 10, &["g5", "g4", "g3", "g2", "g1"]),
        (0, 2, &["g5", "g4"]),
        (2, 2, &["g3", "g2"]),
        (4, 2, &["g1"]),
        (5, 2, &[]),
        (u64::MAX, 2, &[]),
        (0, 0, &[]),
    ];
    for (offset, limit, expected) in cases {
        let found = page(&bench, "clerk", offset, limit).await;
        assert_eq!(found, expected, "{limit} generations without the newest {offset}");
        let counted =
            read(bench.store.generations("clerk", None, offset, PageSize::of(limit))).await.total;
        assert_eq!(counted, 5, "the total does not depend on the page");
    }
}

async fn agents_are_apart(bench: Bench) {
    for (id, agent) in [("g1", "clerk"), ("g2", "cook"), ("g3", "clerk"), ("g4", "büro")] {
        let one = GenerationRecord { agent_id: agent.to_owned(), ..working(id) };
        record(&bench, with_steps(&one, &[])).await;
    }
    for (agent, expected) in
        [("clerk", &["g3", "g1"][..]), ("cook", &["g2"]), ("büro", &["g4"]), ("unknown", &[])]
    {
        assert_eq!(page(&bench, agent, 0, 10).await, expected, "of {agent}");
        assert_eq!(total(&bench, agent).await, expected.len() as u64, "of {agent}");
    }
}

async fn generations_of_a_user_are_counted_and_paged(bench: Bench) {
    let users = [Some("u1"), None, Some("u2"), Some("u1"), Some("")];
    let mut own = Vec::new();
    for i in 0..40 {
        let (user, agent) = (users[i % users.len()], ["clerk", "cook"][i % 7 / 6]);
        let (id, user_id) = (format!("g{i}"), user.map(str::to_owned));
        let one = GenerationRecord { agent_id: agent.to_owned(), user_id, ..completed(&id) };
        record(&bench, with_steps(&one, &[(0, step("one"))])).await;
        if (user, agent) == (Some("u1"), "clerk") {
            own.insert(0, id);
        }
    }
    // changed by a later record; one that becomes the user's later keeps its position
    for id in [&own[3], "g1"] {
        record(&bench, with_steps(&completed(id), &[(0, step("one")), (1, step("two"))])).await;
    }
    own.push("g1".to_owned());
    own.sort_by_key(|id| std::cmp::Reverse(id[1..].parse::<u32>().expect("a number")));
    let of_user = async |user, offset: usize, limit| {
        let page = bench.store.generations("clerk", Some(user), offset as u64, PageSize::of(limit));
        let GenerationPage { entries, total } = read(page).await;
        let is_whole = |entry: &GenerationEntry| !entry.steps.is_empty();
        assert!(entries.iter().all(is_whole), "with their steps");
        (entries.into_iter().map(|entry| entry.record.id).collect::<Vec<_>>(), total)
    };
    let count = own.len() as u64;
    for (offset, limit) in [(0, 100), (0, 3), (2, 4), (own.len() - 1, 5), (own.len(), 5), (0, 0)] {
        let page: Vec<_> = own.iter().skip(offset).take(limit).cloned().collect();
        assert_eq!(of_user("u1", offset, limit).await, (page, count), "{offset} {limit}");
    }
    assert_eq!(of_user("", 0, 100).await.1, 7, "an empty name is a name");
    assert_eq!(of_user("unknown", 0, 100).await, (Vec::new(), 0));
    assert_eq!(bench.store.forget_user("u1".to_owned()).await, Ok(0), "no conversations");
    assert_eq!(of_user("u1", 0, 100).await, (Vec::new(), 0), "forgotten");
    record(&bench, with_steps(&completed("new"), &[(0, step("one"))])).await;
    assert_eq!(of_user("u1", 0, 100).await, (vec!["new".to_owned()], 1));
}

async fn a_restart_interrupts_generations_without_a_step(bench: Bench) {
    let alone = working("alone");
    let done = completed("done");
    let mut of_step = working("of-step");
    of_step.origin =
        Some(StepOrigin { execution_id: ExecutionId::trusted("e1"), path: Arc::from("ask") });
    record(&bench, with_steps(&alone, &[(0, step("half"))])).await;
    record(&bench, with_steps(&done, &[])).await;
    record(&bench, with_steps(&of_step, &[])).await;
    assert_eq!(bench.store.interrupt_working(Timestamp(999)).await, Ok(()), "interrupt");
    let interrupted = GenerationRecord {
        status: GenerationStatus::Error,
        end_time: Some(Timestamp(999)),
        error: Some("interrupted by a restart".to_owned()),
        ..alone
    };
    assert_kept(&bench, &interrupted, &[step("half")]).await;
    assert_kept(&bench, &done, &[]).await;
    assert_kept(&bench, &of_step, &[]).await;
}
