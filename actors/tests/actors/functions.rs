//! The context of a function: progress, suspension and cancellation.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use greenroom_actors::RuntimeLimits;
use greenroom_actors::domain::definition::{
    Body, HttpBody, HttpMethod, Mapping, OnError, RetryPolicy, StepDefinition, StepKind,
};
use greenroom_actors::function::{StepError, StepOutcome};
use greenroom_actors::ports::store::Status;
use greenroom_actors::registry::Registry;
use greenroom_actors::testkit::{World, pass, registry_of, start, target};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::progress::collector;
use crate::workflows::{Calls, all, function, race, resume, run, sleep, step, workflow};

/// The tokens of each call, as a thread of the function would hold them.
type Tokens = Arc<Mutex<Vec<CancellationToken>>>;

fn registry(steps: Vec<StepDefinition>) -> (Registry, Tokens) {
    let mut registry = registry_of([workflow("w", steps)]);
    let tokens = Tokens::default();
    let given = Arc::clone(&tokens);
    let mut add = |name: &str, body| registry.functions.insert(name.to_owned(), body);
    add(
        "waits",
        function(move |step| {
            given.lock().unwrap().push(step.cancellation);
            std::future::pending()
        }),
    );
    let given = Arc::clone(&tokens);
    add(
        "ends",
        function(move |step| {
            given.lock().unwrap().push(step.cancellation);
            async { Ok(json!(1).into()) }
        }),
    );
    add(
        "speaks",
        function(|step| async move {
            let large = "x".repeat(64 * 1024);
            let mut taken = vec![step.progress(json!({ "done": 1 })), step.progress(large)];
            tokio::time::sleep(Duration::from_millis(5)).await;
            taken.extend((0..200).map(|n| step.progress(n)));
            Ok(json!(taken.iter().filter(|taken| **taken).count()).into())
        }),
    );
    add(
        "asks",
        function(|step| async move {
            match step.resume_as::<u32>()? {
                Some(chosen) => Ok(json!(chosen + step.input_as::<u32>()?).into()),
                None => Ok(StepOutcome::suspended("Which one?").showing(json!([1, 2]))),
            }
        }),
    );
    (registry, tokens)
}

async fn world(steps: Vec<StepDefinition>) -> (World, Tokens) {
    tokio::time::pause();
    let (registry, tokens) = registry(steps);
    (World::launch(registry, RuntimeLimits::default()).await, tokens)
}

/// Starts an execution with a subscriber.
async fn begin(world: &World) -> crate::progress::Events {
    let (_, subscriber, events) = collector();
    world.runtime.stream(start("w", "e", json!(4)), subscriber).await.unwrap();
    pass(Duration::from_millis(1)).await;
    events
}

fn fired(tokens: &Tokens) -> Vec<bool> {
    tokens.lock().unwrap().iter().map(CancellationToken::is_cancelled).collect()
}

#[actix::test]
async fn subscribers_get_the_progress_of_a_function_within_limits() {
    let (world, _) = world(vec![run("a", "speaks")]).await;
    let events = begin(&world).await;
    pass(Duration::from_secs(1)).await;
    let events: Vec<String> = events.borrow().iter().map(|(_, what)| what.clone()).collect();
    let sent: Vec<&str> = events.iter().filter(|it| it.starts_with('!')).map(|it| &**it).collect();
    assert_eq!((sent[0], sent[1], sent.len()), ("!{\"done\":1}", "!0", 100));
    let place = |what: &str| events.iter().position(|it| it == what).unwrap();
    assert!(place("StepStart") < place("!0"), "{events:?}");
    assert!(
        events.iter().rposition(|it| it.starts_with('!'))
            < events.iter().position(|it| it == "StepComplete")
    );
    let state = world.runtime.describe(&target("w", "e")).await.unwrap();
    assert_eq!(state.result, Some(json!(100).into()), "the function counts accepted values");
    assert_eq!(world.runtime.stats().progress_dropped, 102);
}

#[actix::test]
async fn without_subscribers_progress_is_neither_sent_nor_counted_as_dropped() {
    let (world, _) = world(vec![run("a", "speaks")]).await;
    let outcome = world.runtime.execute(start("w", "e", json!(1))).await.unwrap();
    assert_eq!(outcome.result(), Some(&json!(0)));
    assert_eq!(world.runtime.stats().progress_dropped, 0);
}

#[actix::test]
async fn a_function_suspends_and_reads_the_answer_as_its_own_type() {
    let (world, _) = world(vec![run("a", "asks")]).await;
    let outcome = world.runtime.execute(start("w", "e", json!(4))).await.unwrap();
    let suspension = outcome.suspension().unwrap();
    assert_eq!(
        (&*suspension.reason, &suspension.payload),
        ("Which one?", &Some(json!([1, 2]).into()))
    );
    let outcome = world.runtime.resume(&target("w", "e"), resume(json!(3))).await.unwrap();
    assert_eq!((outcome.status(), outcome.result()), (Status::Completed, Some(&json!(7))));

    world.runtime.execute(start("w", "wrong", json!(4))).await.unwrap();
    let outcome = world.runtime.resume(&target("w", "wrong"), resume(json!("x"))).await.unwrap();
    let message = outcome.failure().unwrap().message;
    assert!(message.starts_with("resume: invalid type: string \"x\""), "{message}");
}

#[actix::test]
async fn a_cancel_fires_the_token() {
    let (world, tokens) = world(vec![run("a", "waits")]).await;
    begin(&world).await;
    assert_eq!(fired(&tokens), [false]);
    world.runtime.cancel(&target("w", "e"), None, None).await.unwrap();
    assert_eq!(fired(&tokens), [true]);
}

#[actix::test]
async fn a_timeout_fires_the_token() {
    let step = StepDefinition { timeout_ms: Some(50), ..run("a", "waits") };
    let (world, tokens) = world(vec![step]).await;
    begin(&world).await;
    assert_eq!(fired(&tokens), [false]);
    pass(Duration::from_millis(60)).await;
    assert_eq!(fired(&tokens), [true]);
}

#[actix::test]
async fn a_lost_race_fires_the_token() {
    let blocks = vec![("slow", vec![run("a", "waits")]), ("fast", vec![sleep("nap", 50)])];
    let (world, tokens) = world(vec![race("both", blocks), run("b", "waits")]).await;
    begin(&world).await;
    assert_eq!(fired(&tokens), [false]);
    pass(Duration::from_millis(60)).await;
    assert_eq!(fired(&tokens), [true, false]);
}

#[actix::test]
async fn a_step_that_another_one_cancelled_before_it_began_is_not_called() {
    let body = Body::Http(HttpBody {
        method: HttpMethod::Post,
        url: "http://127.0.0.1:1/".to_owned(),
        headers: BTreeMap::new(),
        query: BTreeMap::new(),
        body: Some(Mapping(json!("fail('cannot be written')"))),
    });
    let blocks = vec![
        ("broken", vec![step("x", StepKind::Then { body })]),
        ("whole", vec![run("y", "waits")]),
    ];
    let (world, tokens) = world(vec![all("both", blocks)]).await;
    begin(&world).await;
    let state = world.runtime.describe(&target("w", "e")).await.unwrap();
    assert_eq!((state.status, fired(&tokens).len()), (Status::Error, 0));
}

#[actix::test]
async fn a_shutdown_fires_the_token_after_its_grace_period() {
    let (world, tokens) = world(vec![run("a", "waits")]).await;
    begin(&world).await;
    let runtime = world.runtime.clone();
    let drain = actix::spawn(async move { runtime.drain(Duration::from_secs(5)).await });
    pass(Duration::from_secs(4)).await;
    assert_eq!(fired(&tokens), [false], "it has time to end");
    drain.await.unwrap();
    assert_eq!(fired(&tokens), [true]);
}

#[actix::test]
async fn neither_its_end_nor_a_pause_fires_the_token() {
    let (world, tokens) = world(vec![run("a", "ends"), run("b", "waits")]).await;
    begin(&world).await;
    world.runtime.suspend(&target("w", "e"), None, None).await.unwrap();
    pass(Duration::from_secs(1)).await;
    assert_eq!(fired(&tokens), [false, false]);
}

#[actix::test]
async fn the_failure_of_a_function_decides_on_the_next_attempt() {
    tokio::time::pause();
    let rows = [
        (StepError::new("no"), 3, Duration::from_millis(2)),
        (StepError::terminal("no").kind("declined"), 1, Duration::ZERO),
        (StepError::new("no").retry_after(Duration::from_secs(60)), 3, Duration::from_secs(120)),
    ];
    for (error, attempts, least) in rows {
        let mut step = run("pay", "pay");
        let policy =
            RetryPolicy { attempts: 3, delay_ms: 1, factor: 1.0, ..RetryPolicy::default() };
        step.retry = Some(policy);
        let mut definition = workflow("w", vec![step]);
        definition.steps[0].on_error = OnError::Value(Mapping(json!("error.kind")));
        let mut registry = registry_of([definition]);
        let calls = Calls::default();
        let (counted, failure) = (calls.clone(), error.clone());
        let pay = function(move |_| {
            counted.add_one();
            std::future::ready(Err(failure.clone()))
        });
        registry.functions.insert("pay".to_owned(), pay);
        let world = World::launch(registry, RuntimeLimits::default()).await;
        let begun = tokio::time::Instant::now();
        let outcome = world.runtime.execute(start("w", "e", json!({}))).await.unwrap();
        let kind = error.named_kind().unwrap_or("function");
        assert_eq!((calls.count(), outcome.result()), (attempts, Some(&json!(kind))), "{error:?}");
        assert!(begun.elapsed() >= least, "{error:?}");
    }
}
