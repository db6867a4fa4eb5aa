//! Commands and callers of an actor that gives up, because the store refused an append: what was not
//! begun is carried out by its successor, everything else is refused with what is known of it.

use std::time::Duration;

use futures_util::FutureExt as _;
use greenroom_actors::RuntimeLimits;
use greenroom_actors::domain::definition::StepDefinition;
use greenroom_actors::domain::ids::ExecutionId;
use greenroom_actors::domain::slot::{SlotSet, slot_of};
use greenroom_actors::ports::store::{ExecutionFilter, Status};
use greenroom_actors::requests::{ExecutionOutcome, ResumeError, ResumeExecution, Unavailable};
use greenroom_actors::testkit::{World, pass, registry_of, start, target};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::workflows::{all, ask, child, workflow};

/// Long enough for everything that waits for nothing.
const AT_ONCE: Duration = Duration::from_millis(1);

type Resumed = JoinHandle<Result<ExecutionOutcome, ResumeError>>;

/// Returns a world in which the execution `e` waits at the questions `p` and `q`, and in a child.
async fn world() -> World {
    tokio::time::pause();
    let picky = json!({ "properties": { "text": { "pattern": "^([a-z]{1,20}){1,20}$" } } });
    let costly = StepDefinition { resume_schema: Some(picky), ..ask("costly") };
    let branches =
        vec![("one", vec![ask("p")]), ("two", vec![costly]), ("three", vec![child("c", "asks")])];
    let asks = workflow("asks", vec![ask("manager")]);
    let registry = registry_of([workflow("w", vec![all("all", branches)]), asks]);
    let world = World::launch(registry, RuntimeLimits::default()).await;
    world.runtime.execute(start("w", "e", json!({}))).await.unwrap();
    world
}

/// Sends a resume of a step to the execution, which has not handled it yet.
fn resumes(world: &World, step: &str, data: Value) -> Resumed {
    let runtime = world.runtime.clone();
    let step_id = Some(step.to_owned());
    let request = ResumeExecution { step_id, data, ..Default::default() };
    let mut resumed = Box::pin(async move { runtime.resume(&target("w", "e"), request).await });
    assert!(resumed.as_mut().now_or_never().is_none());
    actix::spawn(resumed)
}

/// Handles what was sent, in an outage.
async fn begin_outage(world: &World) {
    world.store.begin_outage();
    pass(AT_ONCE).await;
}

fn approved() -> Value {
    json!({ "approved": 1 })
}

/// Ends the outage by a refusal of the appends of `e`, which can be loaded at once again. The refusal
/// is then on its way to the actor.
fn refuse_appends(world: &World) {
    world.store.set_lost([slot_of(&ExecutionId::trusted("e"))].into_iter().collect());
    world.store.end_outage();
    world.store.set_lost(SlotSet::new());
}

fn moved(id: Option<&str>) -> Result<ExecutionOutcome, ResumeError> {
    let execution = id.map(ExecutionId::trusted);
    Err(ResumeError::Unavailable(Unavailable::Moved { execution }))
}

#[actix::test]
async fn a_command_behind_the_refusal_is_carried_out_by_the_next_actor() {
    let world = world().await;
    let refused = resumes(&world, "p", approved());
    begin_outage(&world).await;
    refuse_appends(&world);
    let (runtime, e) = (&world.runtime, target("w", "e"));
    // both wait in the mailbox of the actor that gives up
    let (state, cancelled) = tokio::join!(runtime.describe(&e), runtime.cancel(&e, None, None));
    assert_eq!(state.unwrap().status, Status::Suspended);
    assert!(cancelled.is_ok(), "{cancelled:?}");
    assert_eq!(refused.await.unwrap(), moved(Some("e")));
    pass(Duration::from_secs(60)).await;
    assert_eq!(world.live(), 0, "the actor that gave up has ended");
}

#[actix::test]
async fn a_stop_behind_the_refusal_has_nothing_to_wait_for() {
    let world = world().await;
    let refused = resumes(&world, "p", approved());
    begin_outage(&world).await;
    refuse_appends(&world);
    let begun = Instant::now();
    world.runtime.drain(Duration::ZERO).await;
    assert_eq!(begun.elapsed(), Duration::ZERO);
    assert_eq!(refused.await.unwrap(), moved(Some("e")));
}

#[actix::test]
async fn a_caller_whose_command_was_not_decided_knows_that_nothing_is_recorded() {
    let world = world().await;
    world.workers.hold();
    let refused = resumes(&world, "p", approved());
    let undecided = resumes(&world, "costly", json!({ "text": "a".repeat(300) }));
    begin_outage(&world).await;
    assert_eq!(world.workers.held(), 1);
    refuse_appends(&world);
    assert_eq!(undecided.await.unwrap(), moved(None));
    assert_eq!(refused.await.unwrap(), moved(Some("e")));
}

#[actix::test]
async fn a_caller_whose_resume_a_child_takes_knows_that_it_may_be_recorded() {
    let world = world().await;
    let refused = resumes(&world, "p", approved());
    let taken = resumes(&world, "c", approved());
    begin_outage(&world).await;
    refuse_appends(&world);
    let busy = Unavailable::Busy { execution: Some(ExecutionId::trusted("e")) };
    assert_eq!(taken.await.unwrap(), Err(ResumeError::Unavailable(busy)));
    assert_eq!(refused.await.unwrap(), moved(Some("e")));
    pass(Duration::from_secs(10)).await;
    let again = resumes(&world, "c", approved()).await.unwrap();
    let gone = ResumeError::StepNotSuspended("c".to_owned());
    assert_eq!(again, Err(gone), "the child has taken it");
}

#[actix::test]
async fn the_refusal_of_a_child_names_the_execution_that_its_caller_knows() {
    let world = world().await;
    let all = world.runtime.list(&ExecutionFilter::default(), None, 10).await.unwrap().0;
    let child = all.into_iter().find(|row| row.header.parent.is_some()).unwrap().header.id.clone();
    let resumed = resumes(&world, "c", approved());
    begin_outage(&world).await;
    world.store.set_lost([slot_of(&child)].into_iter().collect());
    world.store.end_outage();
    assert_eq!(resumed.await.unwrap(), moved(Some("e")));
}
