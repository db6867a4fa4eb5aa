//! Calls that wait for their place among the concurrent calls of a tool, when the process ends.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::FutureExt as _;
use greenroom_actors::RuntimeLimits;
use greenroom_actors::agent::OnCrash;
use greenroom_actors::agent::generation::GenerationRequest;
use greenroom_actors::agent::tool::{ToolBody, ToolContext, ToolDefinition, ToolFunction};
use greenroom_actors::domain::definition::{Body, Mapping, StepKind};
use greenroom_actors::domain::message::ToolOutcome;
use greenroom_actors::ports::store::{GenerationStatus, Status};
use greenroom_actors::testkit::{World, pass, registry_of, start, target};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::approvals::{calls, recorded, request, spec, text, world};
use crate::workflows::{step, workflow};

/// Calls that were made: the `n` of their arguments, and whether they may have been made before.
type Made = Arc<Mutex<Vec<(Value, bool)>>>;

/// A tool with one place, whose first `hanging` calls never end.
fn booking(hanging: usize, made: &Made) -> ToolDefinition {
    let made = Arc::clone(made);
    let body: ToolFunction = Arc::new(move |arguments, context: ToolContext| {
        let made = Arc::clone(&made);
        async move {
            let count = {
                let mut made = made.lock().unwrap();
                made.push((arguments["n"].clone(), context.is_repetition));
                made.len()
            };
            if count <= hanging {
                return std::future::pending().await;
            }
            Ok(arguments["n"].clone())
        }
        .boxed()
    });
    let permits = Some(Arc::new(Semaphore::new(1)));
    let made = ToolDefinition::new(spec("book"), ToolBody::Function(body)).unwrap();
    ToolDefinition { permits, on_crash: OnCrash::Tell, ..made }
}

async fn stepping(hanging: usize, made: &Made) -> World {
    let args = Some(Mapping(json!({ "n": "input.n" })));
    let body = Body::Tool { tool: "book".to_owned(), args };
    let mut registry = registry_of([workflow("w", vec![step("book", StepKind::Then { body })])]);
    registry.tools.insert("book".to_owned(), Arc::new(booking(hanging, made)));
    World::launch(registry, RuntimeLimits::default()).await
}

async fn begin(world: &World, n: u32) {
    let begun = world.runtime.begin(start("w", &format!("e{n}"), json!({ "n": n }))).await;
    drop(begun.unwrap());
    pass(Duration::from_millis(100)).await;
}

async fn result(world: &World, n: u32) -> (Status, Option<Value>) {
    let state = world.runtime.describe(&target("w", &format!("e{n}"))).await.unwrap();
    (state.status, state.result.as_deref().cloned())
}

#[actix::test]
async fn a_step_that_waited_for_its_place_is_made_for_the_first_time_after_a_crash() {
    tokio::time::pause();
    let made = Made::default();
    // the place is taken by one call in each of four lives, so that all others wait again and again
    let lives = 4;
    let mut world = stepping(lives, &made).await;
    for n in 1..=4 {
        begin(&world, n).await;
    }
    assert_eq!(*made.lock().unwrap(), [(json!(1), false)], "the others wait");
    for life in 2..=lives {
        world = world.restart().await;
        pass(Duration::from_millis(100)).await;
        assert_eq!(made.lock().unwrap().len(), life);
    }
    let world = world.restart().await;
    pass(Duration::from_millis(100)).await;
    let made = made.lock().unwrap().clone();
    for n in 1..=4 {
        let of = made.iter().filter(|(of, _)| *of == n);
        let again: Vec<_> = of.map(|(_, is_repetition)| *is_repetition).collect();
        // one that was made once is never made as if for the first time, however often it waited since
        assert!(!again[0] && again[1..].iter().all(|again| *again), "{made:?}");
        // each crash counts for the call that it has interrupted
        let hung = made[..lives].iter().filter(|(of, _)| *of == n).count();
        let expected = match hung {
            0..=2 => (Status::Completed, Some(json!(n))),
            _ => (Status::Error, None),
        };
        assert_eq!(result(&world, n).await, expected, "{made:?}");
    }
}

#[actix::test]
async fn a_step_that_waits_for_its_place_is_not_made_by_a_process_that_stops() {
    tokio::time::pause();
    let made = Made::default();
    let world = stepping(1, &made).await;
    begin(&world, 1).await;
    begin(&world, 2).await;
    world.runtime.drain(Duration::ZERO).await;
    assert_eq!(*made.lock().unwrap(), [(json!(1), false)]);
    let world = world.restart().await;
    pass(Duration::from_millis(100)).await;
    let mut made = made.lock().unwrap().split_off(1);
    made.sort_by_key(|(n, _)| n.as_u64());
    assert_eq!(made, [(json!(1), true), (json!(2), false)]);
    assert_eq!(result(&world, 2).await, (Status::Completed, Some(json!(2))));
}

async fn generating(world: &World) {
    let request = GenerationRequest { chosen_id: Some("g".into()), ..request() };
    drop(world.runtime.begin_generation(request).await.unwrap());
    pass(Duration::from_millis(100)).await;
}

#[actix::test]
async fn a_call_of_an_agent_that_waited_for_its_place_is_made_after_a_crash() {
    tokio::time::pause();
    let made = Made::default();
    let two = [("c1", "book", json!({ "n": 1 })), ("c2", "book", json!({ "n": 2 }))];
    let (world, _) = world([calls(&two), text("done")], vec![booking(1, &made)]).await;
    generating(&world).await;
    let world = world.restart().await;
    let (status, _, outcomes) = recorded(&world, "g").await;
    assert_eq!(status, GenerationStatus::Completed);
    let [ToolOutcome::Error(first), second] = &outcomes[..] else { panic!("{outcomes:?}") };
    assert!(first.contains("interrupted by a restart"), "{first}");
    assert_eq!(*second, ToolOutcome::Output(json!(2)));
    assert_eq!(*made.lock().unwrap(), [(json!(1), false), (json!(2), false)]);
}

#[actix::test]
async fn crashes_while_a_call_of_an_agent_waits_for_its_place_do_not_count() {
    tokio::time::pause();
    let made = Made::default();
    let tool = booking(0, &made);
    let taken = tool.permits.clone().unwrap().acquire_owned().await.unwrap();
    let script = [calls(&[("c1", "book", json!({ "n": 1 }))]), text("done")];
    let (mut world, _) = world(script, vec![tool]).await;
    generating(&world).await;
    for _ in 0..4 {
        world = world.restart().await;
        pass(Duration::from_millis(100)).await;
    }
    assert_eq!(*made.lock().unwrap(), []);
    drop(taken);
    pass(Duration::from_millis(100)).await;
    let (status, _, outcomes) = recorded(&world, "g").await;
    let expected = (GenerationStatus::Completed, vec![ToolOutcome::Output(json!(1))]);
    assert_eq!((status, outcomes), expected);
    assert_eq!(*made.lock().unwrap(), [(json!(1), false)]);
}

#[actix::test]
async fn a_repetition_that_waited_for_its_place_is_still_one() {
    tokio::time::pause();
    let made = Made::default();
    let tool = ToolDefinition { on_crash: OnCrash::Repeat, ..booking(1, &made) };
    let permits = tool.permits.clone().unwrap();
    let script = [calls(&[("c1", "book", json!({ "n": 1 }))]), text("done")];
    let (mut world, _) = world(script, vec![tool]).await;
    generating(&world).await;
    // another caller is next, and has the place when the call is to be repeated
    let next = actix::spawn(permits.acquire_owned());
    pass(Duration::from_millis(1)).await;
    for _ in 0..2 {
        world = world.restart().await;
        pass(Duration::from_millis(100)).await;
    }
    drop(next.await.unwrap());
    pass(Duration::from_millis(100)).await;
    assert_eq!(recorded(&world, "g").await.0, GenerationStatus::Completed);
    assert_eq!(*made.lock().unwrap(), [(json!(1), false), (json!(1), true)]);
}
