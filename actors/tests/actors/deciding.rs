//! Events during a costly evaluation on another thread: the third table of `docs/races.md`. The
//! workers hold the evaluation until the test continues it.

use std::time::Duration;

use greenroom_actors::domain::definition::{
    Body, HttpBody, HttpMethod, Mapping, StepDefinition, StepKind, WorkflowDefinition,
};
use greenroom_actors::domain::fact::Recorded;
use greenroom_actors::function::StepFunction;
use greenroom_actors::ports::external_calls::scripted::{ScriptedCalls, ScriptedEnd};
use greenroom_actors::ports::store::{ExecutionFilter, Executions as _};
use greenroom_actors::registry::Registry;
use greenroom_actors::requests::{Principal, ResumeExecution};
use greenroom_actors::testkit::{World, pass, registry_of, start, target};
use greenroom_actors::{Runtime, RuntimeLimits};
use serde_json::{Value, json};

use crate::costly::SQUARE;
use crate::picture;
use crate::races::{assert_documented, facts_of, refusal};
use crate::workflows::{
    Calls, all, ask, child, function, map, run, sleep, spawn, step, with_functions, workflow,
};

/// Kinds of the costly evaluation.
const MIDDLES: [&str; 5] =
    ["what follows", "end of a body", "answer", "preparation", "input of a child"];
const HAPPENINGS: [&str; 9] =
    ["suspend", "cancel", "answer", "timer", "child", "time limit", "forget", "stop", "crash"];

/// The costly step `a` follows `p`, which lea has answered. Beside it are a sleep, a running child
/// and the question `q`.
struct Scene {
    /// `None` only during a restart.
    world: Option<World>,
    calls: Calls,
    external_calls: ScriptedCalls,
    /// Facts that were shown already.
    shown: usize,
}

fn picky() -> Value {
    json!({ "properties": { "text": { "pattern": "^([a-z]{1,20}){1,20}$" } } })
}

fn text() -> Value {
    json!({ "text": "a".repeat(300) })
}

fn costly(middle: &str) -> StepDefinition {
    let limited = |step| StepDefinition { timeout_ms: Some(500), ..step };
    match middle {
        "what follows" => map("a", json!(SQUARE)),
        "end of a body" => {
            limited(StepDefinition { output_schema: Some(picky()), ..run("a", "text") })
        }
        "answer" => StepDefinition { resume_schema: Some(picky()), ..ask("a") },
        "preparation" => limited(step(
            "a",
            StepKind::Then {
                body: Body::Http(HttpBody {
                    method: HttpMethod::Post,
                    url: "https://ledger.example/".to_owned(),
                    headers: [].into(),
                    query: [].into(),
                    body: Some(Mapping(json!(SQUARE))),
                }),
            },
        )),
        "input of a child" => limited(StepDefinition {
            kind: StepKind::Workflow {
                workflow: "picky".to_owned(),
                input: Some(Mapping(json!("input"))),
            },
            ..child("a", "picky")
        }),
        other => panic!("{other}"),
    }
}

fn definitions(middle: &str) -> [WorkflowDefinition; 3] {
    let steps = vec![all(
        "all",
        vec![
            ("one", vec![sleep("nap", 1000)]),
            ("two", vec![child("sub", "quick")]),
            ("three", vec![ask("q")]),
            ("four", vec![ask("p"), costly(middle), map("b", json!("1"))]),
        ],
    )];
    let picky = WorkflowDefinition {
        input_schema: Some(picky()),
        ..workflow("picky", vec![run("call", "text")])
    };
    [workflow("w", steps), workflow("quick", vec![run("work", "slow")]), picky]
}

fn registry(middle: &str, calls: &Calls) -> Registry {
    let mut registry = with_functions(registry_of(definitions(middle)), &Calls::default());
    let texts: StepFunction = {
        let calls = calls.clone();
        function(move |_| {
            calls.add_one();
            async { Ok(text().into()) }
        })
    };
    registry.functions.insert("text".to_owned(), texts);
    registry
}

fn answer(step: &str, data: Value) -> ResumeExecution {
    ResumeExecution { step_id: Some(step.to_owned()), data, ..Default::default() }
}

impl Scene {
    /// Returns a scene in which a costly evaluation is held.
    async fn new(middle: &str) -> Self {
        let calls = Calls::default();
        let external_calls = ScriptedCalls::new(|_| ScriptedEnd::Gives(json!(1)));
        let registry = registry(middle, &calls);
        let world =
            World::launch_beside(registry, RuntimeLimits::default(), external_calls.clone()).await;
        let mut input = text();
        input["ids"] = json!((0..2000).collect::<Vec<_>>());
        spawn(&world, start("w", "e", input));
        pass(Duration::from_millis(10)).await;
        world.workers.hold();
        let mut scene = Self { world: Some(world), calls, external_calls, shown: 0 };
        let by = Some(Principal::verified("lea"));
        let approved = json!({ "approved": 1 });
        scene.resumes(ResumeExecution { by, ..answer("p", approved) }).await;
        if middle == "answer" {
            scene.resumes(answer("a", text())).await;
        }
        assert_eq!(scene.world().workers.held(), 1, "{middle}");
        scene.news().await;
        scene
    }

    fn world(&self) -> &World {
        self.world.as_ref().unwrap()
    }

    fn runtime(&self) -> Runtime {
        self.world().runtime.clone()
    }

    /// Resumes without waiting for the outcome.
    async fn resumes(&self, request: ResumeExecution) {
        let runtime = self.runtime();
        actix::spawn(async move { runtime.resume(&target("w", "e"), request).await });
        pass(Duration::from_millis(1)).await;
    }

    async fn happens(&mut self, happening: &str) -> Option<String> {
        let (runtime, it) = (self.runtime(), target("w", "e"));
        match happening {
            "suspend" => refusal(runtime.suspend(&it, None, None).await),
            "cancel" => refusal(runtime.cancel(&it, None, None).await),
            "answer" => {
                self.resumes(answer("q", json!({ "approved": 2 }))).await;
                None
            }
            "timer" => slept(1000).await,
            "child" => slept(150).await,
            "time limit" => slept(500).await,
            "forget" => {
                runtime.forget_user("lea").await.unwrap();
                None
            }
            "stop" => {
                actix::spawn(async move { runtime.drain(Duration::from_secs(5)).await });
                pass(Duration::from_millis(1)).await;
                None
            }
            "crash" => {
                drop(runtime);
                let world = self.world.take().unwrap();
                self.world = Some(world.restart().await);
                None
            }
            other => panic!("{other}"),
        }
    }

    /// Ends the evaluation and waits for what follows; a process that ends is followed by another.
    async fn finish(&mut self, happening: &str) {
        self.world().workers.release();
        pass(Duration::from_millis(20)).await;
        if happening == "stop" {
            pass(Duration::from_secs(6)).await;
            let world = self.world.take().unwrap();
            self.world = Some(world.restart().await);
        }
        pass(Duration::from_secs(2)).await;
        if happening == "suspend" {
            self.resumes(ResumeExecution::default()).await;
            pass(Duration::from_secs(2)).await;
        }
    }

    async fn record(&self) -> Vec<Recorded> {
        facts_of(&self.runtime(), "e").await
    }

    /// Returns the facts recorded since the last call.
    async fn news(&mut self) -> String {
        let facts = self.record().await;
        let lines = picture::lines(&facts[self.shown..], facts[0].at);
        self.shown = facts.len();
        let lines: Vec<String> = lines.iter().map(|line| in_short(line)).collect();
        if lines.is_empty() { "nothing".to_owned() } else { lines.join("; ") }
    }

    /// Returns how often the step `a` left the process.
    fn done_outside(&self) -> usize {
        self.calls.count() + self.external_calls.calls().len()
    }

    async fn names_lea(&self) -> bool {
        let state = self.runtime().describe(&target("w", "e")).await.unwrap();
        let facts = serde_json::to_string(&self.record().await).unwrap();
        format!("{state:?}").contains("\"lea\"") || facts.contains("\"lea\"")
    }
}

async fn slept(ms: u64) -> Option<String> {
    pass(Duration::from_millis(ms)).await;
    None
}

/// Shortens `all/four/a gives {"text":"aaaaa"}` to `a gives`, and `completed 2` to `completed`.
fn in_short(line: &str) -> String {
    let mut words = line.split(' ');
    let place = words.next().unwrap_or_default();
    let name = place.rsplit('/').next().unwrap_or_default();
    let is_of_a_step = place.contains('/') || place == "all";
    let rest: Vec<&str> = match is_of_a_step.then(|| words.next()).flatten() {
        Some("is") => ["is"].into_iter().chain(words.next()).collect(),
        word => word.into_iter().collect(),
    };
    let shown: Vec<&str> = [name].into_iter().chain(rest).collect();
    shown.join(" ").replace(':', "")
}

fn pairs() -> Vec<(&'static str, &'static str)> {
    let mut pairs = Vec::new();
    for middle in MIDDLES {
        let has_no_limit = ["what follows", "answer"].contains(&middle);
        let happenings = HAPPENINGS.into_iter();
        let possible = happenings.filter(|happening| !has_no_limit || *happening != "time limit");
        pairs.extend(possible.map(|happening| (middle, happening)));
    }
    pairs
}

async fn row(middle: &str, happening: &str) -> String {
    let mut scene = Scene::new(middle).await;
    let refused = scene.happens(happening).await;
    let during = refused.unwrap_or(scene.news().await);
    if happening != "stop" {
        // Queries are answered during the evaluation, too.
        scene.runtime().describe(&target("w", "e")).await.unwrap();
    }
    scene.finish(happening).await;
    let after = scene.news().await;
    let facts = scene.record().await;
    let follows = |pair: &[Recorded]| pair[1].seq == pair[0].next_seq();
    assert!(facts.windows(2).all(follows), "{middle}, {happening}: {facts:#?}");
    assert_eq!(scene.names_lea().await, happening != "forget", "{middle}, {happening}");
    let filter = ExecutionFilter { workflow_id: Some("picky".to_owned()), ..Default::default() };
    let (children, _) = scene.world().store.list(&filter, None, 10).await.unwrap();
    let external_calls = scene.done_outside();
    format!(
        "| {middle} | {happening} | {during} | {after} | {external_calls} calls, {} children |",
        children.len()
    )
}

#[actix::test]
async fn an_event_during_a_costly_evaluation_leads_to_the_documented_record() {
    tokio::time::pause();
    assert_documented(pairs(), row).await;
}

/// A refused command records nothing, so the evaluation continues.
#[actix::test]
async fn a_refused_command_repeats_no_evaluation() {
    tokio::time::pause();
    let mut scene = Scene::new("answer").await;
    let moved = scene.runtime().stats().evaluations_moved;
    let suspended = scene.runtime().suspend(&target("w", "e"), None, None).await;
    assert!(suspended.is_ok(), "the child is running: {suspended:?}");
    assert_eq!(scene.runtime().stats().evaluations_moved, moved + 1, "evaluated again");
    for _ in 0..3 {
        let refused = scene.happens("suspend").await;
        assert!(refused.is_some_and(|why| why.starts_with("refused")));
    }
    assert_eq!(scene.runtime().stats().evaluations_moved, moved + 1);
}

/// Two bodies end, and the second end waits for the first: neither body runs again.
#[actix::test]
async fn a_body_whose_end_waits_to_be_decided_does_not_run_again() {
    tokio::time::pause();
    let calls = Calls::default();
    let steps =
        ["a", "b"].map(|id| StepDefinition { output_schema: Some(picky()), ..run(id, "text") });
    let [a, b] = steps;
    let definition = workflow("two", vec![all("both", vec![("x", vec![a]), ("y", vec![b])])]);
    let mut registry = registry("what follows", &calls);
    registry.workflows.extend(registry_of([definition]).workflows);
    let world = World::launch(registry, RuntimeLimits::default()).await;
    world.workers.hold();
    let ended = spawn(&world, start("two", "e", json!(1)));
    pass(Duration::from_millis(10)).await;
    assert_eq!((world.workers.held(), calls.count()), (1, 2), "one is decided, one waits");
    world.workers.release();
    let outcome = ended.await.unwrap().unwrap();
    assert_eq!(outcome.result(), Some(&json!([text(), text()])));
    assert_eq!(calls.count(), 2);
}

/// The result of a body is decided before the process ends, whatever that costs.
#[actix::test]
async fn a_drain_waits_until_the_result_of_a_body_is_decided() {
    tokio::time::pause();
    for grace in [0, 5] {
        let mut scene = Scene::new("end of a body").await;
        let runtime = scene.runtime();
        let drained = actix::spawn(async move { runtime.drain(Duration::from_secs(grace)).await });
        pass(Duration::from_millis(500)).await;
        assert!(!drained.is_finished(), "{grace}");
        scene.world().workers.release();
        drained.await.unwrap();
        let news = scene.news().await;
        assert!(news.contains("a gives") && !news.contains("a is released"), "{grace}: {news}");
    }
}

/// Resumes that a parent passes on count like those of callers.
#[actix::test]
async fn resumes_are_refused_when_too_many_wait_for_a_decision() {
    tokio::time::pause();
    let middle = StepDefinition { resume_schema: Some(picky()), ..ask("a") };
    let definitions =
        [workflow("inner", vec![middle]), workflow("outer", vec![child("sub", "inner")])];
    let world = World::launch(registry_of(definitions), RuntimeLimits::default()).await;
    world.runtime.execute(start("outer", "e", json!(1))).await.unwrap();
    world.workers.hold();
    let mut resumes = Vec::new();
    for _ in 0..3 {
        // The capacity of the mailboxes in between.
        resumes.extend((0..100).map(|_| {
            let runtime = world.runtime.clone();
            let request = ResumeExecution { data: text(), ..Default::default() };
            actix::spawn(async move { runtime.resume(&target("outer", "e"), request).await })
        }));
        pass(Duration::from_millis(10)).await;
    }
    let refused: Vec<_> = resumes.iter().filter(|resume| resume.is_finished()).collect();
    assert_eq!(refused.len(), 300 - 1 - 256, "one is decided, others wait for it");
    world.workers.release();
    let mut taken = 0;
    for resume in resumes {
        taken += usize::from(resume.await.unwrap().is_ok());
    }
    assert_eq!(taken, 1);
}
