//! `[[workflows.*.tests]]`: tests of a workflow, which `greenroom test` runs. A server only checks
//! them.

use std::collections::BTreeMap;
use std::time::Duration;

use greenroom_actors::domain::plan::Plan;
use greenroom_actors::domain::status::Status;
use greenroom_actors::domain::time::Timestamp;
use serde_json::{Map, Value};
use toml::de::DeValue;

use super::entry::Entry;
use super::models::{RuleCall, read_mock};
use super::names::{NameKind, Names, Reference};
use super::problem::{ConfigProblem, Spot};
use super::section::Section;
use super::texts::TextScope;
use crate::adapters::mock::MockConfig;

/// A test of a workflow.
#[derive(Debug, Clone)]
#[cfg_attr(
    not(all(feature = "cli", feature = "testing")),
    expect(dead_code, reason = "no command runs them")
)]
pub(crate) struct WorkflowTest {
    pub(crate) workflow: String,
    /// Unique within the workflow.
    pub(crate) name: String,
    pub(crate) input: Value,
    pub(crate) user: Option<String>,
    pub(crate) context: Map<String, Value>,
    /// Start of its virtual time; `None`: that of every test.
    pub(crate) now: Option<Timestamp>,
    pub(crate) mocks: TestMocks,
    pub(crate) answers: Vec<TestAnswer>,
    pub(crate) expect: TestExpectation,
    pub(crate) crash_everywhere: bool,
    /// Its place in a file.
    pub(crate) spot: Spot,
    /// Its number among those of the workflow, from 0 on.
    pub(crate) index: usize,
    names: TestNames,
}

/// Names in a test that are checked with it alone: a wrong one is no mistake of the others.
#[derive(Debug, Clone, Default)]
struct TestNames {
    /// Definitions of the configuration, or of Rust code.
    references: Vec<Reference>,
    /// Names of steps that its workflow does not have.
    wrong_steps: Vec<ConfigProblem>,
}

impl WorkflowTest {
    /// Returns the names in it that are not there.
    pub(crate) fn misnamed(&self, configured: &Names, registered: &Names) -> Vec<ConfigProblem> {
        let TestNames { references, wrong_steps } = &self.names;
        let missing = references.iter().filter_map(|it| it.check(configured, registered));
        missing.chain(wrong_steps.iter().cloned()).collect()
    }

    /// Returns what names it among all tests, and what filters look at.
    #[cfg(feature = "testing")]
    pub(crate) fn title(&self) -> String {
        format!("{}: {}", self.workflow, self.name)
    }
}

/// Mocks by what they stand for.
#[derive(Debug, Clone, Default)]
pub(crate) struct TestMocks {
    /// By workflow, then by step.
    pub(crate) steps: BTreeMap<String, BTreeMap<String, MockedCall>>,
    pub(crate) tools: BTreeMap<String, MockedCall>,
    pub(crate) models: BTreeMap<String, MockConfig>,
}

/// Behaviour of a mocked step or tool.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct MockedCall {
    pub(crate) output: Option<Value>,
    /// Failure of every attempt without an output, otherwise of the first `times`.
    pub(crate) fail: Option<MockedFailure>,
    pub(crate) times: u32,
    pub(crate) delay: Duration,
    /// False if it does not recognize its idempotency key.
    pub(crate) is_repeatable: bool,
}

/// Failure of a mocked step or tool.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct MockedFailure {
    pub(crate) message: String,
    /// `error.kind` of expressions.
    pub(crate) kind: Option<String>,
    /// True if no retry policy repeats it.
    pub(crate) is_terminal: bool,
}

/// An answer some time after its step, or a call of its tool, has asked.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TestAnswer {
    pub(crate) step: String,
    pub(crate) after: Duration,
    pub(crate) data: Value,
    /// `None`: the test itself, which may answer everything.
    pub(crate) by: Option<TestAnswerer>,
    /// Part of the reason with which it is to be refused.
    pub(crate) refused: Option<String>,
}

/// Caller that answers.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TestAnswerer {
    /// `None` if unknown.
    pub(crate) user: Option<String>,
    pub(crate) roles: Vec<String>,
    /// True if authentication has established the id.
    pub(crate) is_verified: bool,
}

/// Expectations of the end.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct TestExpectation {
    pub(crate) status: Option<Status>,
    /// An expression that is true.
    pub(crate) result: Option<String>,
    /// Part of the error's message.
    pub(crate) error: Option<String>,
    pub(crate) ran: Vec<String>,
    pub(crate) not_ran: Vec<String>,
    pub(crate) took: Option<Duration>,
}

/// Findings of a test, for checks once everything is read.
struct Found<'c> {
    names: TestNames,
    rule_calls: &'c mut Vec<RuleCall>,
}

impl Found<'_> {
    fn refer(&mut self, kind: NameKind, name: &str, entry: &Entry<'_>) {
        self.names.references.push(Reference::new(kind, name, entry.place.spot()));
    }

    /// Notes a name that is not one of these steps.
    fn note_step(&mut self, entry: &Entry<'_>, name: &str, known: &[String]) {
        if !known.iter().any(|it| it == name) {
            let known: Vec<_> = known.iter().map(String::as_str).collect();
            self.names.wrong_steps.push(entry.misnamed(name, &known));
        }
    }
}

/// Reads the tests of a workflow. Names in them are checked by [`WorkflowTest::misnamed`].
pub(crate) fn read(
    sections: Vec<Section<'_>>,
    plan: &Plan,
    rule_calls: &mut Vec<RuleCall>,
) -> Vec<WorkflowTest> {
    let mut tests = Vec::<WorkflowTest>::new();
    for (index, section) in sections.into_iter().enumerate() {
        let place = section.place.clone();
        let Some(test) = read_one(section, index, plan, rule_calls) else { continue };
        if tests.iter().any(|other| other.name == test.name) {
            place.refuse(format!("another test has the name {:?}", test.name));
        }
        tests.push(test);
    }
    tests
}

fn read_one(
    section: Section<'_>,
    index: usize,
    plan: &Plan,
    rule_calls: &mut Vec<RuleCall>,
) -> Option<WorkflowTest> {
    let mut found = Found { names: TestNames::default(), rule_calls };
    let steps = plan.definition.step_names();
    let name = section.required_text("name");
    let input = section.get("input").and_then(|entry| entry.json()).unwrap_or_default();
    let user = section.text("user");
    let context = section.get("context").and_then(|entry| read_context(&entry));
    let now = section.get("now").and_then(|entry| read_time(&entry));
    let mocks = section.section("mocks");
    let mocks = mocks.map(|mocks| read_mocks(&mocks, &plan.definition.id, &steps, &mut found));
    let answers = section.sections("answers").into_iter().filter_map(read_answer).collect();
    let expect =
        section.section("expect").map(|expect| read_expectation(expect, &steps, &mut found));
    let crash_everywhere = section.flag("crash_everywhere", false);
    let spot = section.place.spot();
    section.close();
    Some(WorkflowTest {
        workflow: plan.definition.id.clone(),
        name: name?,
        input,
        user,
        context: context.unwrap_or_default(),
        now,
        mocks: mocks.unwrap_or_default(),
        answers,
        expect: expect.unwrap_or_default(),
        crash_everywhere,
        spot,
        index,
        names: found.names,
    })
}

fn read_context(entry: &Entry<'_>) -> Option<Map<String, Value>> {
    match entry.json()? {
        Value::Object(context) => Some(context),
        _ => entry.refuse("must be a table"),
    }
}

fn read_time(entry: &Entry<'_>) -> Option<Timestamp> {
    let text = entry.text()?;
    let time = Timestamp::from_iso(&text);
    time.or_else(|| entry.refuse("must be a time with a zone, as \"2026-03-01T09:00:00Z\""))
}

/// Reads the mocks: of steps by id, and three tables of other things.
fn read_mocks(
    section: &Section<'_>,
    workflow: &str,
    steps: &[String],
    found: &mut Found<'_>,
) -> TestMocks {
    let mut mocks = TestMocks::default();
    for (name, entry) in section.named_entries("tools") {
        found.refer(NameKind::Tool, &name, &entry);
        if let Some(call) = entry.section().and_then(read_call) {
            mocks.tools.insert(name, call);
        }
    }
    for (name, entry) in section.named_entries("models") {
        found.refer(NameKind::Model, &name, &entry);
        if let Some(model) = entry.section() {
            mocks.models.insert(name, read_mock(model, found.rule_calls));
        }
    }
    for (name, entry) in section.named_entries("workflows") {
        found.refer(NameKind::Workflow, &name, &entry);
        // also where a step is named like one of these tables
        let known = (name == workflow).then_some(steps);
        let calls = entry.section().map(|of| read_calls(of.named(), known, found));
        mocks.steps.entry(name).or_default().extend(calls.unwrap_or_default());
    }
    let others = ["tools", "models", "workflows"];
    let own = section.named().into_iter().filter(|(name, _)| !others.contains(&name.as_str()));
    let own = read_calls(own.collect(), Some(steps), found);
    mocks.steps.entry(workflow.to_owned()).or_default().extend(own);
    mocks
}

fn read_calls(
    entries: Vec<(String, Entry<'_>)>,
    known: Option<&[String]>,
    found: &mut Found<'_>,
) -> BTreeMap<String, MockedCall> {
    let mut calls = BTreeMap::new();
    for (name, entry) in entries {
        if let Some(known) = known {
            found.note_step(&entry, &name, known);
        }
        if let Some(call) = entry.section().and_then(read_call) {
            calls.insert(name, call);
        }
    }
    calls
}

fn read_call(section: Section<'_>) -> Option<MockedCall> {
    let output = section.get("output").and_then(|entry| entry.json());
    let fail = section.get("fail").and_then(|entry| read_failure(&entry));
    let times = section.get("times");
    let place = section.place.clone();
    match (&output, &fail, &times) {
        (None, None, _) => place.refuse("needs `output`, `fail` or both"),
        (Some(_), Some(_), None) => place.refuse("needs `times`: how often it fails first"),
        (_, None, Some(times)) => times.place.refuse("needs a `fail` beside it"),
        (None, Some(_), Some(times)) => {
            times.place.refuse("needs an `output` beside it; without `times` it always fails");
        }
        _ => {}
    }
    let times = times.and_then(|entry| entry.integer(1..=1000));
    let call = MockedCall {
        output,
        fail,
        times: times.and_then(|times| u32::try_from(times).ok()).unwrap_or_default(),
        delay: section.get("delay").and_then(|entry| entry.pause()).unwrap_or_default(),
        is_repeatable: section.flag("repeatable", true),
    };
    section.close();
    Some(call)
}

/// Reads a failure: its message, or a table.
fn read_failure(entry: &Entry<'_>) -> Option<MockedFailure> {
    if let DeValue::String(_) = entry.value {
        return Some(MockedFailure { message: entry.filled_text()?, ..MockedFailure::default() });
    }
    let DeValue::Table(_) = entry.value else {
        return entry.refuse("must be a message, or a table with `message`");
    };
    let section = entry.section()?;
    let message = section.required("message").and_then(|entry| entry.filled_text());
    let kind = section.get("kind").and_then(|entry| entry.filled_text());
    let is_terminal = section.flag("terminal", false);
    section.close();
    Some(MockedFailure { message: message?, kind, is_terminal })
}

fn read_answer(section: Section<'_>) -> Option<TestAnswer> {
    let step = section.required_text("step");
    let after = section.get("after").and_then(|entry| entry.pause()).unwrap_or_default();
    let data = section.required("data").and_then(|entry| entry.json());
    let by = section.get("by").and_then(|entry| read_answerer(&entry));
    let refused = section.get("refused").and_then(|entry| entry.filled_text());
    section.close();
    Some(TestAnswer { step: step?, after, data: data?, by, refused })
}

/// Reads who answers: an id, or a table.
fn read_answerer(entry: &Entry<'_>) -> Option<TestAnswerer> {
    if let DeValue::String(_) = entry.value {
        let user = Some(entry.filled_text()?);
        return Some(TestAnswerer { user, roles: Vec::new(), is_verified: true });
    }
    let DeValue::Table(_) = entry.value else {
        return entry.refuse("must be the id of a user, or a table with `user` and `roles`");
    };
    let section = entry.section()?;
    let user = section.get("user").and_then(|entry| entry.filled_text());
    let roles = section.get("roles").and_then(|entry| entry.texts());
    let is_verified = section.flag("verified", true);
    section.close();
    Some(TestAnswerer { user, roles: roles.unwrap_or_default(), is_verified })
}

fn read_expectation(
    section: Section<'_>,
    steps: &[String],
    found: &mut Found<'_>,
) -> TestExpectation {
    let mut names = |key| {
        let entry: Option<Entry<'_>> = section.get(key);
        let items = entry.and_then(|entry| entry.items()).unwrap_or_default();
        let names = items.into_iter().filter_map(|item| {
            let name = item.text()?;
            found.note_step(&item, &name, steps);
            Some(name)
        });
        names.collect::<Vec<_>>()
    };
    let statuses = Status::ALL.map(|status| (status.as_str(), status));
    let expected = TestExpectation {
        status: section.get("status").and_then(|entry| entry.one_of(&statuses)),
        result: section.get("result").and_then(|entry| {
            let scope = TextScope::of(&["result", "status", "error", "input", "steps"]);
            scope.expression(&entry);
            entry.expression()
        }),
        error: section.get("error").and_then(|entry| entry.filled_text()),
        ran: names("ran"),
        not_ran: names("not_ran"),
        took: section.get("took").and_then(|entry| entry.pause()),
    };
    if let Some(both) = expected.ran.iter().find(|step| expected.not_ran.contains(step)) {
        section.place.refuse(format!("{both} is both in `ran` and in `not_ran`"));
    }
    section.close();
    expected
}
