//! The inbox: what waits for people is listed while it waits, and answered once.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use greenroom_actors::RuntimeLimits;
use greenroom_actors::domain::definition::WorkflowDefinition;
use greenroom_actors::domain::principal::Principal;
use greenroom_actors::ports::store::{
    Ask, AskFilter, AskKind, AskState, AskSubject, AskedStep, Asks as _, Status,
};
use greenroom_actors::requests::{AnswerAsk, AskDetail, AskError, IdempotencyKey, StartExecution};
use greenroom_actors::testkit::{World, pass, registry_of, start, target};
use greenroom_actors::visibility::Visibility;
use serde_json::{Value, json};

use crate::processes::{Cluster, Process, TAKEN_OVER};
use crate::workflows::{
    Calls, all, ask, ask_until, child, map, race, resume, run, sleep, with_functions, workflow,
};

async fn world(definitions: Vec<WorkflowDefinition>) -> World {
    let registry = with_functions(registry_of(definitions), &Calls::default());
    World::launch(registry, RuntimeLimits::default()).await
}

pub(crate) fn open_ones() -> AskFilter {
    AskFilter { is_open: true, ..AskFilter::default() }
}

async fn listed(world: &World, is_open: bool) -> Vec<Ask> {
    let filter = AskFilter { is_open, ..AskFilter::default() };
    world.runtime.inbox(&filter, None, 100).await.unwrap().asks
}

pub(crate) async fn only_open(world: &World) -> Ask {
    let mut open = listed(world, true).await;
    assert_eq!(open.len(), 1, "{open:?}");
    open.remove(0)
}

pub(crate) fn step_of(ask: &Ask) -> &AskedStep {
    match &ask.subject {
        AskSubject::Step(step) => step,
        AskSubject::Call(call) => panic!("a call waits: {call:?}"),
    }
}

/// Returns paths and states of the closed asks, the last closed first.
async fn closed(world: &World) -> Vec<(String, AskState)> {
    let asks = listed(world, false).await;
    asks.into_iter().map(|ask| (step_of(&ask).path.to_string(), ask.state)).collect()
}

fn answer(data: Value) -> AnswerAsk {
    AnswerAsk { data, by: Some(Principal::verified("lea")), ..AnswerAsk::default() }
}

fn keyed(data: Value, body: &str) -> AnswerAsk {
    let key = IdempotencyKey { scope: Arc::from("answer 1"), body_hash: Arc::from(body) };
    AnswerAsk { idempotency: Some(key), ..answer(data) }
}

fn by_of(detail: &AskDetail) -> Option<&str> {
    detail.answer.as_ref()?.by.as_ref().map(|by| &*by.id)
}

async fn status(world: &World, id: &str) -> Status {
    world.runtime.describe(&target("w", id)).await.unwrap().status
}

#[actix::test]
async fn a_step_that_waits_is_listed_and_answered_once() {
    tokio::time::pause();
    let world = world(vec![workflow("w", vec![ask("manager"), sleep("nap", 1_000)])]).await;
    let request = StartExecution { user_id: Some("ann".to_owned()), ..start("w", "e", json!({})) };
    world.runtime.execute(request).await.unwrap();
    let open = only_open(&world).await;
    let AskedStep { execution_id, path, .. } = step_of(&open);
    assert_eq!((open.kind, open.state, &**path), (AskKind::Step, AskState::Open, "manager"));
    assert_eq!((execution_id.as_str(), open.user_id.as_deref()), ("e", Some("ann")));

    let find = async |visibility| world.runtime.find_ask(&open.id, &visibility).await;
    assert_eq!(find(Visibility::Of("ann".into())).await, Ok(open.clone()));
    assert_eq!(find(Visibility::Of("ben".into())).await, Err(AskError::NotFound));
    let detail = world.runtime.describe_ask(open.clone()).await.unwrap();
    assert!(detail.schema.is_some() && detail.answer.is_none());

    let wrong = world.runtime.answer_ask(open.clone(), answer(json!({}))).await;
    assert_eq!(wrong.err(), Some(AskError::InvalidData("approved: missing".to_owned())));
    assert_eq!(only_open(&world).await, open, "it stays open");

    let data = json!({ "approved": true });
    let answered = world.runtime.answer_ask(open.clone(), answer(data.clone())).await.unwrap();
    assert_eq!((answered.ask.state, by_of(&answered)), (AskState::Answered, Some("lea")));
    assert_eq!(*answered.answer.as_ref().unwrap().data, data);
    assert_eq!(status(&world, "e").await, Status::Running, "the answer did not wait for the end");

    let at = answered.ask.closed_at.unwrap();
    let by = Some(Arc::new(Principal::verified("lea")));
    let expected = AskError::Closed { state: AskState::Answered, at, by };
    // with what was known before, and with what is known now
    for seen in [open, answered.ask] {
        let late = world.runtime.answer_ask(seen, answer(json!({ "approved": 1 }))).await;
        assert_eq!(late.err(), Some(expected.clone()));
    }
    assert_eq!(listed(&world, true).await, []);
}

#[actix::test]
async fn one_of_many_answers_wins() {
    tokio::time::pause();
    let world = world(vec![workflow("w", vec![ask("manager")])]).await;
    for round in 0..40 {
        world.runtime.execute(start("w", &format!("e{round}"), json!({}))).await.unwrap();
        let open = only_open(&world).await;
        let answers = join_all(
            (0..50)
                .map(|n| world.runtime.answer_ask(open.clone(), answer(json!({ "approved": n })))),
        );
        let (won, lost): (Vec<_>, Vec<_>) = answers.await.into_iter().partition(Result::is_ok);
        assert_eq!((won.len(), lost.len()), (1, 49));
        let is_answered =
            |error| matches!(error, AskError::Closed { state: AskState::Answered, .. });
        assert!(lost.into_iter().filter_map(Result::err).all(is_answered));
    }
}

#[actix::test]
async fn a_repeated_answer_with_its_key_gets_the_same() {
    tokio::time::pause();
    let world = world(vec![workflow("w", vec![ask("manager")])]).await;
    world.runtime.execute(start("w", "e", json!({}))).await.unwrap();
    let open = only_open(&world).await;
    let data = || json!({ "approved": true });
    let both =
        join_all([1, 2].map(|_| world.runtime.answer_ask(open.clone(), keyed(data(), "body"))));
    for taken in both.await {
        assert_eq!(taken.unwrap().ask.state, AskState::Answered);
    }
    let world = world.restart().await;
    let stored = world.runtime.find_ask(&open.id, &Visibility::Everything).await.unwrap();
    let again = world.runtime.answer_ask(stored.clone(), keyed(data(), "body")).await.unwrap();
    assert_eq!((again.ask.state, by_of(&again)), (AskState::Answered, Some("lea")));
    let other = world.runtime.answer_ask(stored, keyed(json!({ "approved": 0 }), "other")).await;
    assert_eq!(other.err(), Some(AskError::KeyReused));
}

#[actix::test]
async fn a_function_that_waits_is_answered_after_a_restart() {
    tokio::time::pause();
    let world = world(vec![workflow("w", vec![run("which", "asks")])]).await;
    world.runtime.execute(start("w", "e", json!({}))).await.unwrap();
    let world = world.restart().await;
    let open = only_open(&world).await;
    assert_eq!((open.kind, &*open.reason), (AskKind::Function, "Which one?"));
    let detail = world.runtime.describe_ask(open.clone()).await.unwrap();
    assert_eq!((detail.payload.as_deref(), detail.schema.is_some()), (Some(&json!([1, 2])), false));
    world.runtime.answer_ask(open.clone(), answer(json!(2))).await.unwrap();
    let state = world.runtime.describe(&target("w", "e")).await.unwrap();
    assert_eq!((state.status, state.result.as_deref()), (Status::Completed, Some(&json!(2))));
    let answered = world.runtime.find_ask(&open.id, &Visibility::Everything).await.unwrap();
    let detail = world.runtime.describe_ask(answered).await.unwrap();
    assert_eq!(detail.payload.as_deref(), Some(&json!([1, 2])), "also when it is answered");
}

#[actix::test]
async fn asks_are_closed_with_what_waited() {
    tokio::time::pause();
    let late = workflow("late", vec![ask_until("ask", 5_000)]);
    let lost = workflow(
        "lost",
        vec![race(
            "first",
            vec![("person", vec![ask("ask")]), ("clock", vec![sleep("nap", 3_000)])],
        )],
    );
    let w = workflow("w", vec![ask("ask")]);
    let world = world(vec![w, late, lost]).await;

    world.runtime.execute(start("w", "resumed", json!({}))).await.unwrap();
    let data = json!({ "approved": 1 });
    world.runtime.resume(&target("w", "resumed"), resume(data.clone())).await.unwrap();
    assert_eq!(closed(&world).await, [("ask".to_owned(), AskState::Answered)]);

    world.runtime.execute(start("w", "cancelled", json!({}))).await.unwrap();
    world.runtime.cancel(&target("w", "cancelled"), None, None).await.unwrap();
    assert_eq!(closed(&world).await[0], ("ask".to_owned(), AskState::Withdrawn));

    world.runtime.execute(start("late", "late", json!({}))).await.unwrap();
    let seen = only_open(&world).await;
    assert_eq!(seen.deadline, Some(seen.opened_at.plus_ms(5_000)));
    pass(Duration::from_secs(6)).await;
    assert_eq!(closed(&world).await[0], ("ask".to_owned(), AskState::Expired));
    let refused = world.runtime.answer_ask(seen, answer(data)).await;
    let is_expired =
        |error| matches!(error, AskError::Closed { state: AskState::Expired, by: None, .. });
    assert!(refused.is_err_and(is_expired));

    world.runtime.execute(start("lost", "lost", json!({}))).await.unwrap();
    pass(Duration::from_secs(4)).await;
    assert_eq!(closed(&world).await[0], ("first/person/ask".to_owned(), AskState::Withdrawn));
    assert_eq!(listed(&world, true).await, []);
}

#[actix::test]
async fn an_ask_that_was_withdrawn_is_described_while_a_child_runs() {
    tokio::time::pause();
    let blocks = vec![("person", vec![ask("a")]), ("clock", vec![sleep("nap", 1_000)])];
    let naps = workflow("naps", vec![sleep("z", 3_600_000)]);
    let world = world(vec![naps, workflow("w", vec![race("r", blocks), child("c", "naps")])]).await;
    world.runtime.begin(start("w", "e", json!({}))).await.unwrap();
    pass(Duration::from_millis(100)).await;
    let open = only_open(&world).await;
    pass(Duration::from_secs(2)).await;
    // the newest fact is the start of the child, which is no event
    let withdrawn = world.runtime.find_ask(&open.id, &Visibility::Everything).await.unwrap();
    let detail = world.runtime.describe_ask(withdrawn).await.unwrap();
    assert_eq!(detail.ask.state, AskState::Withdrawn);
    assert!(detail.answer.is_none());
}

#[actix::test]
async fn a_deadline_during_a_pause_closes_the_ask() {
    tokio::time::pause();
    let world = world(vec![workflow(
        "w",
        vec![all(
            "both",
            vec![("ask", vec![ask_until("ask", 5_000)]), ("work", vec![run("work", "hang")])],
        )],
    )])
    .await;
    let running = crate::workflows::spawn(&world, start("w", "e", json!({})));
    pass(Duration::from_millis(10)).await;
    let open = only_open(&world).await;
    assert_eq!(status(&world, "e").await, Status::Running, "another step works");
    world.runtime.suspend(&target("w", "e"), None, None).await.unwrap();
    pass(Duration::from_secs(6)).await;
    let late = world.runtime.answer_ask(open, answer(json!({ "approved": 1 }))).await;
    assert!(matches!(late.err(), Some(AskError::Closed { state: AskState::Expired, .. })));
    running.abort();
}

#[actix::test]
async fn what_waits_is_answered_while_other_steps_run_and_during_a_pause() {
    tokio::time::pause();
    let both = all(
        "both",
        vec![
            ("one", vec![ask("one")]),
            ("two", vec![ask("two")]),
            ("work", vec![run("work", "slow")]),
        ],
    );
    let world = world(vec![workflow("w", vec![both])]).await;
    let running = crate::workflows::spawn(&world, start("w", "e", json!({})));
    pass(Duration::from_millis(10)).await;
    let open = listed(&world, true).await;
    assert_eq!(open.len(), 2);
    world.runtime.answer_ask(open[0].clone(), answer(json!({ "approved": 1 }))).await.unwrap();
    world.runtime.suspend(&target("w", "e"), None, None).await.unwrap();
    world.runtime.answer_ask(open[1].clone(), answer(json!({ "approved": 2 }))).await.unwrap();
    pass(Duration::from_secs(6)).await;
    assert_eq!(status(&world, "e").await, Status::Completed);
    running.abort();
}

#[actix::test]
async fn what_a_child_waits_for_is_listed_once() {
    tokio::time::pause();
    let part = workflow("part", vec![ask("ask")]);
    let world =
        world(vec![workflow("w", vec![child("part", "part"), map("after", json!(1))]), part]).await;
    world.runtime.execute(start("w", "e", json!({}))).await.unwrap();
    let open = only_open(&world).await;
    assert_eq!((&*step_of(&open).workflow_id, &*step_of(&open).path), ("part", "ask"));
    world.runtime.answer_ask(open, answer(json!({ "approved": 1 }))).await.unwrap();
    pass(Duration::from_secs(6)).await;
    assert_eq!(status(&world, "e").await, Status::Completed);
    assert_eq!(closed(&world).await, [("ask".to_owned(), AskState::Answered)]);
    assert_eq!(world.store.executions_without_asks(0, 10).await, Ok(Vec::new()));
}

#[actix::test]
async fn an_ask_is_answered_through_any_process() {
    let cluster = Cluster::linked();
    let [first, second] = cluster.of(["a", "b"]).await;
    for _ in 0..8 {
        let id = first.start("w").await;
        let page = second.runtime.inbox(&open_ones(), None, 100).await.unwrap();
        let open = page.asks.into_iter().find(|ask| step_of(ask).execution_id == id).unwrap();
        let data = || answer(json!({ "approved": 1 }));
        let answers = [&first, &second, &first, &second]
            .map(|process| process.runtime.answer_ask(open.clone(), data()));
        let (won, lost): (Vec<_>, Vec<_>) =
            join_all(answers).await.into_iter().partition(Result::is_ok);
        assert_eq!(won.len(), 1);
        let is_answered =
            |error| matches!(error, AskError::Closed { state: AskState::Answered, .. });
        assert!(lost.into_iter().filter_map(Result::err).all(is_answered));
        assert_eq!(cluster.status(&id).await, Status::Completed);
    }
    // served by either: the ids of a process are in slots that are far apart
    let ids = join_all((0..8).map(|_| first.start("w"))).await;
    assert_eq!(listed_of(&second).await, ids.len());
    first.kill().await;
    pass(TAKEN_OVER).await;
    let page = second.runtime.inbox(&open_ones(), None, 100).await.unwrap();
    for ask in page.asks {
        second.runtime.answer_ask(ask, answer(json!({ "approved": 1 }))).await.unwrap();
    }
    assert_eq!(listed_of(&second).await, 0);
}

async fn listed_of(process: &Process) -> usize {
    process.runtime.inbox(&open_ones(), None, 100).await.unwrap().asks.len()
}
