//! `greenroom doctor`: whether this machine has what the configured server needs.

mod port;
pub(super) mod reach;

use std::io;
use std::process::ExitCode;

use super::client::pretty;
use super::output::Output;
use super::{
    Arguments, counted, print_result, problems_of_rules, problems_of_secrets, read_or_examples,
};
use crate::app;
use crate::app::finding::{self, Finding, State};
use crate::config::{Config, ConfigProblem, Proxies};

/// Options of `doctor`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::Args)]
pub(super) struct Options {
    /// Leave out what needs a network: model providers, key sets, collectors and MCP
    /// servers.
    #[arg(long)]
    offline: bool,
    /// Form of the output.
    #[arg(short, long, value_enum, default_value_t, value_name = "FORM")]
    output: Output,
}

/// Looks at everything, and prints what was found. Nothing that it finds is changed.
pub(super) fn run(arguments: &Arguments, options: Options) -> ExitCode {
    let findings = match read_or_examples(arguments) {
        Ok((config, are_examples)) => {
            let file = arguments.config_file().display().to_string();
            examine((&file, are_examples), &config, options)
        }
        Err(problems) => problems.iter().map(of_problem).collect(),
    };
    let is_well = findings.iter().all(|finding| finding.state != State::Failed);
    let lines = match options.output {
        Output::Json => vec![pretty(&finding::report(&findings, is_well))],
        Output::Text => findings.iter().map(ToString::to_string).collect(),
    };
    print_result(
        &mut io::stdout(),
        &lines,
        if is_well { ExitCode::SUCCESS } else { ExitCode::FAILURE },
    )
}

fn examine(from: (&str, bool), config: &Config, options: Options) -> Vec<Finding> {
    let mut findings = configuration(from, config);
    findings.extend(port::look(config));
    findings.extend(app::look_at_store(config));
    findings.push(descriptors(config));
    findings.extend(proxies());
    let answers = if options.offline { Vec::new() } else { reach::ask(config) };
    findings.extend(answers.iter().map(reach::Answer::finding));
    findings.push(reach::clock(&answers));
    findings
}

fn of_problem(problem: &ConfigProblem) -> Finding {
    let state = if problem.is_error() { State::Failed } else { State::Warned };
    Finding::new(state, "configuration", problem.to_string())
}

/// Checks the configuration itself, and that the environment has its secrets. In place of a file that
/// is not there, it is the built-in examples.
fn configuration((from, are_examples): (&str, bool), config: &Config) -> Vec<Finding> {
    let problems: Vec<_> = problems_of_rules(config).iter().map(of_problem).collect();
    let secrets = problems_of_secrets(config);
    let secrets = secrets.iter().map(|it| Finding::new(State::Failed, "secrets", it.to_string()));
    let secrets: Vec<_> = secrets.collect();
    let mut findings = problems;
    findings.extend(config.warnings.iter().map(of_problem));
    if are_examples {
        let text = format!(
            "{from}: no such file, so `greenroom` serves the built-in examples; `greenroom init` \
             writes one, and --config FILE names another"
        );
        findings.push(Finding::new(State::Warned, "configuration", text));
    } else if findings.is_empty() {
        let workflows = counted(config.workflows.len() as u64, "workflow");
        let agents = counted(config.agents.len() as u64, "agent");
        let text = format!("{from}: {workflows}, {agents}");
        findings.push(Finding::new(State::Good, "configuration", text));
    }
    if secrets.is_empty() {
        let text = "all that the configuration names are set";
        findings.push(Finding::new(State::Good, "secrets", text));
    }
    findings.extend(secrets);
    findings
}

/// Checks the limit of open files.
fn descriptors(config: &Config) -> Finding {
    const NAME: &str = "open files";
    match app::room_for_connections(config) {
        Ok((open, connections)) => {
            let text = format!("{open} allowed, which leaves room for {connections} connections");
            Finding::new(State::Good, NAME, text)
        }
        Err(error) => Finding::new(State::Failed, NAME, error.to_string()),
    }
}

/// Returns a note about the proxy that calls to other machines go through.
fn proxies() -> Option<Finding> {
    let proxies = Proxies::of_process()?;
    let except = if proxies.has_exceptions { ", except to the hosts of NO_PROXY" } else { "" };
    // not their values, which can have passwords
    let text = format!(
        "{}: calls to other machines go through a proxy{except}; calls to this machine never do",
        proxies.variables.join(", ")
    );
    Some(Finding::new(State::Good, "proxy", text))
}
