//! Completions that are no ids of a list: profiles, steps and files.

use std::ffi::OsStr;

use clap_complete::engine::{PathCompleter, ValueCompleter as _};
use clap_complete::{ArgValueCompleter, CompletionCandidate};

use super::{begins, is_safe, read};
use crate::cli::client::profiles::{Profiles, default_path};
use crate::cli::client::text::{items, text};

/// Completes names of profiles.
pub(in crate::cli::client) fn profiles() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| {
        let profiles = default_path().and_then(|path| Profiles::read(&path).ok());
        let profiles = profiles.unwrap_or_default().profiles;
        begins(profiles.keys().map(String::as_str), &current.to_string_lossy())
    })
}

/// Completes steps of the execution that the line names.
pub(in crate::cli::client) fn steps() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| {
        let Some(id) = execution_in(std::env::args()) else { return Vec::new() };
        let found = read(&["workflows", "executions"], &[("idPrefix", &id)]).unwrap_or_default();
        let found = items(&found, "executions").iter().find(|it| text(it, "executionId") == id);
        let Some(workflow) = found.map(|it| text(it, "workflowId")) else { return Vec::new() };
        let path = ["workflows", workflow, "executions", &id, "state"];
        let state = read(&path, &[("values", "false")]).unwrap_or_default();
        let steps = items(&state, "steps").iter().map(|step| text(step, "path"));
        begins(steps, &current.to_string_lossy())
    })
}

/// Returns the execution in an unfinished line such as `executions replay ID --step`.
fn execution_in(words: impl Iterator<Item = String>) -> Option<String> {
    let mut words = words.skip_while(|word| !matches!(word.as_str(), "resume" | "replay")).skip(1);
    words.find(|word| !word.starts_with('-')).filter(|id| is_safe(id))
}

/// Completes the files of `@FILE`.
pub(in crate::cli::client) fn json_files() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| {
        let current = current.to_string_lossy();
        let Some(file) = current.strip_prefix('@') else { return Vec::new() };
        let found = PathCompleter::any().complete(OsStr::new(file));
        let with_mark = |it: CompletionCandidate| it.add_prefix("@");
        let is_plain = |it: &CompletionCandidate| {
            it.get_value().to_str().is_some_and(|path| path.split('/').all(is_plain_part))
        };
        found.into_iter().filter(is_plain).map(with_mark).collect()
    })
}

fn is_plain_part(part: &str) -> bool {
    part.is_empty() || is_safe(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_names_the_execution_whose_steps_are_asked_for() {
        for (line, expected) in [
            ("-- greenroom executions replay e-1 --step", Some("e-1")),
            ("-- greenroom executions resume --watch e-1 --step a", Some("e-1")),
            ("-- greenroom executions replay", None),
            ("-- greenroom executions show e-1", None),
        ] {
            let found = execution_in(line.split_whitespace().map(str::to_owned));
            assert_eq!(found.as_deref(), expected, "{line}");
        }
    }
}
