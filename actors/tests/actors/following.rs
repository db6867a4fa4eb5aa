//! Executions that code of the process follows: the past, what happens live, and what is lost between.

use std::time::Duration;

use futures_util::StreamExt as _;
use greenroom_actors::domain::ids::ExecutionId;
use greenroom_actors::domain::slot::{SlotSet, slot_of};
use greenroom_actors::ports::store::Status;
use greenroom_actors::requests::DescribeError;
use greenroom_actors::testkit::{World, pass, registry_of, start, target};
use greenroom_actors::{Runtime, RuntimeLimits};
use serde_json::json;
use tokio::task::JoinHandle;

use crate::races::facts_of;
use crate::workflows::{ask, map, resume, sleep, workflow};

/// Long enough for everything that waits for nothing.
const AT_ONCE: Duration = Duration::from_millis(1);

async fn world() -> World {
    tokio::time::pause();
    let steps = vec![ask("manager"), sleep("nap", 1000), map("z", json!(1))];
    let world = World::launch(registry_of([workflow("w", steps)]), RuntimeLimits::default()).await;
    world.runtime.execute(start("w", "e", json!({}))).await.unwrap();
    world
}

/// Collects the event numbers of `e` until they end.
fn follow(runtime: &Runtime, after: u64) -> JoinHandle<Vec<u64>> {
    let facts = runtime.follow(target("w", "e"), after);
    tokio::spawn(async move {
        let facts: Vec<_> = facts.map(Result::unwrap).collect().await;
        facts.iter().flat_map(|fact| fact.seq..fact.next_seq()).collect()
    })
}

async fn all_numbers(runtime: &Runtime) -> Vec<u64> {
    let facts = facts_of(runtime, "e").await;
    facts.iter().flat_map(|fact| fact.seq..fact.next_seq()).collect()
}

#[actix::test]
async fn past_and_live_facts_come_once_each_until_the_end() {
    let world = world().await;
    let (whole, part) = (follow(&world.runtime, 0), follow(&world.runtime, 3));
    pass(AT_ONCE).await;
    let data = resume(json!({ "approved": 1 }));
    world.runtime.resume(&target("w", "e"), data).await.unwrap();
    let all = all_numbers(&world.runtime).await;
    assert_eq!(whole.await.unwrap(), all);
    let of_part = part.await.unwrap();
    assert!(of_part[0] <= 4 && all.ends_with(&of_part), "{of_part:?} of {all:?}");
    assert_eq!(follow(&world.runtime, 0).await.unwrap(), all, "after the end");
    let last = *all.last().unwrap();
    assert_eq!(follow(&world.runtime, last).await.unwrap(), [0; 0], "nothing follows");
}

#[actix::test]
async fn a_lost_actor_is_followed_again_without_a_gap() {
    let world = world().await;
    let (followed, waits) = (follow(&world.runtime, 0), world.runtime.clone());
    let ended = tokio::spawn(async move { waits.state_when(&target("w", "e"), |_| false).await });
    pass(AT_ONCE).await;
    world.store.set_lost([slot_of(&ExecutionId::trusted("e"))].into_iter().collect());
    let data = || resume(json!({ "approved": 1 }));
    assert!(world.runtime.resume(&target("w", "e"), data()).await.is_err());
    pass(Duration::from_secs(1)).await;
    world.store.set_lost(SlotSet::new());
    world.runtime.resume(&target("w", "e"), data()).await.unwrap();
    assert_eq!(followed.await.unwrap(), all_numbers(&world.runtime).await);
    assert_eq!(ended.await.unwrap().unwrap().status, Status::Completed);
}

#[actix::test]
async fn a_state_is_waited_for_or_is_the_last_one() {
    let world = world().await;
    let it = target("w", "e");
    let waiting = world.runtime.state_when(&it, |state| state.status == Status::Suspended);
    assert_eq!(waiting.await.unwrap().suspensions.len(), 1);
    let runtime = world.runtime.clone();
    let never = tokio::spawn(async move {
        runtime.state_when(&target("w", "e"), |state| state.status == Status::Completed).await
    });
    pass(AT_ONCE).await;
    world.runtime.cancel(&it, None, None).await.unwrap();
    assert_eq!(never.await.unwrap().unwrap().status, Status::Cancelled);
}

#[actix::test]
async fn what_cannot_be_followed_is_refused() {
    let world = world().await;
    let unknown = world.runtime.state_when(&target("w", "x"), |_| true).await;
    assert_eq!(unknown.unwrap_err(), DescribeError::NotFound);
    let mut unknown = Box::pin(world.runtime.follow(target("other", "e"), 0));
    assert_eq!(unknown.next().await.unwrap().unwrap_err(), DescribeError::NotFound);
    let runtime = world.runtime.clone();
    let followed = tokio::spawn(async move {
        runtime
            .follow(target("w", "e"), 0)
            .filter_map(async |fact| fact.err())
            .collect::<Vec<_>>()
            .await
    });
    pass(AT_ONCE).await;
    world.runtime.drain(Duration::from_millis(1)).await;
    let errors = followed.await.unwrap();
    assert!(matches!(errors[..], [DescribeError::Unavailable(_)]), "{errors:?}");
}
