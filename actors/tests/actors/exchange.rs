//! Replacing the registry: work that has begun keeps its definitions, and executions that waited
//! for a missing name continue.

use std::time::Duration;

use greenroom_actors::RuntimeLimits;
use greenroom_actors::agent::AgentDefinition;
use greenroom_actors::domain::definition::StepDefinition;
use greenroom_actors::ports::model::Role;
use greenroom_actors::ports::store::Status;
use greenroom_actors::registry::Registry;
use greenroom_actors::requests::StartError;
use greenroom_actors::testkit::{World, pass, registry_of, start, target};
use serde_json::{Value, json};

use crate::agents::{Model, agent, text};
use crate::workflows::{
    Calls, add_agent, all, ask, child, map, resume, run, spawn, with_functions, workflow,
};

const A_MOMENT: Duration = Duration::from_millis(1);
/// Long enough for a waiting execution to leave memory.
const A_WHILE: Duration = Duration::from_secs(60);

fn of(id: &str, steps: Vec<StepDefinition>) -> Registry {
    registry_of([workflow(id, steps)])
}

async fn world(registry: Registry) -> World {
    World::launch(registry, RuntimeLimits::default()).await
}

/// Starts the execution without waiting for it.
async fn begin(world: &World) {
    spawn(world, start("w", "e", json!({})));
    pass(A_MOMENT).await;
}

/// Restarts without callers, so that an execution that cannot continue leaves memory.
async fn left_memory(world: World) -> World {
    let world = world.restart().await;
    pass(A_WHILE).await;
    assert_eq!(world.live(), 0);
    world
}

async fn status(world: &World) -> Status {
    world.runtime.describe(&target("w", "e")).await.unwrap().status
}

async fn resumed(world: &World) -> Option<Value> {
    let request = resume(json!({ "approved": 1 }));
    world.runtime.resume(&target("w", "e"), request).await.unwrap().result().cloned()
}

#[actix::test]
async fn an_execution_keeps_its_definition() {
    tokio::time::pause();
    let old = || of("w", vec![ask("manager"), map("end", json!("'old'"))]);
    let new = || of("w", vec![ask("manager"), map("end", json!("'new'"))]);
    for (name, later, restarts) in [
        ("changed", new(), false),
        ("changed, after a restart", new(), true),
        ("gone", Registry::default(), false),
        ("gone, after a restart", Registry::default(), true),
    ] {
        let mut world = world(old()).await;
        world.runtime.execute(start("w", "e", json!({}))).await.unwrap();
        world.exchange(later).await.unwrap();
        if restarts {
            world = world.restart().await;
        }
        assert_eq!(resumed(&world).await, Some(json!("old")), "{name}");
    }
}

#[actix::test]
async fn a_new_execution_uses_the_newest_definition() {
    tokio::time::pause();
    let mut world = world(of("w", vec![map("a", json!("1"))])).await;
    world.exchange(of("w", vec![map("a", json!("2"))])).await.unwrap();
    let outcome = world.runtime.execute(start("w", "e", json!({}))).await.unwrap();
    assert_eq!(outcome.result(), Some(&json!(2)));
    // the definition was stored before use, so the record can be read without that registry
    world.exchange(Registry::default()).await.unwrap();
    let world = world.restart().await;
    assert_eq!(status(&world).await, Status::Completed);
    let gone = world.runtime.execute(start("w", "f", json!({}))).await;
    assert!(matches!(gone, Err(StartError::UnknownWorkflow(_))), "{gone:?}");
}

#[actix::test]
async fn a_registry_whose_definitions_cannot_be_stored_is_not_used() {
    tokio::time::pause();
    let mut world = world(of("w", vec![map("a", json!("1"))])).await;
    world.store.set_writable(false);
    assert!(world.exchange(of("w", vec![map("a", json!("2"))])).await.is_err());
    world.store.set_writable(true);
    let outcome = world.runtime.execute(start("w", "e", json!({}))).await.unwrap();
    assert_eq!(outcome.result(), Some(&json!(1)));
}

#[actix::test]
async fn an_execution_continues_when_a_missing_name_is_registered() {
    tokio::time::pause();
    let complete = |mut registry: Registry| {
        let model = Model::new([text("done")]);
        add_agent(&mut registry, "helper", model, AgentDefinition::default());
        let child = registry_of([workflow("c", vec![map("a", json!("1"))])]);
        registry.workflows.extend(child.workflows);
        with_functions(registry, &Calls::default())
    };
    for (name, lacking) in [
        ("a function", run("a", "slow")),
        ("an agent", agent("a")),
        ("a workflow", child("a", "c")),
    ] {
        for (place, is_in_memory) in [("memory", true), ("its rows", false)] {
            let mut world = world(of("w", vec![lacking.clone()])).await;
            begin(&world).await;
            if !is_in_memory {
                world = left_memory(world).await;
            }
            assert_eq!(status(&world).await, Status::Running, "{name} in {place}");
            world.exchange(complete(of("w", vec![map("other", json!("1"))]))).await.unwrap();
            pass(Duration::from_secs(1)).await;
            assert_eq!(status(&world).await, Status::Completed, "{name} in {place}");
        }
    }
}

#[actix::test]
async fn a_branch_that_lacked_a_name_continues_beside_a_suspended_one() {
    tokio::time::pause();
    let steps = vec![all("both", vec![("x", vec![ask("manager")]), ("y", vec![run("b", "slow")])])];
    let mut world = world(of("w", steps.clone())).await;
    begin(&world).await;
    assert_eq!(status(&world).await, Status::Running);
    world.exchange(with_functions(of("w", steps), &Calls::default())).await.unwrap();
    pass(Duration::from_millis(200)).await;
    assert_eq!(resumed(&world).await, Some(json!([{ "approved": 1 }, "slow"])));
}

#[actix::test]
async fn no_execution_is_loaded_while_its_name_is_still_missing() {
    tokio::time::pause();
    let registry = || of("w", vec![run("a", "unregistered")]);
    let world = world(registry()).await;
    begin(&world).await;
    let mut world = left_memory(world).await;
    world.exchange(with_functions(registry(), &Calls::default())).await.unwrap();
    pass(A_MOMENT).await;
    assert_eq!(world.live(), 0, "the execution was loaded for nothing");
}

#[actix::test]
async fn a_step_uses_the_agent_that_is_configured_when_it_begins() {
    tokio::time::pause();
    let model = Model::new([text("one"), text("two")]);
    let registry = |instructions: &str| {
        let mut registry = of("w", vec![agent("first"), agent("second")]);
        let instructions = Some(instructions.into());
        let helper = AgentDefinition { instructions, ..AgentDefinition::default() };
        add_agent(&mut registry, "helper", model.clone(), helper);
        registry
    };
    let mut world = world(registry("Be short")).await;
    begin(&world).await;
    world.exchange(registry("Be long")).await.unwrap();
    pass(Duration::from_secs(1)).await;
    assert_eq!(status(&world).await, Status::Completed);
    let instructions = model.received(Role::System);
    assert_eq!(instructions, ["Be short", "Be long"]);
}

#[actix::test]
async fn running_executions_are_counted_across_changes_of_the_registry() {
    tokio::time::pause();
    let registry = || with_functions(of("w", vec![run("a", "slow")]), &Calls::default());
    let mut world = world(registry()).await;
    begin(&world).await;
    for later in [registry(), Registry::default(), registry()] {
        world.exchange(later).await.unwrap();
        assert_eq!(world.runtime.stats().executions_running, [("w".to_owned(), 1)]);
    }
    pass(Duration::from_secs(1)).await;
    assert_eq!(world.runtime.stats().executions_running, [("w".to_owned(), 0)]);
    world.exchange(Registry::default()).await.unwrap();
    assert!(world.runtime.stats().executions_running.is_empty());
}
