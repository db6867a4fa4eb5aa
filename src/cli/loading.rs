//! The configuration of a command, with the command line and the environment applied.

use std::path::Path;

use super::{Arguments, EXAMPLES};
use crate::app::{self, Registered, Variables};
use crate::config::shipped::SHIPPED;
use crate::config::{Config, ConfigProblem, Environment, Names};

/// Loads the configuration file.
pub(super) fn read(arguments: &Arguments) -> Result<Config, Vec<ConfigProblem>> {
    read_by(arguments, |file| Config::load(file))
}

/// Loads what is tested, where steps may name functions that Rust code registers: without a file,
/// the built-in examples.
#[cfg(feature = "testing")]
pub(super) fn read_open(arguments: &Arguments) -> Result<Config, Vec<ConfigProblem>> {
    match arguments.has_default_file() {
        true => read_by(arguments, |file| Config::load_open(file)),
        false => Config::parse(SHIPPED, EXAMPLES),
    }
}

fn read_by(
    arguments: &Arguments,
    load: impl FnOnce(&Path) -> Result<Config, Vec<ConfigProblem>>,
) -> Result<Config, Vec<ConfigProblem>> {
    let hint = "; name the configuration with --config FILE, or write one with `greenroom init`";
    let examples = " (without a file, `greenroom` serves the built-in examples)";
    let examples = if arguments.config.is_none() { examples } else { "" };
    load(arguments.config_file()).map_err(|mut problems| {
        let missing = problems.iter_mut().filter(|_| !arguments.config_file().exists());
        missing.for_each(|problem| {
            problem.message.push_str(hint);
            problem.message.push_str(examples);
        });
        problems
    })
}

/// Loads what is served: without a file, the built-in examples.
pub(super) fn load_or_examples(
    arguments: &Arguments,
) -> Result<(Config, bool), Vec<ConfigProblem>> {
    let (config, are_examples) = read_or_examples(arguments)?;
    Ok((completed(arguments, config)?, are_examples))
}

/// Reads what is served, without what depends on the environment.
pub(super) fn read_or_examples(
    arguments: &Arguments,
) -> Result<(Config, bool), Vec<ConfigProblem>> {
    let has_file = arguments.has_default_file();
    let read = if has_file { read(arguments) } else { Config::parse(SHIPPED, EXAMPLES) };
    Ok((overridden(arguments, read?), !has_file))
}

/// Loads the configuration file and applies the command line.
pub(super) fn load(arguments: &Arguments) -> Result<Config, Vec<ConfigProblem>> {
    completed(arguments, read(arguments)?)
}

/// Applies the command line, and checks what depends on the environment.
pub(super) fn completed(
    arguments: &Arguments,
    config: Config,
) -> Result<Config, Vec<ConfigProblem>> {
    checked(overridden(arguments, config))
}

/// Checks what depends on the environment, and what the configuration says together.
pub(super) fn checked(mut config: Config) -> Result<Config, Vec<ConfigProblem>> {
    let mut problems = problems_of_secrets(&config);
    problems.extend(problems_of_rules(&config));
    if !problems.is_empty() {
        return Err(problems);
    }
    let warnings = app::checks::warnings(&config, &Registered::default());
    config.warnings.extend(warnings);
    Ok(config)
}

/// Applies the command line and the environment.
pub(super) fn overridden(arguments: &Arguments, mut config: Config) -> Config {
    config.environment = Environment::of_process();
    if let Some(host) = &arguments.host {
        config.set_host(host.clone(), "--host");
    }
    config.server.port = arguments.port.unwrap_or(config.server.port);
    config.logs.console.clone_from(&arguments.log);
    config
}

/// Returns the problems of secrets and other variables that the environment should have.
pub(super) fn problems_of_secrets(config: &Config) -> Vec<ConfigProblem> {
    let variables = Variables::of(config);
    config.check_secrets(|name| variables.found(name))
}

/// Returns the problems of what the configuration says together.
pub(super) fn problems_of_rules(config: &Config) -> Vec<ConfigProblem> {
    let mut problems: Vec<_> = config.check_exposure(&Names::default()).err().into_iter().collect();
    problems.extend(app::check(config, &Registered::default()));
    problems
}
