//! A forgotten user appears in no execution: neither in its facts nor in memory.

use std::time::Duration;

use futures_util::future::join;
use greenroom_actors::RuntimeLimits;
use greenroom_actors::domain::principal::FORGOTTEN;
use greenroom_actors::observe::span::{SpanPhase, SpanWork};
use greenroom_actors::ports::store::{Asks as _, Executions as _, Status};
use greenroom_actors::requests::{ExecutionState, Principal, ResumeExecution};
use greenroom_actors::testkit::{World, pass, registry_of, start, target};
use greenroom_actors::visibility::Visibility;
use serde_json::{Value, json};

use crate::approvals::{
    self, Effects, calls, conversation, denied, generate, guarded, over_100, recorded, text,
};
use crate::traces::world_with;
use crate::workflows::{ask, map, run, spawn, workflow};

fn answer(by: &str) -> ResumeExecution {
    let by = Some(Principal::verified(by));
    ResumeExecution { data: json!({ "approved": 1 }), by, ..Default::default() }
}

/// Returns the user and the data of the first step's answer.
fn by(state: &ExecutionState) -> (String, Value) {
    let resume = state.steps[0].resume.clone().unwrap();
    (resume.by.unwrap().id.to_string(), resume.data.as_deref().cloned().unwrap_or_default())
}

#[actix::test]
async fn a_forgotten_user_is_erased_from_running_and_stored_executions() {
    tokio::time::pause();
    let steps = vec![ask("manager"), ask("again"), map("after", json!("data"))];
    let world = World::launch(registry_of([workflow("w", steps)]), RuntimeLimits::default()).await;
    let it = target("w", "e");
    world.runtime.execute(start("w", "e", json!({ "n": 1 }))).await.unwrap();
    world.runtime.resume(&it, answer("lea")).await.unwrap();
    let state = world.runtime.describe(&it).await.unwrap();
    assert_eq!(by(&state), ("lea".to_owned(), json!({ "approved": 1 })));

    world.runtime.forget_user("lea").await.unwrap();

    let forgotten = (FORGOTTEN.to_owned(), json!(null));
    assert_eq!(by(&world.runtime.describe(&it).await.unwrap()), forgotten, "in memory");
    pass(Duration::from_secs(600)).await;
    assert_eq!(by(&world.runtime.describe(&it).await.unwrap()), forgotten, "in the record");
    let outcome = world.runtime.resume(&it, answer("ann")).await.unwrap();
    assert_eq!(outcome.status(), Status::Completed, "the execution continues");
    let facts = world.store.facts(&it.execution_id, 0, 100).await.unwrap();
    let text = serde_json::to_string(&facts).unwrap();
    assert!(!text.contains("lea") && text.contains("ann"), "{text}");
}

#[actix::test]
async fn a_user_forgotten_during_a_load_is_erased_from_the_loaded_state() {
    tokio::time::pause();
    let steps = vec![ask("manager"), ask("again")];
    let world = World::launch(registry_of([workflow("w", steps)]), RuntimeLimits::default()).await;
    let it = target("w", "e");
    world.runtime.execute(start("w", "e", json!(1))).await.unwrap();
    world.runtime.resume(&it, answer("lea")).await.unwrap();
    pass(Duration::from_secs(600)).await;
    assert_eq!(world.live(), 0);

    let (read, forgotten) =
        join(world.runtime.describe(&it), world.runtime.forget_user("lea")).await;
    forgotten.unwrap();
    assert_eq!(by(&read.unwrap()), (FORGOTTEN.to_owned(), json!(null)));
}

#[actix::test]
async fn a_forgotten_user_is_not_named_where_the_user_refused_a_call() {
    tokio::time::pause();
    let script = [calls(&[("c1", "refund", json!({ "amount": 500 }))]), text("sorry")];
    let tools = vec![guarded(&Effects::default(), over_100())];
    let (world, model) = approvals::world(script, tools).await;
    let waiting = generate(&world).await;
    approvals::answer(&world, json!({ "approved": false, "reason": "too much" })).await;
    let (_, _, outcomes) = recorded(&world, &waiting.id).await;
    assert_eq!(outcomes, [denied("refused by a person: too much")]);
    let ask_id = &*waiting.asks[0].ask_id;
    let answered = world.store.ask_content(ask_id).await.unwrap();
    assert!(format!("{answered:?}").contains("\"lea\""), "until then: {answered:?}");

    world.runtime.forget_user("lea").await.unwrap();
    let all = &Visibility::Everything;
    let entry = world.runtime.generation("desk", &waiting.id, all).await.unwrap();
    let kept = [
        format!("{entry:?}"),
        format!("{:?}", conversation(&world).await),
        format!("{:?}", world.store.ask_content(ask_id).await.unwrap()),
        format!("{:?}", model.requests()),
    ];
    let names = |text: &String| text.split(|it: char| !it.is_alphanumeric()).any(|it| it == "lea");
    assert!(!kept.iter().any(names), "{kept:?}");
}

#[actix::test]
async fn a_forgotten_user_is_in_no_span_that_ends_afterwards() {
    tokio::time::pause();
    let definition = workflow("w", vec![run("a", "slow")]);
    let (world, observed) = world_with(RuntimeLimits::default(), vec![definition]).await;
    let it = target("w", "e");
    spawn(&world, start("w", "e", json!(1)));
    pass(Duration::from_millis(10)).await;
    world.runtime.suspend(&it, None, Some(Principal::verified("lea"))).await.unwrap();
    world.runtime.forget_user("lea").await.unwrap();
    world.runtime.resume(&it, ResumeExecution::default()).await.unwrap();
    world.runtime.observers_settled().await;
    let observed = observed.borrow();
    let ended = observed.iter().filter(|event| event.phase == SpanPhase::Ended);
    let users: Vec<&str> = ended
        .filter_map(|event| match &event.span.work {
            SpanWork::Wait { suspended_by, .. } => suspended_by.as_ref().map(|by| &*by.id),
            _ => None,
        })
        .collect();
    assert_eq!(users, [FORGOTTEN]);
}
