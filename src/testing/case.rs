//! A declared test of a workflow: an input, mocks, answers, and what is expected.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use greenroom_actors::domain::status::Status;
use greenroom_actors::domain::time::Timestamp;
use greenroom_actors::ports::model::LanguageModel;
use serde::Serialize;
use serde_json::{Map, Value};

use super::answer::Answerer;
use super::crashes;
use super::expectation::Expectation;
use super::mock::Mock;
use super::names;
use super::planned::PlannedAnswer;
use super::play::{Play, Played};
use super::setup::{Mocks, Model, read_time};
use super::world::World;
use crate::Greenroom;
use crate::greenroom::error::Problems;

/// Id of the execution of every case, so that idempotency keys are the same in every run.
pub(super) const EXECUTION: &str = "test";

/// A test of a workflow: what goes in, who answers what, and what is expected.
///
/// ```
/// use std::time::Duration;
///
/// use greenroom::prelude::*;
/// use greenroom::testing::{self, Case, Mock};
/// use serde_json::json;
///
/// fn server() -> Greenroom {
///     let asked = Step::map("manager", json!({ "paid": "resume" })).suspend(Suspend::always());
///     Greenroom::new().workflow(Workflow::new("expense").step(asked).step(Step::run("pay", "pay")))
/// }
///
/// testing::run(
///     Case::new("expense")
///         .input(&json!({ "amount": 900 }))
///         .mock_step("pay", Mock::output(json!("receipt 7")))
///         .answer("manager", Duration::from_secs(3600), &json!(true))
///         .expect("result == 'receipt 7'")
///         .crash_everywhere()
///         .run(server),
/// )
/// .unwrap();
/// ```
#[derive(Clone)]
#[must_use = "nothing happens before it is run"]
pub struct Case {
    pub(super) workflow: String,
    pub(super) input: Value,
    pub(super) user: Option<String>,
    pub(super) context: Map<String, Value>,
    pub(super) mocks: Mocks,
    pub(super) answers: Vec<PlannedAnswer>,
    pub(super) start: Option<Timestamp>,
    pub(super) expected: Expectation,
    crashes: bool,
    check: Option<Arc<Check>>,
    problems: Vec<String>,
}

type Check = dyn Fn(&Outcome) -> Result<(), String> + Send + Sync;

/// End of a [`Case`]: of its execution, or the point from which on it waits for ever.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Outcome {
    /// `Suspended` if it waits for an answer that nothing gives.
    pub status: Status,
    /// The result; null without one.
    pub result: Value,
    /// The error of a failed execution.
    pub error: Option<String>,
    /// Ids of the steps that began, in the order of the definition, then of compensations
    /// (`pay:compensate`).
    pub ran: Vec<String>,
    /// Answers that were refused: what each was about, and the reason.
    pub refusals: Vec<String>,
    /// Virtual time from its start to its end.
    pub took: Duration,
    /// Number of further runs in which it was killed, each at another point.
    pub kills: u64,
}

impl Case {
    /// Begins a case of a workflow, without an input.
    pub fn new(workflow: impl Into<String>) -> Self {
        Self {
            workflow: workflow.into(),
            input: Value::Null,
            user: None,
            context: Map::new(),
            mocks: Mocks::default(),
            answers: Vec::new(),
            start: None,
            expected: Expectation::default(),
            crashes: false,
            check: None,
            problems: Vec::new(),
        }
    }

    /// Sets the input.
    pub fn input(mut self, input: &(impl Serialize + ?Sized)) -> Self {
        self.input = self.json("input", input);
        self
    }

    /// Names the user that the execution belongs to.
    pub fn user(mut self, id: impl Into<String>) -> Self {
        self.user = Some(id.into());
        self
    }

    /// Sets the caller's context, an object.
    pub fn context(mut self, context: &(impl Serialize + ?Sized)) -> Self {
        match self.json("context", context) {
            Value::Object(context) => self.context = context,
            Value::Null => {}
            _ => self.problems.push("context: must be an object".to_owned()),
        }
        self
    }

    /// Sets the time at which it starts, as [`Setup::starting_at`](super::Setup::starting_at) does.
    pub fn starting_at(mut self, time: &str) -> Self {
        match read_time(time) {
            Ok(start) => self.start = Some(start),
            Err(problem) => self.problems.push(problem),
        }
        self
    }

    /// Puts a mock in place of a step, as [`Setup::mock_step`](super::Setup::mock_step) does.
    pub fn mock_step(self, step: &str, mock: Mock) -> Self {
        let workflow = self.workflow.clone();
        self.mock_step_of(&workflow, step, mock)
    }

    /// Puts a mock in place of a step of another workflow, which this one runs.
    pub fn mock_step_of(mut self, workflow: &str, step: &str, mock: Mock) -> Self {
        let steps = self.mocks.steps.entry(workflow.to_owned()).or_default();
        steps.insert(step.to_owned(), mock);
        self
    }

    /// Puts a mock in place of what a tool does.
    pub fn mock_tool(mut self, tool: &str, mock: Mock) -> Self {
        self.mocks.tools.insert(tool.to_owned(), mock);
        self
    }

    /// Puts a model in place of another one. In runs with crashes it should answer the same to the
    /// same request.
    pub fn mock_model(mut self, name: &str, model: Arc<dyn LanguageModel>) -> Self {
        self.mocks.models.insert(name.to_owned(), Model(model));
        self
    }

    /// Answers a step, named by its id or path, or a call of a tool, some time after it has asked.
    /// Several answers about the same are given in this order, one to each ask. The test may answer
    /// everything; [`Self::answer_by`] names who answers. One that is refused, or comes too late, is
    /// a problem of the case.
    pub fn answer(
        self,
        about: impl Into<String>,
        after: Duration,
        data: &(impl Serialize + ?Sized),
    ) -> Self {
        self.planned(about.into(), after, data, None)
    }

    /// Answers as [`Self::answer`] does, by a user or a service, who has to be among those who are
    /// asked.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use greenroom::prelude::*;
    /// use greenroom::testing::{self, Answerer, Case};
    /// use serde_json::json;
    ///
    /// fn server() -> Greenroom {
    ///     let asked = Suspend::always().to(["role:lead"]);
    ///     let approve = Step::map("approve", json!("resumed_by.id")).suspend(asked);
    ///     Greenroom::new().workflow(Workflow::new("order").step(approve))
    /// }
    ///
    /// let hour = Duration::from_secs(3600);
    /// testing::run(
    ///     Case::new("order")
    ///         .answer_by("ann", "approve", hour, &json!(true))
    ///         .expect_refusal("others are asked: role:lead")
    ///         .answer_by(Answerer::new("bob").role("lead"), "approve", 2 * hour, &json!(true))
    ///         .expect("result == 'bob'")
    ///         .run(server),
    /// )
    /// .unwrap();
    /// ```
    pub fn answer_by(
        self,
        by: impl Into<Answerer>,
        about: impl Into<String>,
        after: Duration,
        data: &(impl Serialize + ?Sized),
    ) -> Self {
        self.planned(about.into(), after, data, Some(by.into()))
    }

    fn planned(
        mut self,
        about: String,
        after: Duration,
        data: &(impl Serialize + ?Sized),
        by: Option<Answerer>,
    ) -> Self {
        let data = self.json("answer", data);
        self.answers.push(PlannedAnswer { about, after, data, by, refusal: None });
        self
    }

    /// Expects the last answer to be refused with a reason that contains this text: by the check of
    /// the program, by the rules of the ask, or because its data does not match the schema. What
    /// asked keeps waiting, and the next answer about it is given to the same ask.
    pub fn expect_refusal(mut self, part: impl Into<String>) -> Self {
        match self.answers.last_mut() {
            Some(answer) => answer.refusal = Some(part.into()),
            None => self.problems.push("expect_refusal: there is no answer before it".to_owned()),
        }
        self
    }

    /// Expects a status. Without any expectation of status or error, the execution has to complete.
    pub fn expect_status(mut self, status: Status) -> Self {
        self.expected.status = Some(status);
        self
    }

    /// Expects an expression to be true; it reads `result`, `status`, `error`, `input` and `steps`,
    /// the outputs by id.
    pub fn expect(mut self, expression: impl Into<String>) -> Self {
        self.expected.truths.push(expression.into());
        self
    }

    /// Expects a failure whose message contains this text.
    pub fn expect_error(mut self, part: impl Into<String>) -> Self {
        self.expected.error = Some(part.into());
        self
    }

    /// Expects these steps to begin, or compensations (`pay:compensate`).
    pub fn expect_ran<'a>(mut self, steps: impl IntoIterator<Item = &'a str>) -> Self {
        self.expected.ran.extend(steps.into_iter().map(str::to_owned));
        self
    }

    /// Expects these steps not to begin.
    pub fn expect_not_ran<'a>(mut self, steps: impl IntoIterator<Item = &'a str>) -> Self {
        self.expected.not_ran.extend(steps.into_iter().map(str::to_owned));
        self
    }

    /// Expects this time from start to end, to the second.
    pub fn expect_took(mut self, time: Duration) -> Self {
        self.expected.took = Some(time);
        self
    }

    /// Checks every run, also each one with a crash: for state outside of the execution, such as the
    /// entries of a ledger that `server` makes anew.
    pub fn check(
        mut self,
        check: impl Fn(&Outcome) -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        self.check = Some(Arc::new(check));
        self
    }

    /// Also runs the case once for each change of the store, killed when the next one is due, started
    /// again, and expected to end the same. So everything that happens between two records happens
    /// once and is lost: a mock that is called with another key then, or twice where it is
    /// [`unrepeatable`](Mock::unrepeatable), is a failure.
    pub fn crash_everywhere(mut self) -> Self {
        self.crashes = true;
        self
    }

    pub(crate) fn started_at(self, start: Option<Timestamp>) -> Self {
        Self { start, ..self }
    }

    pub(crate) fn expecting(self, expected: Expectation) -> Self {
        Self { expected, ..self }
    }

    /// Runs the case in virtual time; await it within [`testing::run`](super::run). `server` makes
    /// the server anew for each run.
    pub async fn run(&self, server: impl Fn() -> Greenroom) -> Result<Outcome, Problems> {
        if !self.problems.is_empty() {
            return Err(Problems(self.problems.clone()));
        }
        let (mut outcome, played) = self.run_once(&server, None).await?;
        if self.crashes {
            let calls: Vec<_> = self.mocks.all().map(|(_, mock)| mock.calls()).collect();
            let kills = crashes::everywhere(self, &server, &played).await;
            self.mocks.all().zip(calls).for_each(|((_, mock), calls)| mock.set_calls(calls));
            outcome.kills = kills?;
        }
        Ok(outcome)
    }

    /// Runs the case once, and returns also whether it ends as expected. What would leave the
    /// process, and answers that are not given as planned, are problems nevertheless.
    #[cfg(feature = "cli")]
    pub(crate) async fn observe(
        &self,
        server: &impl Fn() -> Greenroom,
    ) -> Result<(Outcome, bool), Problems> {
        let played = self.play(server, None).await?;
        let problems = played.mistakes();
        if !problems.is_empty() {
            return Err(Problems(problems));
        }
        Ok((played.outcome(), self.expected.check(self, &played).is_empty()))
    }

    async fn play(
        &self,
        server: &impl Fn() -> Greenroom,
        kill_after: Option<u64>,
    ) -> Result<Played, Problems> {
        self.mocks.all().for_each(|(_, mock)| mock.set_calls(Vec::new()));
        let setup = server().test().mocking(self.mocks.clone(), self.start);
        let blueprint = setup.blueprint(|registry| names::misnamed(self, registry))?;
        let world = World::launch(blueprint).await?;
        Play::new(self, world, kill_after).finish().await
    }

    /// Runs the case once, killed after so many changes of the store.
    pub(super) async fn run_once(
        &self,
        server: &impl Fn() -> Greenroom,
        kill_after: Option<u64>,
    ) -> Result<(Outcome, Played), Problems> {
        let played = self.play(server, kill_after).await?;
        let outcome = played.outcome();
        let mut problems = match kill_after {
            None => self.expected.check(self, &played),
            // an interrupted attempt is not one of those that a mock fails, nor is its delay
            Some(_) => Expectation { took: None, ..self.expected.clone() }.check(self, &played),
        };
        let checked = self.check.as_ref().map(|check| check(&outcome));
        problems.extend(checked.and_then(Result::err));
        if problems.is_empty() { Ok((outcome, played)) } else { Err(Problems(problems)) }
    }

    /// Returns a value as JSON; one that cannot be written is a problem of the run.
    fn json(&mut self, what: &str, value: &(impl Serialize + ?Sized)) -> Value {
        serde_json::to_value(value).unwrap_or_else(|error| {
            self.problems.push(format!("{what}: {error}"));
            Value::Null
        })
    }
}

impl fmt::Debug for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Case")
            .field("workflow", &self.workflow)
            .field("input", &self.input)
            .field("mocks", &self.mocks)
            .field("answers", &self.answers)
            .finish_non_exhaustive()
    }
}
