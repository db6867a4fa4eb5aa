//! Work that is in progress in slots which are handed over by force: the next owner continues it.

use std::sync::Arc;
use std::time::Duration;

use greenroom_actors::agent::tool::{ToolBody, ToolDefinition};
use greenroom_actors::agent::{AgentDefinition, Choice};
use greenroom_actors::domain::definition::{Body, StepKind};
use greenroom_actors::domain::fact::Fact;
use greenroom_actors::domain::ids::ExecutionId;
use greenroom_actors::domain::slot::slot_of;
use greenroom_actors::ports::model::scripted::{ScriptedAnswer, ScriptedModel, ScriptedPiece};
use greenroom_actors::ports::model::{FinishReason, ModelEvent, ToolSpec, Usage};
use greenroom_actors::ports::store::{ExecutionFilter, Executions as _, GenerationStatus, Status};
use greenroom_actors::registry::Registry;
use greenroom_actors::testkit::{pass, registry_of};
use greenroom_actors::visibility::Visibility;
use serde_json::{Value, json};

use crate::agents::{agent, text};
use crate::approvals::calls;
use crate::generations::piece;
use crate::processes::{Cluster, Process};
use crate::races::facts_of;
use crate::workflows::{add_agent, function, run, sleep, step, workflow};

/// Time in which a process that leaves hands over slots although steps are in progress there.
const FORCED: Duration = Duration::from_secs(20);

/// Has the process that owns an execution hand it over although its step is in progress.
async fn moved_by_force(processes: &[Process], id: &ExecutionId) {
    let members = processes[0].store.members().unwrap();
    let owner = || members.views().borrow().as_ref().unwrap().owners.owner(slot_of(id));
    let before = owner();
    let process = processes.iter().find(|process| Some(process.node) == before).unwrap();
    process.store.members().unwrap().set_leaving().await.unwrap();
    pass(FORCED).await;
    assert_ne!(owner(), before);
}

#[actix::test]
async fn steps_that_are_interrupted_by_handovers_are_started_by_the_next_owner_alone() {
    let cluster = Cluster::linked_with(lasting(Duration::from_secs(120)));
    let processes = cluster.of(["a", "b", "c", "d"]).await;
    let id = processes[0].begin("lasts").await;
    for _ in 0..3 {
        moved_by_force(&processes, &id).await;
    }
    let kinds = async || {
        let facts = facts_of(&processes[0].runtime, id.as_str()).await;
        let kinds = facts.iter().filter_map(|recorded| match &recorded.fact {
            Fact::StepStarted { interrupted, .. } => {
                Some(if *interrupted { "again" } else { "starts" })
            }
            Fact::StepReleased { .. } => Some("is released"),
            fact => fact.end().map(|_| "ends"),
        });
        kinds.collect::<Vec<_>>()
    };
    let moved = ["starts", "is released"];
    assert_eq!(kinds().await, [&moved[..], &moved, &moved, &["starts"]].concat());
    pass(Duration::from_secs(120)).await;
    assert_eq!(cluster.status(&id).await, Status::Completed);
    assert_eq!(kinds().await.last(), Some(&"ends"));
}

/// Returns a registry whose workflow `lasts` has one step, which takes this time.
fn lasting(time: Duration) -> Registry {
    let mut registry = registry_of([workflow("lasts", vec![run("only", "lasting")])]);
    let lasting = function(move |_| async move {
        pass(time).await;
        Ok(json!("done").into())
    });
    registry.functions.insert("lasting".to_owned(), lasting);
    registry
}

/// Answers after half a minute.
fn late(said: &str) -> ScriptedAnswer {
    let finish_reason = FinishReason::Stop;
    let finished = ModelEvent::Finished { usage: Usage::default(), finish_reason, served: None };
    let pause = ScriptedPiece::Pause(Duration::from_secs(30));
    ScriptedAnswer::Pieces(vec![pause, piece(said), finished.into()])
}

fn add_tool(registry: &mut Registry, name: &str, body: ToolBody, parameters: Value) {
    let spec = ToolSpec { name: name.to_owned(), description: String::new(), parameters };
    let tool = ToolDefinition::new(spec, body).unwrap();
    registry.tools.insert(name.to_owned(), Arc::new(tool));
}

/// Starts the workflow `w`, has it handed over, and returns its status and that of each generation
/// of these agents.
async fn handed_over(registry: Registry, agents: &[&str]) -> (Status, Vec<GenerationStatus>) {
    let cluster = Cluster::linked_with(registry);
    let processes = cluster.of(["a", "b"]).await;
    let id = processes[0].begin("w").await;
    pass(Duration::from_secs(1)).await;
    moved_by_force(&processes, &id).await;
    pass(Duration::from_secs(200)).await;
    let runtime = &processes[1].runtime;
    let mut statuses = Vec::new();
    for agent in agents {
        let page = runtime.history(agent, &Visibility::Everything, 0, 10).await.unwrap();
        statuses.extend(page.entries.iter().map(|entry| entry.record.status));
    }
    let (runs, _) = cluster.disk.list(&ExecutionFilter::default(), None, 10).await.unwrap();
    assert!(runs.iter().all(|run| run.status == Status::Completed), "{runs:?}");
    (cluster.status(&id).await, statuses)
}

#[actix::test]
async fn an_agent_step_asks_again_at_the_next_owner() {
    let mut registry = registry_of([workflow("w", vec![agent("ask")])]);
    let model = ScriptedModel::remote([late("lost"), late("said")]);
    add_agent(&mut registry, "helper", model, AgentDefinition::default());
    let (status, generations) = handed_over(registry, &["helper"]).await;
    assert_eq!((status, &generations[..]), (Status::Completed, &[GenerationStatus::Completed][..]));
}

#[actix::test]
async fn what_the_agent_of_a_step_calls_continues_at_the_next_owner() {
    let naps = workflow("naps", vec![sleep("nap", 40_000)]);
    let mut registry = registry_of([workflow("w", vec![agent("ask")]), naps]);
    let parameters = json!({ "type": "object" });
    add_tool(&mut registry, "runs-naps", ToolBody::Workflow("naps".to_owned()), parameters);
    let parameters = ToolDefinition::agent_parameters();
    add_tool(&mut registry, "asks-clerk", ToolBody::Agent("clerk".to_owned()), parameters);
    let called =
        calls(&[("1", "runs-naps", json!({})), ("2", "asks-clerk", json!({ "prompt": "hi" }))]);
    let tools = vec!["runs-naps".to_owned(), "asks-clerk".to_owned()];
    let helper = AgentDefinition { tools: Choice::Fixed(tools), ..AgentDefinition::default() };
    add_agent(&mut registry, "helper", ScriptedModel::remote([called, text("done")]), helper);
    let clerk =
        AgentDefinition { id: "clerk".to_owned(), model: "clerk".into(), ..Default::default() };
    registry.agents.insert("clerk".to_owned(), Arc::new(clerk));
    let model = ScriptedModel::remote([late("lost"), late("said")]);
    registry.models.insert("clerk".to_owned(), Arc::new(model));
    let (status, generations) = handed_over(registry, &["helper", "clerk"]).await;
    let completed = [GenerationStatus::Completed; 2];
    assert_eq!((status, &generations[..]), (Status::Completed, &completed[..]));
}

#[actix::test]
async fn a_workflow_that_a_step_calls_as_a_tool_is_waited_for_at_the_next_owner() {
    let naps = workflow("naps", vec![sleep("nap", 40_000)]);
    let call = Body::Tool { tool: "runs-naps".to_owned(), args: None };
    let calls = step("call", StepKind::Then { body: call });
    let mut registry = registry_of([workflow("w", vec![calls]), naps]);
    let parameters = json!({ "type": "object" });
    add_tool(&mut registry, "runs-naps", ToolBody::Workflow("naps".to_owned()), parameters);
    assert_eq!(handed_over(registry, &[]).await.0, Status::Completed);
}
