//! Facts, and the text that `/metrics` shows for them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use greenroom_actors::domain::fact::{AfterFailure, Fact, Recorded};
use greenroom_actors::domain::ids::ExecutionId;
use greenroom_actors::domain::time::Timestamp;
use greenroom_actors::domain::trace::{EntityType, Trace, TraceOrigin};
use greenroom_actors::ports::store::Header;
use greenroom_actors::registry::Registry;
use greenroom_actors::runtime::BULK_WORKFLOW;
use serde_json::{Value, json};

use super::{Metrics, Stored, stored};
use crate::builder::{Compensation, Step, Workflow};

fn registry() -> Registry {
    let steps = ["one", "two", "three"].map(|id| Step::map(id, json!({ "n": "data.n + 1" })));
    let workflow = steps.into_iter().fold(Workflow::new("noop3"), Workflow::step);
    let plan = Arc::new(workflow.compile().unwrap());
    Registry { workflows: [("noop3".to_owned(), plan)].into(), ..Registry::default() }
}

fn header(workflow: &str) -> Header {
    Header {
        id: ExecutionId::parse("e").unwrap(),
        workflow_id: workflow.into(),
        definition_hash: "h".into(),
        user_id: None,
        conversation_id: None,
        parent: None,
        trace: Trace::of("e", EntityType::Workflow, &workflow.into(), TraceOrigin::New),
        created_at: Timestamp(0),
    }
}

fn recorded(fact: Fact) -> Recorded {
    Recorded { seq: 1, at: Timestamp(1_500), fact, by: None }
}

fn completed(path: &str) -> [Recorded; 2] {
    let output: Arc<Value> = Arc::new(json!({ "n": 1 }));
    let (path, since): (Arc<str>, _) = (path.into(), Timestamp(500));
    [
        recorded(Fact::StepStarted {
            path: Arc::clone(&path),
            attempt: 1,
            interrupted: false,
            opening: None,
        }),
        recorded(Fact::StepCompleted {
            path,
            attempt: 1,
            since,
            output,
            usage: None,
            compensable: false,
            skipped: false,
            mcp: None,
        }),
    ]
}

fn noop3() -> Vec<Recorded> {
    let mut facts: Vec<Recorded> =
        ["one", "two", "three"].into_iter().flat_map(completed).collect();
    let result = Arc::new(Value::Null);
    facts.push(recorded(Fact::WorkflowCompleted { since: Timestamp(0), result }));
    facts
}

fn lines(metrics: &Metrics, part: &str) -> Vec<String> {
    let text = String::from_utf8(metrics.text(&Stored::default()).unwrap()).unwrap();
    let samples = text.lines().filter(|line| !line.starts_with('#') && line.contains(part));
    samples.map(str::to_owned).collect()
}

#[test]
fn operations_on_many_executions_have_a_name_of_their_own() {
    let metrics = Metrics::new(&registry(), 1_000).unwrap();
    let finished = r#"{status="completed",workflow="greenroom.bulk"}"#;
    let found = || lines(&metrics, "greenroom_executions_finished_total");
    assert!(!found().iter().any(|line| line.contains(finished)));
    metrics.meter().recorded(&header(BULK_WORKFLOW), &noop3());
    assert!(found().contains(&format!("greenroom_executions_finished_total{finished} 1")));
    let labels =
        ["noop3", BULK_WORKFLOW, "retired"].map(|id| stored::label(&registry(), id).to_owned());
    assert_eq!(labels, ["noop3", BULK_WORKFLOW, "_other"]);
}

#[test]
fn facts_are_counted_by_configured_names_and_others_under_other() {
    let metrics = Metrics::new(&registry(), 1_000).unwrap();
    let meter = metrics.meter();
    meter.recorded(&header("noop3"), &noop3());
    let path: Arc<str> = "block/retired".into();
    let next = AfterFailure::Retry { until: Timestamp(9) };
    let since = Timestamp(1_000);
    let error = "no".into();
    let failed = Fact::StepFailed {
        path,
        attempt: 1,
        since,
        error,
        class: None,
        next,
        usage: None,
        mcp: None,
    };
    meter.recorded(&header("noop3"), &[recorded(failed)]);
    meter.recorded(&header("retired"), &noop3());
    meter.waited(&header("noop3"), Duration::from_secs(90));
    for name in ["greenroom_executions_finished_total", "greenroom_executions_total"] {
        let expected = [
            r#"{status="cancelled",workflow="_other"} 0"#,
            r#"{status="cancelled",workflow="noop3"} 0"#,
            r#"{status="completed",workflow="_other"} 1"#,
            r#"{status="completed",workflow="noop3"} 1"#,
            r#"{status="error",workflow="_other"} 0"#,
            r#"{status="error",workflow="noop3"} 0"#,
        ];
        assert_eq!(lines(&metrics, name), expected.map(|labels| format!("{name}{labels}")));
    }
    assert_eq!(
        lines(&metrics, "greenroom_step_duration_seconds_sum"),
        [
            r#"greenroom_step_duration_seconds_sum{status="completed",step="_other",workflow="_other"} 3"#,
            r#"greenroom_step_duration_seconds_sum{status="completed",step="one",workflow="noop3"} 1"#,
            r#"greenroom_step_duration_seconds_sum{status="completed",step="three",workflow="noop3"} 1"#,
            r#"greenroom_step_duration_seconds_sum{status="completed",step="two",workflow="noop3"} 1"#,
            r#"greenroom_step_duration_seconds_sum{status="error",step="_other",workflow="noop3"} 0.5"#,
        ]
    );
    let retries = r#"greenroom_step_retries_total{step="_other",workflow="noop3"} 1"#;
    assert_eq!(lines(&metrics, "greenroom_step_retries_total"), [retries]);
    let wait = r#"greenroom_wait_duration_seconds_sum{workflow="noop3"} 90"#;
    assert_eq!(lines(&metrics, "wait_duration_seconds_sum"), [wait]);
}

#[test]
fn compensations_have_their_own_names_and_skipped_ones_are_no_attempts() {
    let booking = Step::run("book", "book").compensate(Compensation::run("unbook"));
    let plan = Arc::new(Workflow::new("trip").step(booking).compile().unwrap());
    let workflows = [("trip".to_owned(), plan)].into();
    let metrics = Metrics::new(&Registry { workflows, ..Registry::default() }, 1_000).unwrap();
    let mut facts = completed("both/x/book:compensate");
    metrics.meter().recorded(&header("trip"), &facts);
    let Fact::StepCompleted { skipped, .. } = &mut facts[1].fact else { panic!("{facts:?}") };
    *skipped = true;
    metrics.meter().recorded(&header("trip"), &facts);
    metrics.meter().recorded(&header("trip"), &completed("book"));
    let count = "greenroom_step_duration_seconds_count";
    let expected = ["book", "book:compensate"]
        .map(|step| format!("{count}{{status=\"completed\",step=\"{step}\",workflow=\"trip\"}} 1"));
    assert_eq!(lines(&metrics, count), expected);
}

/// Measures the cost of counting (`--nocapture` prints it), with a bound that only a defect exceeds.
#[test]
fn counting_facts_is_cheap() {
    const ROUNDS: u32 = 20_000;
    let metrics = Metrics::new(&registry(), 1_000).unwrap();
    let (meter, header, facts) = (metrics.meter(), header("noop3"), noop3());
    let began = Instant::now();
    for _ in 0..ROUNDS {
        meter.recorded(&header, &facts);
    }
    let each = began.elapsed() / ROUNDS;
    println!("noop3: {each:?}");
    assert!(each < Duration::from_millis(1), "{each:?}");
}

/// Scrapes a thousand workflows, all of whose steps have run.
#[test]
fn series_of_a_thousand_workflows_stay_within_the_limit() {
    const SERIES_MAX: usize = 20_000;
    let plan = Arc::clone(&registry().workflows["noop3"]);
    let workflows = (0..1_000).map(|number| (format!("w{number}"), Arc::clone(&plan)));
    let registry = Registry { workflows: workflows.collect(), ..Registry::default() };
    let metrics = Metrics::new(&registry, SERIES_MAX).unwrap();
    for id in registry.workflows.keys() {
        metrics.meter().recorded(&header(id), &noop3());
    }
    let began = Instant::now();
    let text = metrics.text(&Stored::default()).unwrap();
    println!("{} bytes in {:?}", text.len(), began.elapsed());
    let steps = lines(&metrics, "greenroom_step_duration_seconds");
    assert!(steps.len() <= SERIES_MAX + 20, "{}", steps.len());
    let shared = r#"step="_other",workflow="_other""#;
    assert!(steps.iter().any(|line| line.contains(shared)), "the rest is counted, too");
}
