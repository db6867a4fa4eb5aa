//! `greenroom openapi`: the API document of the configuration, as `GET /doc` returns it.

use std::io;
use std::process::ExitCode;

use super::{Arguments, finish, load_or_examples, print};
use crate::app;

/// Prints the document, without starting the server.
pub(super) fn run(arguments: &Arguments) -> ExitCode {
    let config = match load_or_examples(arguments) {
        Ok((config, _)) => config,
        Err(problems) => {
            print(&mut io::stderr(), &problems);
            return ExitCode::FAILURE;
        }
    };
    let document = app::openapi(&config).map(|document| vec![format!("{document:#}")]);
    finish(document.map_err(|error| vec![format!("greenroom: {error}")]))
}
