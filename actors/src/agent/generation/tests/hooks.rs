//! Hooks of agents.

use crate::domain::message::{ToolCall, ToolResult};
use std::time::Duration;

use crate::agent::{AgentHooks, Budget, Hooks, RunInfo};
use crate::domain::message::ToolOutcome;
use crate::ports::model::scripted::ScriptedModel;

use super::*;

/// Records its calls; misbehaves in the hook that is named.
#[derive(Default)]
struct Follower {
    calls: Mutex<Vec<String>>,
    refuses: &'static str,
    panics: &'static str,
    hangs: &'static str,
}

impl Follower {
    async fn call(&self, hook: &'static str, what: String) -> Result<(), String> {
        self.calls.lock().unwrap().push(format!("{hook} {what}"));
        if self.hangs == hook {
            std::future::pending::<()>().await;
        }
        if self.panics == hook {
            // unwinds like a panic, without the panic hook's output
            std::panic::resume_unwind(Box::new("defect"));
        }
        if self.refuses == hook { Err(format!("{hook} says no")) } else { Ok(()) }
    }
}

impl AgentHooks for Follower {
    fn on_start<'a>(&'a self, info: &'a RunInfo) -> BoxFuture<'a, Result<(), String>> {
        self.call("on_start", info.generation_id.to_string()).boxed()
    }

    fn on_tool_start<'a>(
        &'a self,
        _: &'a RunInfo,
        call: &'a ToolCall,
    ) -> BoxFuture<'a, Result<(), String>> {
        self.call("on_tool_start", call.tool_call_id.clone()).boxed()
    }

    fn on_tool_end<'a>(&'a self, _: &'a RunInfo, result: &'a ToolResult) -> BoxFuture<'a, ()> {
        self.call("on_tool_end", json!(result.outcome).to_string()).map(drop).boxed()
    }

    fn on_end<'a>(
        &'a self,
        _: &'a RunInfo,
        outcome: &'a Result<Generation, GenerateError>,
    ) -> BoxFuture<'a, ()> {
        let how = match outcome {
            Ok(generation) => generation.text.clone(),
            Err(error) => error.to_string(),
        };
        self.call("on_end", how).map(drop).boxed()
    }
}

/// Creates a run with one tool call of some seconds, then an answer.
fn world(follower: Follower, seconds: u64) -> (World, Arc<Follower>) {
    let follower = Arc::new(follower);
    let hooks = Hooks(Arc::clone(&follower) as _);
    let model = ScriptedModel::local([calls([call("c1", "add", seconds)]), text("done")]);
    let world = World::with(model, History::default(), |agent| {
        with_tools(agent);
        agent.hooks = Some(hooks);
        agent.budget = Budget { time: Some(Duration::from_secs(5)), ..Budget::default() };
    });
    (world, follower)
}

#[actix::test]
async fn hooks_are_called_in_order() {
    tokio::time::pause();
    let (world, follower) = world(Follower::default(), 0);
    world.run(request(None)).await.unwrap();
    let called = follower.calls.lock().unwrap().clone();
    let expected = ["on_start g1", "on_tool_start c1", "on_tool_end {\"output\":1}", "on_end done"];
    assert_eq!(called, expected);
}

#[actix::test]
async fn errors_panics_and_hangs_of_hooks_are_contained() {
    tokio::time::pause();
    let refuses = |refuses| Follower { refuses, ..Follower::default() };
    let panics = |panics| Follower { panics, ..Follower::default() };
    let hangs = |hangs| Follower { hangs, ..Follower::default() };
    let late = "the run took longer than 5s";
    let rows: [(Follower, Result<Option<&str>, &str>); 9] = [
        (refuses("on_start"), Err("on_start says no")),
        (panics("on_start"), Err("the hook on_start panicked")),
        (hangs("on_start"), Err(late)),
        (refuses("on_tool_start"), Ok(Some("on_tool_start says no"))),
        (panics("on_tool_start"), Ok(Some("the hook on_tool_start panicked"))),
        (panics("on_tool_end"), Ok(None)),
        (hangs("on_tool_end"), Err(late)),
        (panics("on_end"), Ok(None)),
        (hangs("on_end"), Ok(None)),
    ];
    for (follower, expected) in rows {
        let name = format!("{}{}{}", follower.refuses, follower.panics, follower.hangs);
        let (world, _) = world(follower, 0);
        match (world.run(request(None)).await, expected) {
            (Ok(generation), Ok(refusal)) => {
                let outcome = &generation.tool_results[0].outcome;
                let expected = match refusal {
                    None => ToolOutcome::Output(json!(1)),
                    Some(why) => ToolOutcome::Error(why.to_owned()),
                };
                assert_eq!((generation.text.as_str(), outcome), ("done", &expected), "{name}");
            }
            (Err(error), Err(expected)) => assert_eq!(error.to_string(), expected, "{name}"),
            (outcome, _) => panic!("{name}: {outcome:?}"),
        }
    }
}

#[actix::test]
async fn a_cancelled_run_waits_briefly_for_its_end_hook() {
    tokio::time::pause();
    let (world, follower) = world(Follower { hangs: "on_end", ..Follower::default() }, 4);
    let handle = world.spawn(request(None));
    settle().await;
    handle.cancel();
    let begin = tokio::time::Instant::now();
    assert_eq!(handle.outcome().await, Err(GenerateError::Cancelled));
    assert!(begin.elapsed() < Duration::from_secs(2));
    let called = follower.calls.lock().unwrap().clone();
    assert_eq!(called.last().unwrap(), "on_end the generation was cancelled");
}
