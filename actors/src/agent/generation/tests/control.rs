//! Pause, cancel and shutdown.

use std::time::Duration;

use crate::agent::Budget;
use crate::domain::ids::{ExecutionId, StepPath};
use crate::ports::model::scripted::{ScriptedAnswer, ScriptedModel};
use crate::ports::store::StepOrigin;
use crate::requests::Unavailable;

use super::*;

fn with_time(agent: &mut AgentDefinition) {
    with_tools(agent);
    agent.budget = Budget { time: Some(Duration::from_secs(60)), ..Budget::default() };
}

fn two_turns() -> ScriptedModel {
    ScriptedModel::local([calls([call("c1", "add", 5)]), text("done")])
}

#[actix::test]
async fn a_paused_run_finishes_its_tools_and_begins_no_turn() {
    tokio::time::pause();
    let world = World::with(two_turns(), History::default(), with_time);
    let handle = world.spawn(request(None));
    settle().await;
    assert_eq!(world.calls.running(), 1);

    handle.pause_handle().pause();
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert_eq!(world.calls.running(), 0, "the tool has finished");
    assert_eq!(world.model.requests().len(), 1);

    // the pause of an hour does not count against the 60 seconds
    let pause = handle.pause_handle();
    let outcome = actix::spawn(handle.outcome());
    settle().await;
    assert_eq!(world.model.requests().len(), 1);
    pause.unpause();
    assert_eq!(outcome.await.unwrap().unwrap().text, "done");
    pause.pause();
}

#[actix::test]
async fn a_paused_run_can_be_cancelled() {
    tokio::time::pause();
    let world = World::with(two_turns(), History::default(), with_time);
    let handle = world.spawn(request(None));
    handle.pause_handle().pause();
    tokio::time::sleep(Duration::from_secs(10)).await;
    handle.cancel();
    assert_eq!(handle.outcome().await, Err(GenerateError::Cancelled));
    assert_eq!(world.history.last().status, GenerationStatus::Cancelled);
}

#[actix::test]
async fn a_cancel_drops_running_tools() {
    tokio::time::pause();
    let asked = [call("c1", "hang", 0), call("c2", "add", 1)];
    let world = World::with(ScriptedModel::local([calls(asked)]), History::default(), with_tools);
    let handle = world.spawn(request(None));
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(world.calls.running(), 1);

    handle.cancel();
    assert_eq!(handle.outcome().await, Err(GenerateError::Cancelled));
    assert_eq!(world.calls.running(), 0);
    let last = world.history.steps().pop().unwrap();
    assert_eq!(last, "0: c1! c2! c2={\"output\":2}", "finished results are kept");
}

#[actix::test]
async fn details_of_the_store_are_hidden_from_subscribers() {
    tokio::time::pause();
    let world = World::new(ScriptedModel::local([text("hi")]), History::refusing());
    let recorder = Recorder::default();
    let (subscriber, _actor) = recorder.subscribe();
    let outcome = world.spawn_for(request(None), Some(subscriber)).outcome().await;
    assert_eq!(
        outcome,
        Err(Unavailable::Store { reason: Arc::from("disk full"), execution: None }.into())
    );
    settle().await;
    let message = "the server cannot continue this generation right now".to_owned();
    let kind = FailureKind::Store;
    assert_eq!(recorder.received().last(), Some(&GenerationEvent::Error { message, kind }));
}

#[actix::test]
async fn a_shutdown_interrupts_runs() {
    tokio::time::pause();
    let path: StepPath = Arc::from("ask");
    let of_step = StepOrigin { execution_id: ExecutionId::trusted("e1"), path };
    for origin in [None, Some(of_step)] {
        let world = World::new(ScriptedModel::remote([ScriptedAnswer::Hang]), History::default());
        let handle = world.spawn(GenerationRequest { origin: origin.clone(), ..request(None) });
        settle().await;

        world.deps.live.close();
        handle.cancel();
        let expected = Unavailable::Draining { execution: None };
        assert_eq!(handle.outcome().await, Err(expected.into()));
        assert_eq!(world.model.abandoned(), 1);
        let record = world.history.last();
        match origin {
            None => {
                assert_eq!(record.status, GenerationStatus::Error);
                assert_eq!(record.error.as_deref(), Some("interrupted by a restart"));
            }
            Some(_) => assert_eq!(record.status, GenerationStatus::Working, "the step runs again"),
        }

        let late = world.run(request(None)).await.unwrap_err();
        assert!(matches!(late, GenerateError::Unavailable(_)), "a later start: {late}");
    }
}
