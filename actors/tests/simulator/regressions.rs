//! Regression tests for defects found by the simulator.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use greenroom_actors::domain::definition::{Body, StepKind};
use greenroom_actors::domain::ids::ExecutionId;
use greenroom_actors::function::StepOutcome;
use greenroom_actors::ports::memory::MemoryStore;
use greenroom_actors::ports::store::Status;
use greenroom_actors::registry::Registry;
use greenroom_actors::testkit::registry_of;
use greenroom_actors::{Placement, RuntimeLimits};
use serde_json::Value;

use crate::simulator::callers::{Start, target};
use crate::simulator::definitions::workflow;
use crate::simulator::process::{self, Process};
use crate::simulator::run::virtual_time;
use crate::simulator::stage::Stage;

/// Creates a stage for a workflow of one step, whose function runs until the world is healed.
fn stage_of(seed: u64, kind: StepKind) -> (Arc<Stage>, Registry) {
    let plans = registry_of([workflow("w", kind)]).workflows;
    let stage = Stage::new(seed, plans, Arc::new(MemoryStore::new()));
    let mut registry = process::registry(&stage, 0);
    let works = Arc::clone(&stage);
    let work = Arc::new(move |_| {
        let stage = Arc::clone(&works);
        let work = async move {
            stage.healing().await;
            Ok(StepOutcome::Completed(Value::Null))
        };
        Box::pin(work) as _
    });
    registry.functions.insert("work".to_owned(), work);
    (stage, registry)
}

fn limits() -> RuntimeLimits {
    RuntimeLimits { placement: Placement::Here, ..RuntimeLimits::default() }
}

fn begin(process: &mut Process, stage: &Arc<Stage>) {
    let (workflow, id) = ("w".to_owned(), Some(ExecutionId::trusted("e")));
    let start = Start { workflow, id, token: stage.token(), key: None };
    let caller = process.caller(stage, &Arc::default());
    process.spawn(caller.execute(start));
}

fn status(stage: &Stage) -> Status {
    stage.projection(&ExecutionId::trusted("e")).unwrap().status
}

async fn pass(ms: u64) {
    tokio::time::sleep(Duration::from_millis(ms)).await;
}

#[test]
fn running_executions_continue_after_failed_reads_at_start() {
    virtual_time(async {
        let kind =
            StepKind::Then { body: Body::Run { function: "work".to_owned(), version: None } };
        let (stage, registry) = stage_of(1, kind);
        let disk = MemoryStore::new();
        let mut process = Process::launch(&stage, registry.clone(), limits(), disk).await;
        begin(&mut process, &stage);
        pass(1).await;
        let disk = process.crash().await;
        stage.faults.unreadable_percent.store(100, Ordering::SeqCst);
        let _process = Process::launch(&stage, registry, limits(), disk).await;
        pass(5_000).await;
        assert_eq!(status(&stage), Status::Running);
        stage.heal();
        pass(5_000).await;
        assert_eq!(status(&stage), Status::Completed);
    });
}

/// The sleep ends while its execution is cancelled in memory only, because the disk is full: its
/// timer must not be lost.
#[test]
fn a_timer_that_fires_before_an_unrecorded_end_fires_again() {
    let mut ends: BTreeMap<&str, u32> = BTreeMap::new();
    for seed in 0..40 {
        let end = virtual_time(async move {
            let (stage, registry) = stage_of(seed, StepKind::Sleep { duration_ms: 1_000 });
            let disk = MemoryStore::new();
            let mut process = Process::launch(&stage, registry, limits(), disk).await;
            begin(&mut process, &stage);
            pass(900).await;
            stage.faults.is_full.store(true, Ordering::SeqCst);
            stage.faults.slowness_ms.store(500, Ordering::SeqCst);
            let caller = process.caller(&stage, &Arc::default());
            process.spawn(caller.cancel(target("w", &ExecutionId::trusted("e"))));
            pass(150).await;
            stage.faults.is_full.store(false, Ordering::SeqCst);
            pass(2_000).await;
            stage.heal();
            pass(60_000).await;
            status(&stage).as_str()
        });
        *ends.entry(end).or_default() += 1;
    }
    assert!(!ends.contains_key("running"), "{ends:?}");
    assert!(ends.contains_key("completed"), "no cancel was refused: {ends:?}");
}
