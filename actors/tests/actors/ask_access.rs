//! Access to asks: those who are asked answer, and the one who has claimed it first.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use greenroom_actors::RuntimeLimits;
use greenroom_actors::domain::definition::{StepDefinition, SuspendRule, WorkflowDefinition};
use greenroom_actors::domain::principal::Principal;
use greenroom_actors::ports::store::{Ask, AskFilter, AskState, AskedOf, Claim, Status};
use greenroom_actors::requests::{
    AnswerAsk, Answerer, AskAccess, AskDetail, AskError, AskUpdate, ResumeError, ResumeExecution,
    StartExecution,
};
use greenroom_actors::testkit::{World, pass, registry_of, start, target};
use serde_json::json;

use crate::asks::only_open;
use crate::workflows::{Calls, ask, child, with_functions, workflow};

pub(crate) fn asking(id: &str, to: &[&str]) -> StepDefinition {
    let to = to.iter().map(|text| (*text).to_owned()).collect();
    StepDefinition { suspend: Some(SuspendRule { to, ..SuspendRule::default() }), ..ask(id) }
}

pub(crate) async fn world(definitions: Vec<WorkflowDefinition>) -> World {
    let registry = with_functions(registry_of(definitions), &Calls::default());
    World::launch(registry, RuntimeLimits::default()).await
}

async fn started(world: &World, id: &str) -> Ask {
    let request = StartExecution { user_id: Some("ann".to_owned()), ..start("w", id, json!({})) };
    world.runtime.execute(request).await.unwrap();
    only_open(world).await
}

pub(crate) fn answerer(user: Option<&str>, roles: &[&str]) -> Answerer {
    let roles = roles.iter().map(|role| Arc::from(*role)).collect();
    Answerer { user: user.map(Arc::from), roles }
}

pub(crate) fn access(user: &str) -> AskAccess {
    AskAccess { answerer: Some(answerer(Some(user), &[])), ..AskAccess::default() }
}

fn forced(user: &str) -> AskAccess {
    AskAccess { is_forced: true, ..access(user) }
}

pub(crate) fn answer(access: AskAccess) -> AnswerAsk {
    AnswerAsk { data: json!({ "approved": 1 }), access, ..AnswerAsk::default() }
}

fn resume(answerer: Answerer) -> ResumeExecution {
    let by = answerer.user.as_deref().map(Principal::verified);
    let data = json!({ "approved": 1 });
    ResumeExecution { data, by, answerer: Some(answerer), ..ResumeExecution::default() }
}

async fn update(
    world: &World,
    update: AskUpdate,
    access: &AskAccess,
) -> Result<AskDetail, AskError> {
    world.runtime.update_ask(only_open(world).await, &update, access).await
}

pub(crate) fn claim(user: &str, seconds: u64) -> AskUpdate {
    AskUpdate::Claim { by: Arc::from(user), lasts: Duration::from_secs(seconds) }
}

pub(crate) fn assign(to: &[&str]) -> AskUpdate {
    AskUpdate::Assign { to: to.iter().map(|text| text.parse().unwrap()).collect() }
}

/// Assignment, user, roles, and whether they may answer what `ann` asks for.
type Row = (&'static [&'static str], Option<&'static str>, &'static [&'static str], bool);

const ROWS: [Row; 9] = [
    (&[], None, &[], true),
    (&["role:manager"], Some("lea"), &["manager"], true),
    (&["role:manager"], Some("lea"), &["staff"], false),
    (&["role:manager"], None, &[], false),
    (&["user:lea", "role:manager"], Some("lea"), &[], true),
    (&["!self"], Some("ann"), &["manager"], false),
    (&["!self"], None, &["manager"], false),
    (&["role:manager", "!self"], Some("ann"), &["manager"], false),
    (&["role:manager", "!self"], Some("lea"), &["manager"], true),
];

#[actix::test]
async fn only_those_who_are_asked_answer() {
    tokio::time::pause();
    for (to, user, roles, expected) in ROWS {
        let world = world(vec![workflow("w", vec![asking("a", to)])]).await;
        let open = started(&world, "e").await;
        let answerer = Some(answerer(user, roles));
        let access = AskAccess { answerer, ..AskAccess::default() };
        let answered = world.runtime.answer_ask(open.clone(), answer(access)).await;
        match expected {
            true => assert_eq!(answered.unwrap().ask.state, AskState::Answered),
            false => {
                let named = open.rules.to.clone();
                let is_nameless = user.is_none();
                let is_of_nobody = open.user_id.is_none();
                let refused = Some(AskError::NotAssigned { to: named, is_nameless, is_of_nobody });
                assert_eq!(answered.err(), refused, "{to:?} {user:?}");
                assert_eq!(only_open(&world).await, open, "it stays open");
            }
        }
    }
}

#[actix::test]
async fn only_those_who_are_asked_resume() {
    tokio::time::pause();
    for (to, user, roles, expected) in ROWS {
        let world = world(vec![workflow("w", vec![asking("a", to)])]).await;
        started(&world, "e").await;
        let world = world.restart().await;
        let resumed = world.runtime.resume(&target("w", "e"), resume(answerer(user, roles))).await;
        match expected {
            true => drop(resumed.unwrap()),
            false => {
                assert_eq!(resumed.err(), Some(ResumeError::NotAssigned), "{to:?} {user:?}");
                assert_eq!(only_open(&world).await.rules.to.len(), to.len());
            }
        }
    }
}

#[actix::test]
async fn a_resume_follows_the_assignment_of_now() {
    tokio::time::pause();
    let world = world(vec![workflow("w", vec![asking("a", &["user:lea"])])]).await;
    started(&world, "e").await;
    update(&world, assign(&["user:bob"]), &access("lea")).await.unwrap();
    let target = target("w", "e");
    let send = |user| world.runtime.resume(&target, resume(answerer(Some(user), &[])));
    assert_eq!(send("lea").await.err(), Some(ResumeError::NotAssigned));
    send("bob").await.unwrap();
}

#[actix::test]
async fn a_resume_of_a_parent_needs_what_its_child_asks_for() {
    tokio::time::pause();
    let part = workflow("part", vec![asking("a", &["user:lea"])]);
    let world = world(vec![workflow("w", vec![child("part", "part")]), part]).await;
    started(&world, "e").await;
    pass(Duration::from_secs(1)).await;
    let target = target("w", "e");
    let send = |user| world.runtime.resume(&target, resume(answerer(Some(user), &[])));
    assert_eq!(send("ann").await.err(), Some(ResumeError::NotAssigned));
    send("lea").await.unwrap();
    let state = world.runtime.describe(&target).await.unwrap();
    assert_eq!(state.status, Status::Completed);
}

#[actix::test]
async fn a_claim_keeps_others_away_until_it_ends() {
    tokio::time::pause();
    let world = world(vec![workflow("w", vec![ask("a")])]).await;
    let open = started(&world, "e").await;
    let claimed = update(&world, claim("lea", 60), &access("lea")).await.unwrap().ask;
    let until = claimed.claim.as_ref().unwrap().until;
    assert_eq!((claimed.revision, until.ms_since(open.opened_at)), (1, 60_000));
    let refused = AskError::Claimed { by: Arc::from("lea"), until };
    for change in [claim("bob", 60), AskUpdate::Release, assign(&["user:bob"])] {
        let told = update(&world, change, &access("bob")).await;
        assert_eq!(told.err(), Some(refused.clone()));
    }
    // also with what was known before the claim
    let early = world.runtime.update_ask(open, &claim("bob", 60), &access("bob")).await;
    assert_eq!(early.err(), Some(refused.clone()));
    let told = world.runtime.answer_ask(claimed.clone(), answer(access("bob"))).await;
    assert_eq!(told.err(), Some(refused));
    assert_eq!(only_open(&world).await, claimed, "nothing has changed");

    let again = update(&world, claim("lea", 90), &access("lea")).await.unwrap().ask;
    assert_eq!((again.revision, again.claim.unwrap().until > until), (2, true));
    let world = world.restart().await;
    let claims = async |is_claimed| {
        let filter =
            AskFilter { is_open: true, is_claimed: Some(is_claimed), ..AskFilter::default() };
        world.runtime.inbox(&filter, None, 9).await.unwrap().asks.len()
    };
    assert_eq!((claims(true).await, claims(false).await), (1, 0), "also after a restart");
    pass(Duration::from_secs(91)).await;
    assert_eq!((claims(true).await, claims(false).await), (0, 1));
    assert_eq!(only_open(&world).await.claim, None, "it has ended");
    let open = only_open(&world).await;
    world.runtime.answer_ask(open, answer(access("bob"))).await.unwrap();
}

#[actix::test]
async fn a_claim_is_released_or_passed_over() {
    tokio::time::pause();
    let world = world(vec![workflow("w", vec![asking("a", &["user:lea", "user:bob"])])]).await;
    started(&world, "e").await;
    let told = update(&world, claim("eve", 60), &access("eve")).await;
    assert!(matches!(told, Err(AskError::NotAssigned { .. })), "{told:?}");
    update(&world, claim("lea", 60), &access("lea")).await.unwrap();
    let released = update(&world, AskUpdate::Release, &access("lea")).await.unwrap().ask;
    assert_eq!((released.claim, released.revision), (None, 2));
    let again = update(&world, AskUpdate::Release, &access("bob")).await.unwrap().ask;
    assert_eq!(again.revision, 2, "there was none");

    update(&world, claim("lea", 60), &access("lea")).await.unwrap();
    let taken = update(&world, claim("bob", 60), &forced("bob")).await.unwrap().ask;
    assert_eq!(taken.claim.map(|claim| claim.by), Some(Arc::from("bob")));
    let assigned = update(&world, assign(&["user:eve"]), &forced("eve")).await.unwrap().ask;
    assert_eq!((assigned.claim, assigned.rules.to.len()), (None, 1));
    let to = |user: &str| Some(AskedOf::User(user.to_owned()));
    for (to, expected) in [(to("eve"), 1), (to("lea"), 0), (Some(AskedOf::Unassigned), 0)] {
        let filter = AskFilter { is_open: true, to, ..AskFilter::default() };
        assert_eq!(world.runtime.inbox(&filter, None, 9).await.unwrap().asks.len(), expected);
    }
    let open = only_open(&world).await;
    world.runtime.answer_ask(open.clone(), answer(forced("eve"))).await.unwrap();
    let late = world.runtime.update_ask(open, &claim("eve", 60), &access("eve")).await;
    assert!(matches!(late.err(), Some(AskError::Closed { state: AskState::Answered, .. })));
}

#[actix::test]
async fn a_change_may_name_the_revision_that_it_is_about() {
    tokio::time::pause();
    let world = world(vec![workflow("w", vec![ask("a")])]).await;
    let open = started(&world, "e").await;
    let at = |revision| AskAccess { revision: Some(revision), ..access("lea") };
    update(&world, claim("lea", 60), &at(0)).await.unwrap();
    let passed = Some(AskError::Changed { revision: 1 });
    for change in [claim("lea", 60), AskUpdate::Release, assign(&[])] {
        assert_eq!(update(&world, change, &at(0)).await.err(), passed);
    }
    let early = world.runtime.update_ask(open, &assign(&[]), &at(0)).await;
    assert_eq!(early.err(), passed, "with what was known before");
    let open = only_open(&world).await;
    let told = world.runtime.answer_ask(open.clone(), answer(at(0))).await;
    assert_eq!(told.err(), passed);
    world.runtime.answer_ask(open, answer(at(1))).await.unwrap();
}

#[actix::test]
async fn one_of_many_claims_wins() {
    tokio::time::pause();
    let world = world(vec![workflow("w", vec![ask("a")])]).await;
    let open = started(&world, "e").await;
    let users: Vec<String> = (0..50).map(|n| format!("user {n}")).collect();
    let claims = join_all(users.iter().map(|user| {
        let (runtime, open) = (world.runtime.clone(), open.clone());
        async move { runtime.update_ask(open, &claim(user, 60), &access(user)).await }
    }));
    let (won, lost): (Vec<_>, Vec<_>) = claims.await.into_iter().partition(Result::is_ok);
    assert_eq!((won.len(), lost.len()), (1, 49));
    let Claim { by, until } = only_open(&world).await.claim.unwrap();
    let refused = AskError::Claimed { by, until };
    assert!(lost.into_iter().filter_map(Result::err).all(|error| error == refused));
    assert_eq!(only_open(&world).await.revision, 1);
}
