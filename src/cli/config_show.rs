//! `greenroom config show`: the configuration in effect, without secrets.

use std::fmt::Write as _;
use std::process::ExitCode;

use clap::ValueEnum;
use serde_json::{Map, json};
use toml::Value;

use super::{Arguments, finish, read};
use crate::app::Variables;
use crate::config::{Effective, Origin};

/// Commands about the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::Subcommand)]
pub(super) enum Command {
    /// Prints the configuration in effect: file, command line and defaults, without secrets.
    Show(Options),
}

/// Options of `config show`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::Args)]
pub(super) struct Options {
    /// Format of the output.
    #[arg(short, long, value_enum, default_value_t, value_name = "FORM")]
    output: Output,
    /// Leaves secrets out, which is always done.
    #[arg(long)]
    redacted: bool,
}

/// Format of the output.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum Output {
    /// TOML with a comment at each value that is not from the file.
    #[default]
    Toml,
    /// One JSON object: `config`, `origins` of its values, and `variables` that it names.
    Json,
}

/// Prints the configuration, or the problems of the file. Neither the environment nor the network
/// of this machine is checked: `check` does that.
pub(super) fn run(arguments: &Arguments, command: Command) -> ExitCode {
    let Command::Show(options) = command;
    finish(shown(arguments, options).map(|text| vec![text]))
}

fn shown(arguments: &Arguments, options: Options) -> Result<String, Vec<String>> {
    let config = read(arguments)
        .map_err(|problems| problems.iter().map(ToString::to_string).collect::<Vec<_>>())?;
    let host = arguments.host.as_deref().map(|host| ("server", "host", Value::from(host)));
    let port = arguments.port.map(|port| ("server", "port", Value::from(i64::from(port))));
    let chosen: Vec<_> = host.into_iter().chain(port).collect();
    let variables = Variables::of(&config);
    let effective = config.effective(&chosen, |name| variables.found(name));
    let file = arguments.config_file().display().to_string();
    Ok(match options.output {
        Output::Toml => as_toml(&file, &effective),
        Output::Json => as_json(&file, &effective),
    })
}

fn as_json(file: &str, effective: &Effective) -> String {
    let origins = effective.origins().into_iter();
    let origins: Map<_, _> = origins.map(|(key, it)| (key, it.name().into())).collect();
    let config = serde_json::to_value(effective.table()).unwrap_or_default();
    let variables = &effective.variables;
    let whole = json!({
        "file": file, "config": config, "origins": origins, "variables": variables,
    });
    serde_json::to_string_pretty(&whole).unwrap_or_default()
}

/// Returns TOML. Sections with tables of keys are written line by line, for the comments.
fn as_toml(file: &str, effective: &Effective) -> String {
    let mut text = format!("# The configuration in effect of {file}. Secrets are left out.\n");
    for (name, is_set) in &effective.variables {
        let state = if *is_set { "is set" } else { "is not set" };
        let _ = writeln!(text, "# The environment variable {name} {state}.");
    }
    let mut definitions = effective.definitions.clone();
    if let Some(include) = definitions.remove("include") {
        let _ = writeln!(text, "\ninclude = {include}");
    }
    for (section, keys) in &effective.sections {
        let _ = writeln!(text, "\n[{section}]");
        for set in keys {
            let comment = match set.origin {
                Origin::File => String::new(),
                other => format!(" # {}", other.name()),
            };
            let _ = writeln!(text, "{} = {}{comment}", set.key, set.value);
        }
    }
    let definitions = toml::to_string(&definitions).unwrap_or_default();
    let separator = if definitions.is_empty() { "" } else { "\n" };
    format!("{text}{separator}{}", definitions.trim_end()).trim_end().to_owned()
}

#[cfg(test)]
mod tests;
