//! `greenroom test`: the tests of workflows that the configuration has.

mod report;
mod update;

use std::io;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::ValueEnum;

use self::report::Ran;
use super::{Arguments, CONFIG_FILE, print_result, read_open};
use crate::Greenroom;
use crate::app::Registered;
use crate::config::Config;
use crate::config::workflow_tests::WorkflowTest;
use crate::testing;
use crate::testing::configured::run as run_test;
use crate::testing::setup::misnamed;

/// Options of `test`.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args)]
pub(super) struct Options {
    /// Run only the tests whose `WORKFLOW: NAME` contains this text.
    #[arg(long, value_name = "TEXT")]
    filter: Option<String>,
    /// Write what happens into `expect` of the tests that fail or expect nothing.
    #[arg(long, conflicts_with = "output")]
    update: bool,
    /// Format of the output.
    #[arg(short, long, value_enum, default_value_t, value_name = "FORM")]
    output: Form,
}

/// Form of the report.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum Form {
    /// Lines for people.
    #[default]
    Text,
    /// One JSON object.
    Json,
    /// JUnit XML, for CI servers.
    Junit,
}

/// Runs the tests, and fails unless all of them pass.
pub(super) fn run(arguments: &Arguments, options: &Options) -> ExitCode {
    let config = match read_open(arguments) {
        Ok(config) => config,
        Err(problems) => return print_result(&mut io::stderr(), &problems, ExitCode::FAILURE),
    };
    let wrong = misnamed(&config, &Registered::default());
    if !wrong.is_empty() {
        return print_result(&mut io::stderr(), &wrong, ExitCode::FAILURE);
    }
    let filter = options.filter.as_deref().unwrap_or_default();
    let tests: Vec<_> = config.tests.iter().filter(|it| it.title().contains(filter)).collect();
    if tests.is_empty() {
        return print_result(&mut io::stderr(), &[none(&config, filter)], ExitCode::FAILURE);
    }
    let began = Instant::now();
    let is_followed = options.output == Form::Text && !options.update;
    let ran = match testing::run(run_all(&config, &tests, is_followed)) {
        Ok(ran) => ran,
        Err(exit) => return exit,
    };
    if options.update {
        let updated = testing::run(update::update(&config, &ran));
        return match updated {
            Ok(lines) => print_result(&mut io::stdout(), &lines, ExitCode::SUCCESS),
            Err(lines) => print_result(&mut io::stderr(), &lines, ExitCode::FAILURE),
        };
    }
    let exit = match ran.iter().all(Ran::passed) {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    };
    let report = match options.output {
        Form::Text => report::sum(&ran, began.elapsed()),
        Form::Json => report::json(&ran),
        Form::Junit => match report::junit(&ran) {
            Ok(text) => text,
            Err(why) => return print_result(&mut io::stderr(), &[why], ExitCode::FAILURE),
        },
    };
    print_result(&mut io::stdout(), &[report], exit)
}

/// Runs tests in their order, and writes about each as soon as it has ended if that is `followed`.
/// The error is the exit code of an output that cannot be written.
async fn run_all<'c>(
    config: &Config,
    tests: &[&'c WorkflowTest],
    is_followed: bool,
) -> Result<Vec<Ran<'c>>, ExitCode> {
    // each run has a copy, whose cost must not depend on the number of tests
    let mut config = config.clone();
    config.tests.clear();
    let server = || Greenroom::over(config.clone());
    let width = tests.iter().map(|it| it.title().chars().count()).max().unwrap_or_default();
    let mut ran = Vec::new();
    for test in tests {
        let one = Ran { test, tested: run_test(test, &server).await };
        if is_followed {
            let written =
                print_result(&mut io::stdout(), &report::lines(&one, width), ExitCode::SUCCESS);
            if written != ExitCode::SUCCESS {
                return Err(written);
            }
        }
        ran.push(one);
    }
    Ok(ran)
}

/// Returns why there is nothing to run.
fn none(config: &Config, filter: &str) -> String {
    if config.tests.is_empty() {
        let workflow = config.workflows.keys().next().map_or("NAME", String::as_str);
        return format!(
            "greenroom: no workflow has tests; add some to {CONFIG_FILE}, as\n  \
             [[workflows.{workflow}.tests]]\n  name = \"it completes\"\n  input = {{}}"
        );
    }
    let names: Vec<_> = config.tests.iter().map(|it| format!("\n  {}", it.title())).collect();
    format!("greenroom: no test has {filter:?} in its name; there are{}", names.concat())
}

/// Returns a time for people.
fn shown_time(time: Duration) -> String {
    match time.as_secs() {
        0 => format!("{} ms", time.as_millis()),
        seconds @ 1..120 => format!("{seconds} s"),
        seconds @ 120..7200 => format!("{} min", seconds / 60),
        seconds => format!("{} h", seconds / 3600),
    }
}
