//! Reminders and escalations: in time, once, and also after a restart.

use std::time::Duration;

use greenroom_actors::domain::assignment::AskRules;
use greenroom_actors::domain::definition::{EscalateRule, StepDefinition, SuspendRule};
use greenroom_actors::ports::store::{Ask, Asks as _};
use greenroom_actors::requests::{AnswerAsk, AskAccess, AskUpdate};
use greenroom_actors::testkit::{pass, registry_of, start};
use serde_json::json;

use crate::ask_access::{asking, world};
use crate::asks::{only_open, open_ones};
use crate::processes::{Cluster, TAKEN_OVER};
use crate::workflows::{Calls, with_functions, workflow};

/// Time from just before what is due to just after it.
const SOON: Duration = Duration::from_millis(1_001);

/// Reminds after a minute and three, and asks the director after two.
fn reminding() -> StepDefinition {
    let rule = SuspendRule {
        to: vec!["user:lea".to_owned()],
        remind_ms: vec![60_000, 180_000],
        escalate: Some(EscalateRule { after_ms: 120_000, to: vec!["role:director".to_owned()] }),
        ..SuspendRule::default()
    };
    StepDefinition { suspend: Some(rule), ..asking("a", &[]) }
}

fn to(ask: &Ask) -> Vec<String> {
    ask.rules.to.iter().map(ToString::to_string).collect()
}

#[actix::test]
async fn what_waits_is_reminded_of_and_escalated_in_time() {
    tokio::time::pause();
    let world = world(vec![workflow("w", vec![reminding()])]).await;
    world.runtime.execute(start("w", "e", json!({}))).await.unwrap();
    pass(Duration::from_secs(59)).await;
    let open = only_open(&world).await;
    assert_eq!((open.revision, open.rules.remind_ms.len()), (0, 2));
    pass(SOON).await;
    let open = only_open(&world).await;
    assert_eq!((open.revision, open.rules.remind_ms.len(), to(&open).len()), (1, 1, 1), "punctual");

    // a change in between skips nothing
    let claim = AskUpdate::Claim { by: "lea".into(), lasts: Duration::from_secs(3_600) };
    world.runtime.update_ask(open, &claim, &AskAccess::default()).await.unwrap();
    let world = world.restart().await;
    pass(Duration::from_secs(60)).await;
    let open = only_open(&world).await;
    assert_eq!(
        (open.revision, to(&open)),
        (3, ["user:lea", "role:director"].map(str::to_owned).to_vec())
    );
    assert!(open.claim.is_some(), "it stays claimed");
    pass(Duration::from_secs(60)).await;
    let open = only_open(&world).await;
    assert_eq!((open.revision, open.rules.remind_ms.len()), (4, 0));
    pass(Duration::from_secs(600)).await;
    assert_eq!(only_open(&world).await.revision, 4, "nothing more");
}

/// The store is slow to say that the first one is changed.
#[actix::test]
async fn what_becomes_due_during_a_look_is_not_late() {
    tokio::time::pause();
    let world = world(vec![workflow("w", vec![reminding()])]).await;
    world.runtime.execute(start("w", "e1", json!({}))).await.unwrap();
    pass(Duration::from_secs(2)).await;
    world.runtime.execute(start("w", "e2", json!({}))).await.unwrap();
    pass(Duration::from_secs(57)).await;
    world.store.begin_outage();
    pass(Duration::from_secs(4)).await;
    world.store.end_outage();
    pass(Duration::from_millis(200)).await;
    let open = world.runtime.inbox(&open_ones(), None, 10).await.unwrap().asks;
    let revisions: Vec<_> = open.iter().map(|ask| ask.revision).collect();
    assert_eq!(revisions, [1, 1]);
}

#[actix::test]
async fn what_was_due_while_the_process_was_down_is_done_at_once() {
    tokio::time::pause();
    let world = world(vec![workflow("w", vec![reminding()])]).await;
    world.runtime.execute(start("w", "e", json!({}))).await.unwrap();
    world.runtime.drain(Duration::ZERO).await;
    pass(Duration::from_secs(300)).await;
    let world = world.restart().await;
    pass(Duration::from_millis(1)).await;
    let open = only_open(&world).await;
    assert_eq!((open.revision, to(&open).len()), (1, 2), "all of it at once");
    assert_eq!(AskRules { to: Vec::new(), ..open.rules }, AskRules::default());
}

#[actix::test]
async fn an_answered_ask_is_left_alone() {
    tokio::time::pause();
    let world = world(vec![workflow("w", vec![reminding()])]).await;
    world.runtime.execute(start("w", "e", json!({}))).await.unwrap();
    let open = only_open(&world).await;
    let answer = AnswerAsk { data: json!({ "approved": 1 }), ..AnswerAsk::default() };
    world.runtime.answer_ask(open.clone(), answer).await.unwrap();
    pass(Duration::from_secs(300)).await;
    assert_eq!(world.store.ask(&open.id).await.unwrap().unwrap().revision, 0);
}

#[actix::test]
async fn one_of_several_processes_reminds() {
    let registry =
        with_functions(registry_of([workflow("w", vec![reminding()])]), &Calls::default());
    let cluster = Cluster::linked_with(registry);
    let [first, second] = cluster.of(["a", "b"]).await;
    let ids = [first.start("w").await, first.start("w").await];
    pass(Duration::from_secs(90)).await;
    let revisions = async || {
        let page = second.runtime.inbox(&open_ones(), None, 100).await.unwrap();
        page.asks.iter().map(|ask| ask.revision).collect::<Vec<_>>()
    };
    assert_eq!(revisions().await, ids.each_ref().map(|_| 1));
    first.kill().await;
    pass(TAKEN_OVER + Duration::from_secs(40)).await;
    assert_eq!(revisions().await, ids.map(|_| 2), "also after the other one is gone");
}
