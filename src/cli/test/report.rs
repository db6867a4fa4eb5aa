//! Reports of tests: for people, as JSON, and as JUnit XML.

use std::time::Duration;

use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};
use serde_json::json;

use super::shown_time;
use crate::cli::client::plain;
use crate::cli::counted;
use crate::config::workflow_tests::WorkflowTest;
use crate::greenroom::Problems;
use crate::testing::{Outcome, Tested};

/// A test of the configuration, and how it ended.
#[derive(Debug)]
pub(super) struct Ran<'c> {
    pub(super) test: &'c WorkflowTest,
    pub(super) tested: Tested,
}

impl Ran<'_> {
    pub(super) fn passed(&self) -> bool {
        self.tested.result.is_ok()
    }

    /// Returns the place of the test in its file.
    fn place(&self) -> String {
        format!("{}:{}", self.test.spot.file, self.test.spot.line)
    }
}

/// Returns the line of a test, and the reasons of its failure. Names are as wide as the widest.
pub(super) fn lines(ran: &Ran<'_>, width: usize) -> Vec<String> {
    let name = format!("{:width$}", plain(&ran.test.title()));
    match &ran.tested.result {
        Ok(Outcome { took, kills, .. }) => {
            let kills = match kills {
                0 => String::new(),
                kills => format!(", killed at {} and the same", counted(*kills, "point")),
            };
            vec![format!("ok    {name}  took {}{kills}", shown_time(*took))]
        }
        Err(Problems(problems)) => {
            let problems = problems.iter().map(|problem| format!("        {}", plain(problem)));
            [format!("FAIL  {name}  {}", ran.place())].into_iter().chain(problems).collect()
        }
    }
}

/// Returns the line below those of all tests.
pub(super) fn sum(ran: &[Ran<'_>], spent: Duration) -> String {
    let failed = ran.iter().filter(|it| !it.passed()).count();
    let count = counted(ran.len() as u64, "test");
    format!("{count}, {failed} failed, in {}", shown_time(spent))
}

/// Returns the report as one JSON object. Names and meanings are stable; more members may be added.
pub(super) fn json(ran: &[Ran<'_>]) -> String {
    let tests = ran.iter().map(|ran| {
        let Tested { workflow, name, result, spent } = &ran.tested;
        let mut test = json!({
            "workflow": workflow,
            "name": name,
            "ok": result.is_ok(),
            "file": ran.test.spot.file,
            "line": ran.test.spot.line,
            "spentMs": whole_milliseconds(*spent),
        });
        match result {
            Ok(outcome) => {
                test["status"] = outcome.status.as_str().into();
                test["result"] = outcome.result.clone();
                test["error"] = outcome.error.clone().into();
                test["ran"] = outcome.ran.clone().into();
                test["tookMs"] = whole_milliseconds(outcome.took).into();
                test["kills"] = outcome.kills.into();
            }
            Err(Problems(problems)) => test["problems"] = problems.clone().into(),
        }
        test
    });
    let failed = ran.iter().filter(|it| !it.passed()).count();
    json!({
        "ok": failed == 0,
        "count": ran.len(),
        "failed": failed,
        "tests": tests.collect::<Vec<_>>(),
    })
    .to_string()
}

/// Returns the report as JUnit XML: a suite for each workflow.
pub(super) fn junit(ran: &[Ran<'_>]) -> Result<String, String> {
    let mut report = Report::new("greenroom");
    let mut suites: Vec<TestSuite> = Vec::new();
    for ran in ran {
        let status = match &ran.tested.result {
            Ok(_) => TestCaseStatus::success(),
            Err(Problems(problems)) => {
                let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
                let problems: Vec<_> = problems.iter().map(|problem| in_xml(problem)).collect();
                status.set_message(problems.first().map(String::as_str).unwrap_or_default());
                status.set_description(problems.join("\n"));
                status
            }
        };
        let mut case = TestCase::new(in_xml(&ran.test.name), status);
        case.set_classname(ran.test.workflow.as_str()).set_time(ran.tested.spent);
        match suites.iter_mut().find(|suite| suite.name.as_str() == ran.test.workflow) {
            Some(suite) => drop(suite.add_test_case(case)),
            None => {
                let mut suite = TestSuite::new(ran.test.workflow.as_str());
                suite.add_test_case(case);
                suites.push(suite);
            }
        }
    }
    report.add_test_suites(suites);
    report.to_string().map_err(|error| format!("greenroom: the report cannot be written: {error}"))
}

/// Replaces what XML cannot have, not even as a reference, and the library leaves in: it removes
/// control characters, see <https://www.w3.org/TR/xml/#charsets>.
fn in_xml(text: &str) -> String {
    text.replace(['\u{fffe}', '\u{ffff}'], "\u{fffd}")
}

fn whole_milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
