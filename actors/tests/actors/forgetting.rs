//! Who is forgotten is in no execution any more: not in its facts, nor in what memory keeps.

use std::time::Duration;

use crate::workflows::{ask, map, workflow};
use greenroom_actors::RuntimeLimits;
use greenroom_actors::domain::principal::FORGOTTEN;
use greenroom_actors::ports::store::{Executions as _, Status};
use greenroom_actors::requests::{Principal, ResumeExecution};
use greenroom_actors::testkit::{World, pass, registry_of, start, target};
use serde_json::json;

#[actix::test]
async fn who_resumed_is_struck_from_what_runs_and_what_is_stored() {
    tokio::time::pause();
    let steps = vec![ask("manager"), ask("again"), map("after", json!("data"))];
    let world = World::launch(registry_of([workflow("w", steps)]), RuntimeLimits::default()).await;
    let it = target("w", "e");
    world.runtime.execute(start("w", "e", json!({ "n": 1 }))).await.unwrap();
    let answer = |by: &str| ResumeExecution {
        data: json!({ "approved": 1 }),
        by: Some(Principal::verified(by)),
        ..Default::default()
    };
    world.runtime.resume(&it, answer("lea")).await.unwrap();
    let by = |state: &greenroom_actors::requests::ExecutionState| {
        let resume = state.steps[0].resume.clone().unwrap();
        (resume.by.unwrap().id.to_string(), (*resume.data).clone())
    };
    let state = world.runtime.describe(&it).await.unwrap();
    assert_eq!(by(&state), ("lea".to_owned(), json!({ "approved": 1 })));

    world.runtime.forget_user("lea").await.unwrap();

    let forgotten = (FORGOTTEN.to_owned(), json!(null));
    assert_eq!(by(&world.runtime.describe(&it).await.unwrap()), forgotten, "in memory");
    pass(Duration::from_secs(600)).await;
    assert_eq!(by(&world.runtime.describe(&it).await.unwrap()), forgotten, "in the record");
    let rest = world.runtime.resume(&it, answer("ann")).await.unwrap();
    assert_eq!(rest.status, Status::Completed, "it goes on");
    let facts = world.store.facts(&it.execution_id, 0, 100).await.unwrap();
    let text = serde_json::to_string(&facts).unwrap();
    assert!(!text.contains("lea") && text.contains("ann"), "{text}");
}
