//! Resources of other users are not found: executions, their traces, generations.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use actix::{Actor, Context, Handler};
use greenroom_actors::RuntimeLimits;
use greenroom_actors::agent::AgentDefinition;
use greenroom_actors::agent::generation::GenerationRequest;
use greenroom_actors::domain::message::{Message, Role};
use greenroom_actors::observe::span::{ObserverFilter, SpanEvent};
use greenroom_actors::ports::model::scripted::{ScriptedAnswer, ScriptedModel};
use greenroom_actors::requests::{
    ControlError, DescribeError, EventsRecorded, IdempotencyKey, ResumeError, ResumeExecution,
    StartExecution, Subscriber, Target,
};
use greenroom_actors::runtime::CancelGenerationError;
use greenroom_actors::testkit::{World, pass, registry_of, start, target};
use greenroom_actors::visibility::Visibility;
use serde_json::{Value, json};

use crate::traces::{Observed, observer};
use crate::workflows::{add_agent, ask, child, map, workflow};

/// A subscriber that ignores its events.
struct Nowhere;

impl Actor for Nowhere {
    type Context = Context<Self>;
}

impl Handler<EventsRecorded> for Nowhere {
    type Result = ();

    fn handle(&mut self, _: EventsRecorded, _: &mut Self::Context) {}
}

fn of(user: &str) -> Visibility {
    Visibility::Of(Arc::from(user))
}

fn seen_by(visibility: Visibility) -> Target {
    Target { visibility, ..target("outer", "e") }
}

fn started_by(user: Option<&str>, id: &str) -> StartExecution {
    StartExecution { user_id: user.map(str::to_owned), ..start("outer", id, json!({})) }
}

fn resume(data: Value, key: Option<&str>) -> ResumeExecution {
    let idempotency =
        key.map(|key| IdempotencyKey { scope: Arc::from(key), body_hash: Arc::from("body") });
    ResumeExecution { data, idempotency, ..Default::default() }
}

/// Launches a world in which `outer` waits for its child `inner`, which suspends.
async fn world() -> World {
    let inner = workflow("inner", vec![ask("manager"), map("after", json!("data"))]);
    let outer = workflow("outer", vec![child("sub", "inner")]);
    World::launch(registry_of([outer, inner]), RuntimeLimits::default()).await
}

/// Asserts that no request finds the execution.
async fn assert_hidden(world: &World, visibility: &Visibility) {
    let (runtime, target) = (&world.runtime, seen_by(visibility.clone()));
    let described = runtime.describe(&target).await;
    assert_eq!(described.err(), Some(DescribeError::NotFound), "{visibility:?}");
    let events = Nowhere.start().recipient();
    let subscriber = Subscriber { events, progress: None, disconnect: Arc::new(|| {}) };
    let subscribed = runtime.subscribe(&target, subscriber).await;
    assert_eq!(subscribed, Err(DescribeError::NotFound), "{visibility:?}");
    assert_eq!(
        runtime.suspend(&target, None, None).await,
        Err(ControlError::NotFound),
        "{visibility:?}"
    );
    let resumed = runtime.resume(&target, resume(json!({ "approved": 1 }), None)).await;
    assert_eq!(resumed, Err(ResumeError::NotFound), "{visibility:?}");
    assert_eq!(
        runtime.cancel(&target, None, None).await,
        Err(ControlError::NotFound),
        "{visibility:?}"
    );
}

#[actix::test]
async fn an_execution_of_another_user_is_not_found_live_unloaded_or_ended() {
    tokio::time::pause();
    let world = world().await;
    world.runtime.execute(started_by(Some("ann"), "e")).await.unwrap();
    let others = [of("ben"), of(""), Visibility::Nothing];
    assert_eq!(world.live(), 2);
    for visibility in &others {
        assert_hidden(&world, visibility).await;
    }
    pass(Duration::from_secs(12)).await;
    for visibility in &others {
        assert_eq!(world.live(), 0);
        assert_hidden(&world, visibility).await;
    }
    let state = world.runtime.describe(&seen_by(of("ann"))).await.unwrap();
    assert_eq!(state.header.user_id.as_deref(), Some("ann"));

    let answer = resume(json!({ "approved": 1 }), Some("key"));
    world.runtime.resume(&seen_by(of("ann")), answer).await.unwrap();
    let again = || resume(json!({ "approved": 1 }), Some("key"));
    assert!(world.runtime.resume(&seen_by(of("ann")), again()).await.is_ok());
    for visibility in &others {
        assert_hidden(&world, visibility).await;
        let replayed = world.runtime.resume(&seen_by(visibility.clone()), again()).await;
        assert_eq!(
            replayed,
            Err(ResumeError::NotFound),
            "a known key reveals nothing: {visibility:?}"
        );
    }
}

#[actix::test]
async fn an_execution_without_user_is_visible_only_with_full_visibility() {
    tokio::time::pause();
    let world = world().await;
    world.runtime.execute(started_by(None, "e")).await.unwrap();
    for visibility in [of("ann"), Visibility::Nothing] {
        assert_hidden(&world, &visibility).await;
    }
    world.runtime.cancel(&seen_by(Visibility::Everything), None, None).await.unwrap();
}

/// Returns the names of spans with their users.
fn spans(observed: &Observed) -> BTreeSet<(String, Option<String>)> {
    let user = |event: &SpanEvent| event.span.owner.user_id().map(str::to_owned);
    observed.borrow().iter().map(|event| (event.span.name(), user(event))).collect()
}

#[actix::test]
async fn observers_get_the_traces_that_they_may_see_with_those_of_children() {
    tokio::time::pause();
    let world = world().await;
    let mut all_observed = Vec::new();
    for visibility in [of("ann"), of("eve"), Visibility::Nothing, Visibility::Everything] {
        let (observer, observed) =
            observer(ObserverFilter { visibility, ..ObserverFilter::default() });
        world.runtime.observe(observer).await;
        all_observed.push(observed);
    }
    for (user, id) in [(Some("ann"), "a"), (Some("ben"), "b"), (None, "c")] {
        world.runtime.execute(started_by(user, id)).await.unwrap();
    }
    pass(Duration::from_millis(1)).await;

    // The suspended step has not begun: the wait precedes its first attempt.
    let names = ["invoke_workflow inner", "invoke_workflow outer", "step sub", "wait manager"];
    let of_user = |user: Option<&'static str>| {
        names.map(|name| (name.to_owned(), user.map(str::to_owned))).into_iter()
    };
    assert_eq!(spans(&all_observed[0]), of_user(Some("ann")).collect());
    assert!(all_observed[1].borrow().is_empty());
    assert!(all_observed[2].borrow().is_empty());
    let all = [Some("ann"), Some("ben"), None].into_iter().flat_map(of_user);
    assert_eq!(spans(&all_observed[3]), all.collect());
}

#[actix::test]
async fn a_generation_of_another_user_is_not_found_and_not_in_the_history() {
    tokio::time::pause();
    let mut registry = registry_of([]);
    let answers = [
        ScriptedAnswer::Text("one".into()),
        ScriptedAnswer::Text("two".into()),
        ScriptedAnswer::Hang,
    ];
    let model = ScriptedModel::remote(answers);
    add_agent(&mut registry, "writer", model, AgentDefinition::default());
    let world = World::launch(registry, RuntimeLimits::default()).await;
    let request = |user: &str| GenerationRequest {
        agent_id: "writer".to_owned(),
        messages: vec![Message::text(Role::User, "hello")],
        user_id: Some(user.to_owned()),
        ..GenerationRequest::default()
    };
    let done = world.runtime.generate(request("ann")).await.unwrap().id;
    world.runtime.generate(request("ben")).await.unwrap();
    let running = tokio::task::spawn_local({
        let (runtime, request) = (world.runtime.clone(), request("ann"));
        async move { runtime.generate(request).await }
    });
    pass(Duration::from_secs(1)).await;

    let ids = async |visibility: Visibility| {
        let page = world.runtime.history("writer", &visibility, 0, 10).await.unwrap();
        let ids: Vec<_> = page.entries.into_iter().map(|entry| entry.record.id).collect();
        assert_eq!(page.total, ids.len() as u64, "{visibility:?}");
        ids
    };
    let own = ids(of("ann")).await;
    assert_eq!((own.len(), &own[1]), (2, &done));
    assert_eq!(ids(of("ben")).await.len(), 1);
    assert_eq!(ids(Visibility::Nothing).await.len(), 0);
    assert_eq!(ids(Visibility::Everything).await.len(), 3);

    let cancel = async |id: &str, visibility| {
        world.runtime.cancel_generation("writer", id, &visibility).await
    };
    for id in &own {
        let not_found = Err(CancelGenerationError::NotFound(id.clone()));
        assert_eq!(cancel(id, of("ben")).await, not_found);
        assert_eq!(cancel(id, Visibility::Nothing).await, not_found);
    }
    assert!(
        world.runtime.activity().await.is_agent_working("writer"),
        "another user's cancel has no effect"
    );
    assert_eq!(cancel(&own[0], of("ann")).await, Ok(()));
    assert!(running.await.unwrap().is_err());
}
