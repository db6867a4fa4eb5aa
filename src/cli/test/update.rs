//! `greenroom test --update`: writes what happens into the file.

use std::fs;
use std::io;

use greenroom_actors::domain::expression::Expression;
use serde_json::Value;
use toml_edit::{Array, DocumentMut, InlineTable, Item, Table};

use super::report::Ran;
use crate::Greenroom;
use crate::cli::whole_file::write_whole;
use crate::config::Config;
use crate::config::workflow_tests::{TestExpectation, WorkflowTest};
use crate::greenroom::Problems;
use crate::testing::configured::observe;
use crate::testing::expectation::shown_time;
use crate::testing::{Outcome, Status};

/// Writes `expect` of each test that failed or expects nothing, and returns what was written. A test
/// that cannot be run stays as it is, and is among the lines of the error.
pub(super) async fn update(config: &Config, ran: &[Ran<'_>]) -> Result<Vec<String>, Vec<String>> {
    let server = || Greenroom::over(config.clone());
    let (mut written, mut failed) = (Vec::new(), Vec::new());
    let nothing = TestExpectation::default();
    for ran in ran.iter().filter(|it| !it.passed() || it.test.expect == nothing) {
        let name = ran.test.title();
        let is_new = ran.test.expect == nothing;
        let observed = match (observe_twice(ran.test, &server).await, &ran.tested.result) {
            // only a run that was killed has failed
            (Ok(Observed { is_expected: true, .. }), Err(Problems(problems))) if !is_new => {
                Err(problems.clone())
            }
            (Ok(observed), _) => match write(ran.test, &observed) {
                Ok(()) => Ok(observed),
                Err(why) => Err(vec![why]),
            },
            (Err(Problems(problems)), _) => Err(problems),
        };
        match observed {
            Ok(observed) => {
                let (file, but) = (&ran.test.spot.file, observed.omission());
                written.push(format!("{file}: wrote `expect` of {name}{but}"));
                if let (true, Err(Problems(problems))) = (observed.is_expected, &ran.tested.result)
                {
                    failed.push(format!("greenroom: {name} fails: {}", problems.join("; ")));
                }
            }
            Err(why) => {
                failed.push(format!("greenroom: {name} stays as it is: {}", why.join("; ")))
            }
        }
    }
    if written.is_empty() && failed.is_empty() {
        written.push("every test passes and expects something: nothing to write".to_owned());
    }
    if failed.is_empty() { Ok(written) } else { Err([written, failed].concat()) }
}

/// Outcome of a test that is to be written.
struct Observed {
    outcome: Outcome,
    /// True if that is expected already.
    is_expected: bool,
    /// False if a second run has another result or error: one with ids or times in it.
    is_steady: bool,
}

impl Observed {
    /// Returns the result as an expression, unless it differs from run to run or is too long for one.
    fn expected_result(&self) -> Option<String> {
        let Outcome { status, result, .. } = &self.outcome;
        if *status != Status::Completed || !self.is_steady {
            return None;
        }
        let written = format!("result == {}", expression(result));
        Expression::compile(&written).is_ok().then_some(written)
    }

    /// Returns what is left out, as the end of a line.
    fn omission(&self) -> &'static str {
        match (self.is_steady, self.outcome.status, self.expected_result()) {
            (false, ..) => ", without its result, which differs from run to run",
            (true, Status::Completed, None) => ", without its result, which is too long",
            (true, ..) => "",
        }
    }
}

async fn observe_twice(
    test: &WorkflowTest,
    server: &impl Fn() -> Greenroom,
) -> Result<Observed, Problems> {
    let (outcome, is_expected) = observe(test, server).await?;
    let (again, _) = observe(test, server).await?;
    let is_steady = outcome.result == again.result && outcome.error == again.error;
    Ok(Observed { outcome, is_expected, is_steady })
}

/// Puts the outcome into the file of a test, which is replaced whole or not at all.
fn write(test: &WorkflowTest, observed: &Observed) -> Result<(), String> {
    let failure = |error: io::Error| format!("{} cannot be written: {error}", test.spot.file);
    // behind a link, the file that it leads to
    let file = &fs::canonicalize(&*test.spot.file).map_err(failure)?;
    let text = fs::read_to_string(file).map_err(failure)?;
    let mut document: DocumentMut = text.parse().map_err(|error| format!("{error}"))?;
    let found = find(&mut document, &test.workflow, (test.index, &test.name));
    let found = found.ok_or("the file has changed meanwhile")?;
    found(expected(observed));
    let mode = fs::metadata(file).map_err(failure)?.permissions();
    if mode.readonly() {
        return Err(failure(io::Error::other("it is read-only")));
    }
    let mut written = document.to_string();
    if text.contains("\r\n") {
        written = written.replace("\r\n", "\n").replace('\n', "\r\n");
    }
    write_whole(file, written.as_bytes(), mode).map_err(failure)
}

/// Returns how to set `expect` of a test in a document. `None` if the file has another one in its
/// place by now.
fn find<'d>(
    document: &'d mut DocumentMut,
    workflow: &str,
    (index, name): (usize, &str),
) -> Option<Box<dyn FnOnce(InlineTable) + 'd>> {
    let workflow = document.get_mut("workflows")?.get_mut(workflow)?;
    match workflow.get_mut("tests")? {
        Item::ArrayOfTables(tests) => {
            let table: &mut Table = tests.get_mut(index)?;
            let found = table.get("name").and_then(Item::as_str);
            found.filter(|found| *found == name)?;
            Some(Box::new(move |expect| {
                // `[workflows.w.tests.expect]` would stay beside it
                table.remove("expect");
                table.insert("expect", toml_edit::value(expect));
            }))
        }
        Item::Value(value) => {
            let table = value.as_array_mut()?.get_mut(index)?.as_inline_table_mut()?;
            let found = table.get("name").and_then(toml_edit::Value::as_str);
            found.filter(|found| *found == name)?;
            Some(Box::new(move |expect| drop(table.insert("expect", expect.into()))))
        }
        Item::None | Item::Table(_) => None,
    }
}

fn expected(observed: &Observed) -> InlineTable {
    let Outcome { status, error, ran, took, .. } = &observed.outcome;
    let mut expect = InlineTable::new();
    if *status != Status::Completed {
        expect.insert("status", status.as_str().into());
    }
    if let Some(result) = observed.expected_result() {
        expect.insert("result", result.into());
    }
    if let Some(error) = error.as_ref().filter(|_| observed.is_steady) {
        expect.insert("error", error.as_str().into());
    }
    expect.insert("ran", ran.iter().map(String::as_str).collect::<Array>().into());
    if took.as_secs() > 0 {
        expect.insert("took", shown_time(*took).into());
    }
    expect
}

/// Returns a value as an expression.
fn expression(value: &Value) -> String {
    match value {
        Value::Null => "none".to_owned(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => value.to_string(),
        Value::Array(items) => {
            let items: Vec<_> = items.iter().map(expression).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Object(members) => {
            let member = |(key, value): (&String, &Value)| {
                format!("{}: {}", Value::from(key.as_str()), expression(value))
            };
            let members: Vec<_> = members.iter().map(member).collect();
            format!("{{{}}}", members.join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_that_has_moved_meanwhile_is_not_written_to() {
        let tables = "[[workflows.w.tests]]\nname = 'new'\n[[workflows.w.tests]]\nname = 'a'\n";
        let inline = "[workflows.w]\ntests = [{ name = 'new' }, { name = 'a' }]\n";
        for text in [tables, inline] {
            for (place, is_found) in [((1, "a"), true), ((0, "a"), false), ((2, "a"), false)] {
                let mut document: DocumentMut = text.parse().unwrap();
                assert_eq!(find(&mut document, "w", place).is_some(), is_found, "{place:?}");
            }
        }
    }
}
