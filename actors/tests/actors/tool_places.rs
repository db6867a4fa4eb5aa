//! Calls that wait for their place among the concurrent calls of a tool, when the process ends.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::FutureExt as _;
use greenroom_actors::RuntimeLimits;
use greenroom_actors::agent::OnCrash;
use greenroom_actors::agent::generation::GenerationRequest;
use greenroom_actors::agent::tool::{ToolBody, ToolContext, ToolDefinition, ToolFunction};
use greenroom_actors::domain::definition::{Body, Projection, StepKind};
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
    let args = Some(Projection(json!({ "n": "input.n" })));
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
    let world = stepping(2, &made).await;
    begin(&world, 1).await;
    begin(&world, 2).await;
    assert_eq!(*made.lock().unwrap(), [(json!(1), false)], "the other one waits");
    // one of them hangs again, the other one waits again
    let world = world.restart().await;
    pass(Duration::from_millis(100)).await;
    let second = made.lock().unwrap()[1].clone();
    assert!([(json!(1), true), (json!(2), false)].contains(&second), "{second:?}");
    let world = world.restart().await;
    pass(Duration::from_millis(100)).await;
    for n in [1, 2] {
        assert_eq!(result(&world, n).await, (Status::Completed, Some(json!(n))));
    }
    let made = made.lock().unwrap();
    for n in [1, 2] {
        let of: Vec<_> = made.iter().filter(|(of, _)| *of == n).map(|(_, again)| *again).collect();
        assert!(!of[0] && of[1..].iter().all(|again| *again), "{made:?}");
    }
    assert_eq!(made.len(), 4, "{made:?}");
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

#[actix::test]
async fn a_call_of_an_agent_that_waited_for_its_place_is_made_after_a_crash() {
    tokio::time::pause();
    let made = Made::default();
    let two = [("c1", "book", json!({ "n": 1 })), ("c2", "book", json!({ "n": 2 }))];
    let (world, _) = world([calls(&two), text("done")], vec![booking(1, &made)]).await;
    let running =
        world.runtime.generate(GenerationRequest { chosen_id: Some("g".into()), ..request() });
    assert!(tokio::time::timeout(Duration::from_secs(1), running).await.is_err());
    let world = world.restart().await;
    let (status, _, outcomes) = recorded(&world, "g").await;
    assert_eq!(status, GenerationStatus::Completed);
    let [ToolOutcome::Error(first), second] = &outcomes[..] else { panic!("{outcomes:?}") };
    assert!(first.contains("interrupted by a restart"), "{first}");
    assert_eq!(*second, ToolOutcome::Output(json!(2)));
    assert_eq!(*made.lock().unwrap(), [(json!(1), false), (json!(2), false)]);
}
