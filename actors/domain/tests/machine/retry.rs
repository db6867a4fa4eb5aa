//! Retry policies, delays, and errors of earlier attempts.

use std::sync::Arc;

use greenroom_domain::definition::{Mapping, OnError, RetryPolicy};
use greenroom_domain::fact::{AfterFailure, Fact};
use greenroom_domain::failure::{
    ATTEMPT_ERROR_BYTES_MAX, ATTEMPT_ERRORS_MAX, AttemptFailure, ErrorClass, ErrorKind, ErrorName,
};
use greenroom_domain::machine::ChildStatus;
use greenroom_domain::plan::{Callers, Plan, lints};
use serde_json::json;

use crate::machine::build::{Adorned, all, child, map, run, workflow};
use crate::machine::world::World;

fn policy(on: Option<&str>, never: Option<&str>) -> RetryPolicy {
    let (on, never) = (on.map(str::to_owned), never.map(str::to_owned));
    RetryPolicy { attempts: 20, delay_ms: 100, factor: 1.0, on, never, ..RetryPolicy::default() }
}

fn is_repeated(policy: RetryPolicy, failure: AttemptFailure) -> bool {
    let mut world = World::of(vec![run("a").retrying(policy)]);
    world.fail_with("a", failure)[0].contains("; again at ")
}

#[test]
fn a_4xx_is_final_unless_the_policy_retries_it() {
    let http = |status| AttemptFailure::http(status, format!("HTTP {status}: no"));
    let timeout = || AttemptFailure::new(ErrorKind::Timeout, "too late");
    let rows = [
        (None, None, http(404), false),
        (None, None, http(429), true),
        (None, None, http(503), true),
        (None, None, timeout(), true),
        (Some("error.status == 404"), None, http(404), true),
        (Some("error.status == 404"), None, http(503), false),
        (Some("error.kind == 'timeout'"), None, timeout(), true),
        (Some("error.kind == 'timeout'"), None, http(503), false),
        (Some("error.status is none"), None, timeout(), true),
        (None, Some("error.status == 503"), http(503), false),
        (None, Some("error.status == 503"), http(500), true),
        (None, Some("error.status == 503"), http(404), false),
        (Some("true"), Some("'no' in error.message"), http(500), false),
        (Some("true"), Some("error.attempt > 1 or error.stepId != 'a'"), http(400), true),
        (Some("data.n == 5"), None, http(404), true),
    ];
    for (on, never, failure, expected) in rows {
        let case = format!("{on:?} {never:?} {failure}");
        let mut world =
            World::of(vec![map("first", json!({ "n": 5 })), run("a").retrying(policy(on, never))]);
        let repeated = world.fail_with("a", failure)[0].contains("; again at ");
        assert_eq!(repeated, expected, "{case}");
    }
}

fn declined(is_terminal: bool) -> AttemptFailure {
    let name = ErrorName::new("declined");
    let class = Some(ErrorClass { name, is_terminal, ..ErrorClass::of(ErrorKind::Function) });
    AttemptFailure { class, ..AttemptFailure::new(ErrorKind::Function, "no cover") }
}

#[test]
fn a_terminal_failure_is_never_retried() {
    for on in [None, Some("true"), Some("error.kind == 'declined'")] {
        assert!(!is_repeated(policy(on, None), declined(true)), "{on:?}");
        assert!(is_repeated(policy(on, None), declined(false)), "{on:?}");
    }
    assert!(!is_repeated(policy(Some("error.kind == 'function'"), None), declined(false)));
}

#[test]
fn the_name_of_a_failure_reaches_the_container_also_after_a_restart() {
    let on_error = OnError::Value(Mapping(json!("error.kind")));
    let mut world = World::of(vec![
        all("c", [("l", vec![run("a").tries(3)]), ("m", vec![run("b")])]).on_error(on_error),
    ]);
    let said = world.fail_with("c/l/a", declined(true));
    assert_eq!(said.last().unwrap(), "completed \"declined\"");
    world.restore_from(0);
}

#[test]
fn failures_without_a_class_are_retried() {
    let unknown = AttemptFailure { class: None, ..AttemptFailure::new(ErrorKind::Tool, "boom") };
    assert!(is_repeated(policy(None, None), unknown.clone()));
    assert!(!is_repeated(policy(Some("error.kind == 'http'"), None), unknown));
}

#[test]
fn a_policy_that_cannot_be_evaluated_ends_the_attempts() {
    let failure = || AttemptFailure::http(503, "HTTP 503");
    let mut world = World::of(vec![run("a").retrying(policy(Some("error.nope.x"), None))]);
    let said = world.fail_with("a", failure());
    assert!(said[0].starts_with("a fails: HTTP 503; retry.on: "), "{said:?}");
    let mut world = World::of(vec![run("a").retrying(policy(None, Some("error.nope.x")))]);
    let said = world.fail_with("a", failure());
    assert!(said[0].starts_with("a fails: HTTP 503; retry.never: "), "{said:?}");
}

#[test]
fn a_requested_delay_is_limited_by_the_policy() {
    let asked =
        |ms| AttemptFailure { retry_after_ms: Some(ms), ..AttemptFailure::http(429, "HTTP 429") };
    let hour = 3_600_000;
    let rows = [
        (None, 5, 100),
        (None, 5000, 5000),
        (None, hour, hour),
        (None, u64::MAX, hour),
        (Some(7000), 9000, 7000),
        (Some(50), 9000, 50),
    ];
    for (max_delay_ms, asks, expected) in rows {
        let policy = RetryPolicy { max_delay_ms, ..policy(None, None) };
        let mut world = World::of(vec![run("a").retrying(policy)]);
        world.fail_with("a", asked(asks));
        let recorded = world.facts().pop().unwrap();
        let Fact::StepFailed { next: AfterFailure::Retry { until }, .. } = recorded.fact else {
            panic!("{recorded:?}")
        };
        assert_eq!(until, recorded.at.plus_ms(expected), "{max_delay_ms:?} {asks}");
    }
}

#[test]
fn on_error_reads_the_failure() {
    let seen = json!({ "kind": "error.kind", "status": "error.status", "at": "error.stepId",
                       "n": "error.attempt", "why": "error.message" });
    let on_error = || OnError::Value(Mapping(seen.clone()));
    let mut world = World::of(vec![run("a").tries(2).on_error(on_error())]);
    world.fail_with("a", AttemptFailure::http(503, "HTTP 503"));
    world.due("a");
    let said = world.fail_with("a", AttemptFailure::http(404, "HTTP 404: gone"));
    let expected = "completed {\"kind\":\"http\",\"status\":404,\"at\":\"a\",\"n\":2,\
                    \"why\":\"HTTP 404: gone\"}";
    assert_eq!(said.last().unwrap(), expected);

    let inside = vec![all("c", [("l", vec![run("b")])]).on_error(on_error())];
    let mut world = World::of(inside);
    let said = world.fail("c/l/b", "boom");
    let expected = "completed {\"kind\":\"function\",\"status\":null,\"at\":\"b\",\"n\":1,\
                    \"why\":\"boom\"}";
    assert_eq!(said.last().unwrap(), expected);
}

#[test]
fn the_newest_errors_are_kept_and_long_ones_shortened() {
    let mut world = World::of(vec![run("a").retrying(policy(None, None))]);
    let long = format!("{}é", "x".repeat(ATTEMPT_ERROR_BYTES_MAX - 1));
    for attempt in 1..=ATTEMPT_ERRORS_MAX + 2 {
        world.fail_with("a", AttemptFailure::http(503, format!("{attempt} {long}")));
        world.due("a");
    }
    world.restore_from(1);
    let step = world.machine.state().steps(world.machine.plan()).remove(0);
    let attempts: Vec<u32> = step.errors.iter().map(|error| error.attempt).collect();
    assert_eq!(attempts, (3..=12).collect::<Vec<_>>());
    for error in &step.errors {
        assert_eq!(error.class, Some(ErrorClass::http(503)));
        assert!(error.message.len() <= ATTEMPT_ERROR_BYTES_MAX, "{}", error.message.len());
        assert!(error.message.starts_with(&format!("{} xxx", error.attempt)));
    }
    assert_eq!(step.error, None, "it is running again");
    assert!(world.machine.state().bytes >= 10 * ATTEMPT_ERROR_BYTES_MAX as u64, "they count");
}

#[test]
fn an_interrupted_attempt_is_kept_among_the_errors() {
    let mut world = World::of(vec![run("a").tries(2)]);
    world.crash();
    world.recover();
    world.fail("a", "boom");
    let step = world.machine.state().steps(world.machine.plan()).remove(0);
    let kinds: Vec<_> = step.errors.iter().map(|it| (it.attempt, it.class.unwrap().kind)).collect();
    assert_eq!(kinds, [(1, ErrorKind::Interrupted), (2, ErrorKind::Function)]);
}

#[test]
fn a_chain_of_failing_children_reports_the_first_failure() {
    let failed = |error: &str, kind| ChildStatus::Failed {
        error: Arc::from(error),
        class: Some(ErrorClass::of(kind)),
    };
    let mut world = World::of(vec![child("p")]);
    let said = world.report("p", 9, failed("boom", ErrorKind::Function));
    assert_eq!(said.last().unwrap(), "failed at p: boom (execution c1)");
    let mut world = World::of(vec![child("p")]);
    let said = world.report("p", 9, failed("boom (execution c9)", ErrorKind::Workflow));
    assert_eq!(said.last().unwrap(), "failed at p: boom (execution c9)");
}

#[test]
fn a_failure_that_ends_the_attempts_in_a_child_ends_those_of_its_parent() {
    let terminal = ErrorClass { is_terminal: true, ..ErrorClass::of(ErrorKind::Function) };
    let rows = [
        (terminal, true),
        (ErrorClass::of(ErrorKind::Cost), true),
        (ErrorClass::of(ErrorKind::Function), false),
        (ErrorClass::http(404), false),
    ];
    for (class, is_last) in rows {
        let mut world = World::of(vec![child("p").tries(2)]);
        let failed = ChildStatus::Failed { error: Arc::from("no"), class: Some(class) };
        let said = world.report("p", 9, failed);
        let expected = if is_last { "failed at p: no (execution c1)" } else { AGAIN };
        assert_eq!(said.last().unwrap(), expected, "{class:?}");
        for (on, is_repeated) in
            [("error.kind == 'workflow'", true), ("error.kind == 'http'", false)]
        {
            let mut world = World::of(vec![child("p").retrying(policy(Some(on), None))]);
            let failed = ChildStatus::Failed { error: Arc::from("no"), class: Some(class) };
            let said = world.report("p", 9, failed);
            let expected = if is_repeated { AGAIN } else { "failed at p: no (execution c1)" };
            assert_eq!(said.last().unwrap(), expected, "{class:?} with {on}");
        }
        // Its own parent gets the same from the class of its end.
        if is_last {
            let end = world.machine.state().end.clone().unwrap();
            let greenroom_domain::state::Outcome::Failed { class, .. } = end.outcome else {
                panic!("it failed")
            };
            let expected = ErrorClass { is_terminal: true, ..ErrorClass::of(ErrorKind::Workflow) };
            assert_eq!(class, Some(expected));
        }
    }
    const AGAIN: &str = "p fails: no (execution c1); again at 100";
}

#[test]
fn retry_and_on_error_alone_can_read_the_error() {
    let known = workflow(vec![
        run("a").retrying(policy(Some("error.kind == 'http'"), Some("error.status == 404"))),
        run("b").instead(json!({ "why": "error.message" })),
    ]);
    assert_eq!(lints(&known, Callers::Any), []);
    let unknown = workflow(vec![
        map("a", "error.kind"),
        run("b").retrying(policy(Some("eror.kind == 'http'"), None)),
    ]);
    let found: Vec<_> =
        lints(&unknown, Callers::Any).into_iter().map(|it| (it.place, it.message)).collect();
    let place = |keys: &[&str]| keys.iter().map(|key| (*key).to_owned()).collect::<Vec<_>>();
    assert_eq!(found[0].0, place(&["steps", "a", "map"]));
    assert!(found[0].1.contains("only `on_error`, `retry` and `compensate` have it"), "{found:?}");
    assert_eq!(found[1].0, place(&["steps", "b", "retry", "on"]));
    assert!(found[1].1.starts_with("`eror` is not in scope"), "{found:?}");

    let broken = workflow(vec![run("a").retrying(policy(Some("error ="), Some("((")))]);
    let problems = Plan::compile(broken).unwrap_err();
    let places: Vec<_> = problems.into_iter().map(|problem| problem.place).collect();
    assert_eq!(
        places,
        [place(&["steps", "a", "retry", "on"]), place(&["steps", "a", "retry", "never"])]
    );
}
