//! The tests of a configuration: `[[workflows.*.tests]]`.

use std::time::{Duration, Instant};

use greenroom_actors::function::StepError;

use super::answer::Answerer;
use super::case::{Case, Outcome};
use super::expectation::Expectation;
use super::mock::Mock;
use crate::Greenroom;
use crate::adapters::mock::MockModel;
use crate::config::workflow_tests::{
    MockedCall, MockedFailure, TestAnswer, TestAnswerer, TestExpectation, TestMocks, WorkflowTest,
};
use crate::greenroom::error::Problems;

/// Result of a test of a configuration.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Tested {
    /// Id of the workflow.
    pub workflow: String,
    /// Name of the test.
    pub name: String,
    /// End of the test, or the reasons of its failure.
    pub result: Result<Outcome, Problems>,
    /// Time that it took, in reality.
    pub spent: Duration,
}

/// Runs the tests of a server's configuration whose `workflow: name` contains the filter, in the order
/// of the files; await it within [`testing::run`](super::run). `server` makes the server anew for
/// each run.
///
/// ```no_run
/// use greenroom::Greenroom;
/// use greenroom::testing;
/// use serde_json::json;
///
/// fn server() -> Greenroom {
///     Greenroom::from_config("config.toml")
///         .unwrap()
///         .function("charge", |_| async { Ok(json!({ "charged": 1 }).into()) })
/// }
///
/// # fn tests() {
/// for test in testing::run(testing::run_configured(server, "")) {
///     assert!(test.result.is_ok(), "{}: {}: {:?}", test.workflow, test.name, test.result);
/// }
/// # }
/// ```
pub async fn run_configured(server: impl Fn() -> Greenroom, filter: &str) -> Vec<Tested> {
    let mut tested = Vec::new();
    for test in server().configured_tests() {
        if test.title().contains(filter) {
            tested.push(run(test, &server).await);
        }
    }
    tested
}

/// Runs one test.
pub(crate) async fn run(test: &WorkflowTest, server: &impl Fn() -> Greenroom) -> Tested {
    let began = Instant::now();
    let wrong = server().test().misnamed_in(test);
    let result = match case(test) {
        _ if !wrong.is_empty() => Err(Problems(wrong)),
        Ok(case) => case.run(server).await,
        Err(problems) => Err(problems),
    };
    let (workflow, name) = (test.workflow.clone(), test.name.clone());
    Tested { workflow, name, result, spent: began.elapsed() }
}

/// Runs one test once, and returns also whether it ends as expected.
#[cfg(feature = "cli")]
pub(crate) async fn observe(
    test: &WorkflowTest,
    server: &impl Fn() -> Greenroom,
) -> Result<(Outcome, bool), Problems> {
    case(test)?.observe(server).await
}

/// Returns a test of a file as a case.
fn case(test: &WorkflowTest) -> Result<Case, Problems> {
    let TestMocks { steps, tools, models } = &test.mocks;
    let mut case = Case::new(&test.workflow)
        .input(&test.input)
        .context(&test.context)
        .started_at(test.now)
        .expecting(Expectation::from(&test.expect));
    if let Some(user) = &test.user {
        case = case.user(user);
    }
    for (workflow, steps) in steps {
        for (step, call) in steps {
            case = case.mock_step_of(workflow, step, mock(call));
        }
    }
    for (name, call) in tools {
        case = case.mock_tool(name, mock(call));
    }
    for (name, rules) in models {
        let model = MockModel::new(rules.clone());
        let model = model.map_err(|problems| {
            Problems(problems.0.iter().map(|it| format!("mocks.models.{name}: {it}")).collect())
        })?;
        case = case.mock_model(name, std::sync::Arc::new(model));
    }
    for answer in &test.answers {
        let TestAnswer { step, after, data, by, refused } = answer;
        case = match by {
            Some(by) => case.answer_by(answerer(by), step, *after, data),
            None => case.answer(step, *after, data),
        };
        if let Some(part) = refused {
            case = case.expect_refusal(part);
        }
    }
    Ok(if test.crash_everywhere { case.crash_everywhere() } else { case })
}

fn answerer(by: &TestAnswerer) -> Answerer {
    let TestAnswerer { user, roles, is_verified } = by;
    let answerer = match user.as_deref() {
        Some(user) if *is_verified => Answerer::new(user),
        Some(user) => Answerer::claimed(user),
        None => Answerer::unknown(),
    };
    roles.iter().fold(answerer, |answerer, role| answerer.role(role.as_str()))
}

fn mock(call: &MockedCall) -> Mock {
    let MockedCall { output, fail, times, delay, is_repeatable } = call;
    let failure = || failure(fail.clone().unwrap_or_default());
    let mock = match output {
        Some(output) if fail.is_some() => Mock::output(output).failing(*times, failure()),
        Some(output) => Mock::output(output),
        None => Mock::failure(failure()),
    };
    let mock = mock.taking(*delay);
    if *is_repeatable { mock } else { mock.unrepeatable() }
}

fn failure(failure: MockedFailure) -> StepError {
    let MockedFailure { message, kind, is_terminal } = failure;
    let error = if is_terminal { StepError::terminal(message) } else { StepError::new(message) };
    match kind {
        Some(kind) => error.kind(&kind),
        None => error,
    }
}

impl From<&TestExpectation> for Expectation {
    fn from(expected: &TestExpectation) -> Self {
        let TestExpectation { status, result, error, ran, not_ran, took } = expected.clone();
        let truths = result.into_iter().collect();
        Self { status, truths, error, ran, not_ran, took }
    }
}
