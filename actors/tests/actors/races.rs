//! A client that disconnects, a crash or a stop, concurrent with another event, in both orders: the
//! second table of `docs/races.md`.

use std::fmt::Display;
use std::time::Duration;

use greenroom_actors::domain::definition::{OnError, StepDefinition};
use greenroom_actors::domain::fact::Recorded;
use greenroom_actors::domain::ids::ExecutionId;
use greenroom_actors::function::StepFunction;
use greenroom_actors::ports::store::FactCursor;
use greenroom_actors::requests::ResumeExecution;
use greenroom_actors::testkit::{World, pass, registry_of, start, target};
use greenroom_actors::{Runtime, RuntimeLimits};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::picture;
use crate::workflows::{all, ask_until, function, run, workflow};

/// Events around an execution, and events of the execution itself.
const AROUND: [&str; 3] = ["disconnect", "crash", "stop"];
const INSIDE: [&str; 6] = ["suspend", "lift", "answer", "deadline", "step end", "cancel"];

/// The step `q` waits for an answer until its deadline, and `w` runs until the gate opens.
struct Scene {
    /// `None` only during a restart.
    world: Option<World>,
    client: JoinHandle<()>,
    gate: watch::Sender<bool>,
    /// Facts that were shown already.
    shown: usize,
}

impl Scene {
    async fn new() -> Self {
        let question = StepDefinition {
            resume_schema: None,
            on_error: OnError::Ignore,
            ..ask_until("q", 100)
        };
        let steps =
            vec![all("both", vec![("one", vec![question]), ("two", vec![run("w", "gate")])])];
        let mut registry = registry_of([workflow("w", steps)]);
        let gate = watch::Sender::new(false);
        registry.functions.insert("gate".to_owned(), behind(&gate));
        let world = World::launch(registry, RuntimeLimits::default()).await;
        let runtime = world.runtime.clone();
        let client = actix::spawn(async move {
            let _ = runtime.execute(start("w", "e", json!(1))).await;
        });
        pass(Duration::from_millis(50)).await;
        let mut scene = Self { world: Some(world), client, gate, shown: 0 };
        scene.news().await;
        scene
    }

    fn runtime(&self) -> Runtime {
        self.world.as_ref().unwrap().runtime.clone()
    }

    async fn happens(&mut self, happening: &str) -> Option<String> {
        let (runtime, it) = (self.runtime(), target("w", "e"));
        match happening {
            "suspend" => refusal(runtime.suspend(&it, Some("stop".to_owned()), None).await),
            "cancel" => refusal(runtime.cancel(&it, Some("enough".to_owned()), None).await),
            "lift" => resume(&runtime, None).await,
            "answer" => resume(&runtime, Some("q")).await,
            "deadline" => {
                pass(Duration::from_millis(51)).await;
                None
            }
            "step end" => {
                self.gate.send_replace(true);
                pass(Duration::from_millis(1)).await;
                None
            }
            "disconnect" => {
                self.client.abort();
                None
            }
            "crash" | "stop" => {
                if happening == "stop" {
                    runtime.drain(Duration::from_millis(1)).await;
                }
                drop(runtime);
                let world = self.world.take().unwrap();
                self.world = Some(world.restart().await);
                None
            }
            other => panic!("{other}"),
        }
    }

    async fn record(&self) -> Vec<Recorded> {
        facts_of(&self.runtime(), "e").await
    }

    /// Returns the facts recorded since the last call.
    async fn news(&mut self) -> String {
        let facts = self.record().await;
        let new = facts[self.shown..].to_vec();
        self.shown = facts.len();
        let lines = picture::lines(&new, facts[0].at);
        if lines.is_empty() { "nothing".to_owned() } else { lines.join("; ") }
    }
}

fn behind(gate: &watch::Sender<bool>) -> StepFunction {
    let gate = gate.subscribe();
    function(move |_| {
        let mut gate = gate.clone();
        async move {
            let _ = gate.wait_for(|is_open| *is_open).await;
            Ok(json!(5).into())
        }
    })
}

pub(crate) async fn facts_of(runtime: &Runtime, id: &str) -> Vec<Recorded> {
    let id = ExecutionId::trusted(id);
    runtime.portion(&id, FactCursor::default(), usize::MAX).await.unwrap().facts
}

/// Asserts that the page has the row of each pair.
pub(crate) async fn assert_documented(
    pairs: Vec<(&'static str, &'static str)>,
    row: impl AsyncFn(&'static str, &'static str) -> String,
) {
    let mut rows = Vec::new();
    for (first, second) in pairs {
        rows.push(row(first, second).await);
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/races.md");
    let page = std::fs::read_to_string(path).unwrap();
    let missing: Vec<_> = rows.iter().filter(|row| !page.contains(*row)).collect();
    assert!(missing.is_empty(), "docs/races.md does not have: {missing:#?}");
}

pub(crate) fn refusal<T, E: Display>(answer: Result<T, E>) -> Option<String> {
    answer.err().map(|error| format!("refused: {error}"))
}

/// Resumes; returns the refusal, if it comes at once. Otherwise the call keeps waiting.
async fn resume(runtime: &Runtime, step: Option<&str>) -> Option<String> {
    let (runtime, step_id) = (runtime.clone(), step.map(str::to_owned));
    let data = step.map_or(Value::Null, |_| json!(7));
    let resuming = actix::spawn(async move {
        let request = ResumeExecution { step_id, data, ..Default::default() };
        refusal(runtime.resume(&target("w", "e"), request).await)
    });
    pass(Duration::from_millis(1)).await;
    if resuming.is_finished() { resuming.await.unwrap() } else { None }
}

async fn row(first: &str, second: &str) -> String {
    let mut scene = Scene::new().await;
    let refused = scene.happens(first).await;
    let news = scene.news().await;
    let one = refused.unwrap_or(news);
    let refused = scene.happens(second).await;
    pass(Duration::from_millis(2)).await;
    let news = scene.news().await;
    let two = match refused {
        None => news,
        Some(why) if news == "nothing" => why,
        Some(why) => format!("{why}; {news}"),
    };
    let state = scene.runtime().describe(&target("w", "e")).await.unwrap();
    format!("| {first} | {second} | {one} | {two} | {} |", state.status.as_str())
}

fn pairs() -> Vec<(&'static str, &'static str)> {
    let mut pairs = Vec::new();
    for around in AROUND {
        for inside in INSIDE {
            pairs.extend([(around, inside), (inside, around)]);
        }
        pairs.extend(AROUND.map(|other| (around, other)));
    }
    pairs
}

#[actix::test]
async fn disconnects_crashes_and_stops_never_undo_recorded_facts() {
    tokio::time::pause();
    assert_documented(pairs(), row).await;
}

/// The record is the same with or without a client that disconnects.
#[actix::test]
async fn a_disconnecting_client_changes_nothing() {
    tokio::time::pause();
    for happening in INSIDE {
        let mut records = Vec::new();
        for story in [vec![happening], vec!["disconnect", happening], vec![happening, "disconnect"]]
        {
            let mut scene = Scene::new().await;
            for happening in story {
                scene.happens(happening).await;
            }
            pass(Duration::from_millis(200)).await;
            scene.news().await;
            let facts = scene.record().await;
            records.push(picture::lines(&facts, facts[0].at));
        }
        assert_eq!(records[0], records[1], "{happening}");
        assert_eq!(records[0], records[2], "{happening}");
    }
}
