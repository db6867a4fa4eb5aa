//! Log records carry the ids of the execution that they are about.

use std::sync::{Arc, Mutex};

use greenroom_actors::RuntimeLimits;
use greenroom_actors::agent::AgentDefinition;
use greenroom_actors::domain::trace::is_trace_id;
use greenroom_actors::observe::log_record::LogScope;
use greenroom_actors::requests::StartExecution;
use greenroom_actors::testkit::{World, registry_of, start};
use serde_json::json;

use crate::agents::{Model, agent, text};
use crate::workflows::{Calls, add_agent, function, run, with_functions, workflow};

/// Collects everything that this process logs, with the scope of each record.
struct Listener(Mutex<Vec<(String, Option<Arc<LogScope>>)>>);

static LISTENER: Listener = Listener(Mutex::new(Vec::new()));

impl log::Log for Listener {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &log::Record<'_>) {
        self.0.lock().unwrap().push((record.args().to_string(), LogScope::current()));
    }

    fn flush(&self) {}
}

/// Returns the scope of the first record that contains this text.
fn scope_of(part: &str) -> Arc<LogScope> {
    let records = LISTENER.0.lock().unwrap();
    let (message, scope) = records.iter().find(|(message, _)| message.contains(part)).unwrap();
    scope.clone().unwrap_or_else(|| panic!("without a scope: {message}"))
}

/// Covers an execution, its steps and the agents that they call.
#[actix::test]
async fn log_records_carry_the_ids_of_their_execution() {
    tokio::time::pause();
    log::set_logger(&LISTENER).unwrap();
    log::set_max_level(log::LevelFilter::Debug);
    let steps = vec![run("says", "says"), agent("ask"), run("late", "boom")];
    let mut registry = with_functions(registry_of([workflow("logged", steps)]), &Calls::default());
    let says = function(|_| async {
        log::info!("a function of a step begins");
        tokio::task::yield_now().await;
        log::info!("a function of a step continues");
        Ok(json!({}).into())
    });
    registry.functions.insert("says".to_owned(), says);
    let model = Model::new([text("hi")]);
    add_agent(&mut registry, "helper", model, AgentDefinition::default());
    let world = World::launch(registry, RuntimeLimits::default()).await;

    let request = StartExecution {
        user_id: Some("ann".to_owned()),
        conversation_id: Some("c1".to_owned()),
        ..start("logged", "logged-1", json!({}))
    };
    world.runtime.execute(request).await.unwrap();

    let course = ["execution logged-1 started", "step late failed", "logged-1 failed at step late"];
    let bodies = ["a function of a step begins", "a function of a step continues"];
    let agents = ["agent helper: generation"];
    for part in course.iter().chain(&bodies).chain(&agents) {
        let scope = scope_of(part);
        let execution = scope.execution_id.as_ref().map(|id| id.as_str());
        assert_eq!(execution, Some("logged-1"), "{part}");
        let ids = [&scope.workflow_id, &scope.user_id, &scope.conversation_id];
        assert_eq!(ids.map(|id| id.as_deref().unwrap()), ["logged", "ann", "c1"], "{part}");
        assert!(scope.trace_id.as_deref().is_some_and(is_trace_id), "{part}");
    }
    let (course, body) = (scope_of(course[0]), scope_of(bodies[1]));
    assert_eq!(scope_of(bodies[0]), body);
    assert!(course.span_id.is_some() && body.span_id != course.span_id, "a step has another span");
    let generation = scope_of(agents[0]);
    assert_eq!(generation.agent_id.as_deref(), Some("helper"));
    assert!(generation.generation_id.is_some() && generation.span_id != course.span_id);
    assert_eq!(LogScope::current(), None);
}
