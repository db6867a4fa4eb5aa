//! Bulk operations.

use std::time::Duration;

use greenroom_actors::RuntimeLimits;
use greenroom_actors::domain::definition::{
    Compensation, Mapping, RetryPolicy, StepDefinition, WorkflowDefinition,
};
use greenroom_actors::domain::ids::ExecutionId;
use greenroom_actors::domain::principal::Principal;
use greenroom_actors::ports::crash_marks::MarkedWork;
use greenroom_actors::ports::store::{ExecutionFilter, IDS_SEARCHED_MAX, Status};
use greenroom_actors::requests::{StartError, StartExecution, TraceOrigin};
use greenroom_actors::runtime::{
    BULK_WORKFLOW, BulkAction, BulkOperation, ReplayDefinition, ReplayError, ReplayExecution,
};
use greenroom_actors::testkit::{World, pass, registry_of, start, target};
use serde_json::{Value, json};

use crate::workflows::{Calls, ask, child, map, run, sleep, with_functions, workflow};

/// Launches a world with these workflows: `waits` for a person, `sleeps` for an hour, `fails`, and
/// `family`, whose child and grandchild wait for a person.
async fn world() -> World {
    let calls = Calls::default();
    let definitions = [
        workflow("waits", vec![ask("manager")]),
        workflow("sleeps", vec![sleep("nap", 3_600_000)]),
        workflow("fails", vec![run("pay", "flaky")]),
        workflow("family", vec![child("middle", "middle")]),
        workflow("middle", vec![child("waits", "waits")]),
    ];
    let registry = with_functions(registry_of(definitions), &calls);
    World::launch(registry, RuntimeLimits::default()).await
}

pub(crate) fn of(action: BulkAction, filter: ExecutionFilter) -> BulkOperation {
    BulkOperation {
        action,
        filter,
        execution_ids: Vec::new(),
        reason: None,
        by: Some(Principal::claimed("ops")),
        visible_to: None,
        allowed: None,
        current_definition: false,
        again: false,
        began: None,
    }
}

pub(crate) fn of_workflow(id: &str) -> ExecutionFilter {
    ExecutionFilter { workflow_id: Some(id.to_owned()), ..ExecutionFilter::default() }
}

fn request(world: &World, operation: BulkOperation, id: &str) -> StartExecution {
    start(BULK_WORKFLOW, id, operation.into_input(world.runtime.clock().now()))
}

pub(crate) async fn done(world: &World, operation: BulkOperation, id: &str) -> Value {
    let outcome = world.runtime.execute(request(world, operation, id)).await.unwrap();
    assert_eq!(outcome.status(), Status::Completed, "{outcome:?}");
    outcome.result().cloned().unwrap()
}

pub(crate) async fn begin(world: &World, workflow: &str, ids: impl IntoIterator<Item = String>) {
    for id in ids {
        let mut request = start(workflow, &id, json!({}));
        request.user_id = Some(if id.ends_with('0') { "ann" } else { "ben" }.to_owned());
        world.runtime.begin(request).await.unwrap();
    }
    pass(Duration::from_millis(50)).await;
}

async fn status(world: &World, workflow: &str, id: &str) -> Status {
    world.runtime.describe(&target(workflow, id)).await.unwrap().status
}

#[actix::test]
async fn every_command_changes_what_it_fits_and_leaves_the_rest() {
    tokio::time::pause();
    let world = world().await;
    begin(&world, "waits", (0..3).map(|n| format!("w{n}"))).await;
    begin(&world, "sleeps", (0..5).map(|n| format!("s{n}"))).await;
    begin(&world, "fails", (0..4).map(|n| format!("f{n}"))).await;
    let all = ExecutionFilter::default;
    let counts = |matched: u64, done: u64, skipped: u64| json!({ "matched": matched, "done": done, "skipped": skipped, "failed": 0, "children": 0, "compensating": 0, "failures": [] });

    for (action, matched, skipped) in [
        (BulkAction::Suspend, 5, 0),
        (BulkAction::Resume, 0, 3),
        (BulkAction::Cancel, 8, 0),
        (BulkAction::Replay, 4, 0),
    ] {
        let preview = world.runtime.preview_bulk(&of(action, all())).await.unwrap();
        assert_eq!((preview.matched, preview.skipped), (matched, skipped), "{action:?}");
        assert!(preview.is_complete && preview.executions.len() as u64 == matched, "{action:?}");
    }

    assert_eq!(done(&world, of(BulkAction::Suspend, all()), "b1").await, counts(5, 5, 0));
    let state = world.runtime.describe(&target("sleeps", "s1")).await.unwrap();
    let paused = state.suspension.unwrap();
    assert_eq!((&*paused.reason, &*paused.by.as_ref().unwrap().id), ("Bulk operation b1", "ops"));
    // those that wait for a person are not answered
    assert_eq!(done(&world, of(BulkAction::Resume, all()), "b2").await, counts(8, 5, 3));
    assert_eq!(status(&world, "sleeps", "s1").await, Status::Running);
    assert_eq!(status(&world, "waits", "w1").await, Status::Suspended);

    let mut of_ann = of(BulkAction::Cancel, all());
    of_ann.visible_to = Some("ann".into());
    of_ann.reason = Some("she left".to_owned());
    assert_eq!(done(&world, of_ann.clone(), "b3").await, counts(2, 2, 0));
    assert_eq!(status(&world, "waits", "w0").await, Status::Cancelled);
    assert_eq!(status(&world, "waits", "w1").await, Status::Suspended);
    of_ann.filter.user_id = Some("ben".to_owned());
    assert_eq!(done(&world, of_ann, "b4").await, counts(0, 0, 0), "of another user");

    assert_eq!(
        done(&world, of(BulkAction::Replay, of_workflow("fails")), "b5").await,
        counts(4, 4, 0)
    );
    let replays = ExecutionFilter { replay_of: Some("f2".to_owned()), ..all() };
    assert_eq!(world.runtime.list(&replays, None, 9).await.unwrap().0.len(), 1);
    assert_eq!(done(&world, of(BulkAction::Cancel, all()), "b6").await, counts(6, 6, 0));
}

#[actix::test]
async fn children_are_counted_and_cancelled_for_the_same_reason() {
    tokio::time::pause();
    let world = world().await;
    begin(&world, "family", (0..3).map(|n| format!("p{n}"))).await;
    begin(&world, "waits", ["w0".to_owned()]).await;
    let parents = of(BulkAction::Cancel, of_workflow("family"));
    let preview = world.runtime.preview_bulk(&parents).await.unwrap();
    assert_eq!((preview.matched, preview.children, preview.is_complete), (3, 6, true));
    let everything = of(BulkAction::Cancel, ExecutionFilter::default());
    let preview = world.runtime.preview_bulk(&everything).await.unwrap();
    assert_eq!((preview.matched, preview.children), (10, 0), "children are selected themselves");

    let mut parents = of(BulkAction::Cancel, of_workflow("family"));
    parents.reason = Some("the shop closes".to_owned());
    let result = done(&world, parents, "b").await;
    assert_eq!((&result["done"], &result["children"]), (&json!(3), &json!(6)), "{result}");
    pass(Duration::from_millis(50)).await;
    for workflow in ["middle", "waits"] {
        let filter = ExecutionFilter { status: Some(Status::Cancelled), ..of_workflow(workflow) };
        let (children, _) = world.runtime.list(&filter, None, 9).await.unwrap();
        assert_eq!(children.len(), 3, "{workflow}");
        for child in children {
            let ended = target(workflow, child.header.id.as_str());
            let state = world.runtime.describe(&ended).await.unwrap();
            assert_eq!(
                state.cancel_reason.as_deref(),
                Some("The execution that started it was cancelled: the shop closes")
            );
        }
    }
    assert_eq!(status(&world, "waits", "w0").await, Status::Suspended);
}

#[actix::test]
async fn what_compensates_is_counted_and_is_not_cancelled_again() {
    tokio::time::pause();
    let undone = |function: &str| {
        let retry = RetryPolicy { attempts: 1, ..RetryPolicy::default() };
        let rule = Compensation { retry, ..Compensation::new(run("undo", function).kind) };
        StepDefinition { compensate: Some(Box::new(rule)), ..map("hold", json!(1)) }
    };
    let on_cancel = |id: &str, function: &str| WorkflowDefinition {
        compensate_on_cancel: true,
        ..workflow(id, vec![undone(function), ask("manager")])
    };
    let definitions = [
        on_cancel("fails", "flaky"),
        on_cancel("hangs", "hang"),
        workflow("plain", vec![undone("hang"), ask("manager")]),
    ];
    let registry = with_functions(registry_of(definitions), &Calls::default());
    let world = World::launch(registry, RuntimeLimits::default()).await;
    for id in ["fails", "hangs", "plain"] {
        begin(&world, id, [format!("{id}-1")]).await;
    }
    let all = of(BulkAction::Cancel, ExecutionFilter::default());
    assert_eq!(world.runtime.preview_bulk(&all).await.unwrap().matched, 3);
    let result = done(&world, all.clone(), "b1").await;
    assert_eq!((&result["done"], &result["compensating"]), (&json!(3), &json!(2)), "{result}");
    pass(Duration::from_millis(50)).await;

    assert_eq!(status(&world, "fails", "fails-1").await, Status::Suspended);
    assert_eq!(status(&world, "hangs", "hangs-1").await, Status::Running);
    let preview = world.runtime.preview_bulk(&all).await.unwrap();
    assert_eq!((preview.matched, preview.skipped), (0, 2));
    let result = done(&world, all, "b2").await;
    assert_eq!((&result["done"], &result["skipped"]), (&json!(0), &json!(2)), "{result}");
}

#[actix::test]
async fn children_of_executions_that_refuse_are_not_counted() {
    tokio::time::pause();
    let undo = Compensation::new(child("undo", "sleeps").kind);
    let hold = StepDefinition { compensate: Some(Box::new(undo)), ..map("hold", json!(1)) };
    let definitions = [
        workflow("sleeps", vec![sleep("nap", 3_600_000)]),
        workflow("order", vec![hold, run("pay", "flaky")]),
        workflow("simple", vec![child("sleeps", "sleeps")]),
    ];
    let registry = with_functions(registry_of(definitions), &Calls::default());
    let world = World::launch(registry, RuntimeLimits::default()).await;
    begin(&world, "order", ["o".to_owned()]).await;
    begin(&world, "simple", ["s".to_owned()]).await;
    let state = world.runtime.describe(&target("order", "o")).await.unwrap();
    assert!(state.compensation.is_some(), "{state:?}");

    let mut operation = of(BulkAction::Cancel, ExecutionFilter::default());
    operation.execution_ids = ["o", "s"].map(ExecutionId::trusted).to_vec();
    let preview = world.runtime.preview_bulk(&operation).await.unwrap();
    assert_eq!((preview.matched, preview.skipped, preview.children), (1, 1, 1));
    let result = done(&world, operation, "b").await;
    let counts = ["done", "skipped", "children"].map(|key| &result[key]);
    assert_eq!(counts, [1, 1, 1], "{result}");
}

#[actix::test]
async fn a_preview_reads_only_executions_that_may_compensate() {
    tokio::time::pause();
    let undo = Compensation::new(run("undo", "slow").kind);
    let hold = StepDefinition { compensate: Some(Box::new(undo)), ..map("hold", json!(1)) };
    let definitions = [
        workflow("plain", vec![map("a", json!(1)), sleep("nap", 3_600_000)]),
        workflow("order", vec![hold, sleep("nap", 3_600_000)]),
    ];
    let registry = with_functions(registry_of(definitions), &Calls::default());
    let world = World::launch(registry, RuntimeLimits::default()).await;
    begin(&world, "plain", ["p0", "p1"].map(str::to_owned)).await;
    begin(&world, "order", ["o0", "o1"].map(str::to_owned)).await;
    done(&world, of(BulkAction::Suspend, ExecutionFilter::default()), "b").await;
    pass(Duration::from_secs(60)).await;
    assert_eq!(world.live(), 0, "all have been unloaded");
    let before = world.crash_marks.seen().len();
    let all = of(BulkAction::Cancel, ExecutionFilter::default());
    assert_eq!(world.runtime.preview_bulk(&all).await.unwrap().matched, 4);
    let seen = world.crash_marks.seen();
    let loads = seen[before..].iter().filter(|mark| mark.work == MarkedWork::Load);
    let mut loaded: Vec<_> = loads.map(|mark| mark.execution.as_str()).collect();
    loaded.sort_unstable();
    assert_eq!(loaded, ["o0", "o1"]);
}

#[actix::test]
async fn what_was_replayed_before_is_left_out_unless_it_is_wanted() {
    tokio::time::pause();
    let world = world().await;
    begin(&world, "fails", (0..3).map(|n| format!("f{n}"))).await;
    let mut one = of(BulkAction::Replay, ExecutionFilter::default());
    one.execution_ids = vec![ExecutionId::trusted("f1")];
    assert_eq!(done(&world, one.clone(), "b1").await["done"], 1);
    pass(Duration::from_millis(50)).await;
    let facts = world.runtime.events(&target(BULK_WORKFLOW, "b1"), 0, 100).await.unwrap();
    let recorded = format!("{:?}", facts.facts);
    assert!(recorded.contains("replayId"), "{recorded}");

    // the replay has failed as well: it is replayed in place of its original
    let mut all = of(BulkAction::Replay, of_workflow("fails"));
    let preview = world.runtime.preview_bulk(&all).await.unwrap();
    assert_eq!((preview.matched, preview.skipped, preview.replayed), (3, 1, 1));
    all.again = true;
    let preview = world.runtime.preview_bulk(&all).await.unwrap();
    assert_eq!((preview.matched, preview.skipped, preview.replayed), (4, 0, 0));
    let again = done(&world, one.clone(), "b2").await;
    assert_eq!((&again["done"], &again["skipped"]), (&json!(0), &json!(1)), "{again}");
    one.again = true;
    assert_eq!(done(&world, one, "b3").await["done"], 1);
}

#[actix::test]
async fn a_replay_begins_before_what_was_undone_and_counts_what_no_replay_fits() {
    tokio::time::pause();
    let undo = run("undo", "slow").kind;
    let hold = StepDefinition {
        compensate: Some(Box::new(Compensation::new(undo))),
        ..map("hold", json!(1))
    };
    let result = Some(Mapping(json!("data.missing.thing")));
    let definitions = [
        workflow("order", vec![map("sort", json!(0)), hold, run("close", "flaky")]),
        WorkflowDefinition { result, ..workflow("unshown", vec![map("a", json!(1))]) },
    ];
    let registry = with_functions(registry_of(definitions), &Calls::default());
    let world = World::launch(registry, RuntimeLimits::default()).await;
    begin(&world, "order", ["o".to_owned()]).await;
    begin(&world, "unshown", ["u".to_owned()]).await;
    pass(Duration::from_secs(1)).await;

    let operation = of(BulkAction::Replay, ExecutionFilter::default());
    let preview = world.runtime.preview_bulk(&operation).await.unwrap();
    assert_eq!((preview.matched, preview.skipped, preview.replayed), (1, 1, 0));
    let result = done(&world, operation, "b").await;
    let refused = "no step failed; possible steps: a";
    assert_eq!((&result["done"], &result["failed"]), (&json!(1), &json!(1)), "{result}");
    assert_eq!(result["failures"], json!([{ "executionId": "u", "message": refused }]));
    let replays = ExecutionFilter { replay_of: Some("o".to_owned()), ..Default::default() };
    let (replays, _) = world.runtime.list(&replays, None, 9).await.unwrap();
    assert_eq!(&*replays[0].replayed_from.as_ref().unwrap().step_id, "hold");
}

#[actix::test]
async fn two_operations_at_once_replay_an_execution_once() {
    tokio::time::pause();
    let world = world().await;
    begin(&world, "fails", (0..40).map(|n| format!("f{n}"))).await;
    let operation = || of(BulkAction::Replay, of_workflow("fails"));
    let both = [request(&world, operation(), "b1"), request(&world, operation(), "b2")];
    for request in both {
        world.runtime.begin(request).await.unwrap();
    }
    pass(Duration::from_secs(1)).await;
    let all = world.runtime.list(&of_workflow("fails"), None, 200).await.unwrap().0;
    assert_eq!(all.len(), 80);
}

#[actix::test]
async fn more_ids_than_a_search_reads_are_reached_by_their_begin() {
    tokio::time::pause();
    let world = world().await;
    let count = IDS_SEARCHED_MAX + 5;
    begin(&world, "sleeps", (0..count).map(|n| format!("many-{n:04}"))).await;
    let prefix = || ExecutionFilter { id_prefix: Some("many-".to_owned()), ..Default::default() };
    let preview = world.runtime.preview_bulk(&of(BulkAction::Cancel, prefix())).await.unwrap();
    assert_eq!((preview.matched, preview.is_complete), (count as u64, true));
    // an execution is found by its whole id among any number of longer ones
    begin(&world, "sleeps", ["many-".to_owned()]).await;
    for limit in [1, 2, 9] {
        let (page, next) = world.runtime.list(&prefix(), None, limit).await.unwrap();
        let ids: Vec<_> = page.iter().map(|it| it.header.id.as_str()).collect();
        assert_eq!((ids[0], ids.len()), ("many-", limit));
        let (others, _) = world.runtime.list(&prefix(), next, 3).await.unwrap();
        assert!(others.iter().all(|it| !ids.contains(&it.header.id.as_str())), "{limit}");
        assert_eq!(others.len(), 3, "{limit}");
    }
    let result = done(&world, of(BulkAction::Cancel, prefix()), "b").await;
    assert_eq!(result["done"], count + 1, "{result}");
}

#[actix::test]
async fn named_executions_are_checked_one_by_one() {
    tokio::time::pause();
    let world = world().await;
    begin(&world, "sleeps", ["s0", "s1"].map(str::to_owned)).await;
    begin(&world, "fails", ["f0".to_owned()]).await;
    let mut operation = of(BulkAction::Cancel, ExecutionFilter::default());
    operation.execution_ids = ["s0", "s1", "f0", "none"].map(ExecutionId::trusted).to_vec();
    operation.visible_to = Some("ann".into());
    let not_found = |id: &str| json!({ "executionId": id, "message": "execution not found" });
    let expected = json!({ "matched": 2, "done": 1, "skipped": 1, "failed": 2, "children": 0, "compensating": 0,
                           "failures": [not_found("s1"), not_found("none")] });
    let preview = world.runtime.preview_bulk(&operation).await.unwrap();
    assert_eq!((preview.matched, preview.skipped, preview.unknown), (1, 1, 2));
    assert_eq!(done(&world, operation, "b").await, expected);
    assert_eq!(status(&world, "sleeps", "s0").await, Status::Cancelled);
    assert_eq!(status(&world, "sleeps", "s1").await, Status::Running);
}

#[actix::test]
async fn executions_of_other_workflows_are_not_reached() {
    tokio::time::pause();
    let world = world().await;
    begin(&world, "sleeps", ["s0".to_owned()]).await;
    begin(&world, "waits", ["w0".to_owned()]).await;
    let mut operation = of(BulkAction::Cancel, ExecutionFilter::default());
    operation.allowed = Some(["sleeps".into()].into());
    operation.execution_ids = ["s0", "w0"].map(ExecutionId::trusted).to_vec();
    let by_ids = done(&world, operation.clone(), "b1").await;
    assert_eq!((&by_ids["done"], &by_ids["failed"]), (&json!(1), &json!(1)), "{by_ids}");
    operation.execution_ids.clear();
    let by_filter = done(&world, operation, "b2").await;
    assert_eq!((&by_filter["done"], &by_filter["skipped"]), (&json!(0), &json!(1)), "{by_filter}");
    assert_eq!(status(&world, "waits", "w0").await, Status::Suspended);
}

#[actix::test]
async fn an_operation_goes_on_after_a_kill_and_replays_each_execution_once() {
    tokio::time::pause();
    let world = world().await;
    let count = 450;
    begin(&world, "fails", (0..count).map(|n| format!("f{n}"))).await;
    let operation = of(BulkAction::Replay, of_workflow("fails"));
    world.runtime.begin(request(&world, operation, "b")).await.unwrap();
    let world = world.restart().await;
    pass(Duration::from_secs(1)).await;
    let world = world.restart().await;
    let outcome = world.runtime.first_outcome(&target(BULK_WORKFLOW, "b")).await.unwrap();
    let result = outcome.result().unwrap();
    assert_eq!((&result["done"], &result["failed"]), (&json!(count), &json!(0)), "{result}");
    pass(Duration::from_secs(1)).await;
    for n in [0, 1, 200, 449] {
        let replay_of = Some(format!("f{n}"));
        let replays = ExecutionFilter { replay_of, ..ExecutionFilter::default() };
        assert_eq!(world.runtime.list(&replays, None, 9).await.unwrap().0.len(), 1, "f{n}");
    }
}

#[actix::test]
async fn an_operation_can_be_cancelled_but_not_replayed() {
    tokio::time::pause();
    let world = world().await;
    begin(&world, "sleeps", ["s0".to_owned()]).await;
    done(&world, of(BulkAction::Cancel, ExecutionFilter::default()), "b").await;
    let again = ReplayExecution {
        step_id: Some("all".to_owned()),
        resume_data: None,
        input: None,
        definition: ReplayDefinition::Original,
        execution_id: None,
        by: None,
        answerer: None,
        idempotency: None,
        trace: TraceOrigin::New,
    };
    let refused = world.runtime.replay(&target(BULK_WORKFLOW, "b"), again).await.unwrap_err();
    assert_eq!(refused, ReplayError::Start(StartError::UnknownWorkflow(BULK_WORKFLOW.to_owned())));
    let report = world.runtime.why(&target(BULK_WORKFLOW, "b")).await.unwrap();
    assert!(report.ending.unwrap().replayable.is_empty());
    // what it has begun keeps its state; nothing else is taken
    begin(&world, "fails", (0..1_000).map(|n| format!("f{n}"))).await;
    let operation = of(BulkAction::Replay, ExecutionFilter::default());
    world.runtime.begin(request(&world, operation, "long")).await.unwrap();
    world.runtime.cancel(&target(BULK_WORKFLOW, "long"), None, None).await.unwrap();
    assert_eq!(status(&world, BULK_WORKFLOW, "long").await, Status::Cancelled);
}
