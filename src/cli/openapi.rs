//! `greenroom openapi`: the API document of the configuration, as `GET /doc` returns it.

use std::io;
use std::process::ExitCode;

use super::{Arguments, finish, print, problems_of_rules, read_or_examples};
use crate::app;

/// Prints the document, without starting the server.
pub(super) fn run(arguments: &Arguments) -> ExitCode {
    let read = read_or_examples(arguments).and_then(|(config, _)| {
        let problems = problems_of_rules(&config);
        if problems.is_empty() { Ok(config) } else { Err(problems) }
    });
    let config = match read {
        Ok(config) => config,
        Err(problems) => {
            print(&mut io::stderr(), &problems);
            return ExitCode::FAILURE;
        }
    };
    let document = app::openapi(&config).map(|document| vec![format!("{document:#}")]);
    finish(document.map_err(|error| vec![format!("greenroom: {error}")]))
}
