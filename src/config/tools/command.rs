//! Tools of the kind `command`.

use greenroom_actors::domain::call::CommandCall;
use greenroom_actors::domain::plan::compile_command;

use super::IN_SCOPE;
use crate::adapters::tools::keyring::Keyring;
use crate::config::section::Section;
use crate::config::workflows::deepest;
use crate::config::{calls, texts};

/// Reads the keys that only this kind has.
pub(super) fn read(section: &Section<'_>) -> Option<CommandCall> {
    let body = calls::command(section)?;
    let place_of = |keys: &[String]| deepest(section.place.clone(), section.table, keys);
    let call = match compile_command(&body) {
        Ok(call) => call,
        Err(problems) => {
            for problem in problems {
                place_of(&problem.place).refuse(problem.message);
            }
            return None;
        }
    };
    for (index, argument) in call.arguments.iter().enumerate() {
        let place = place_of(&["argv".to_owned(), (index + 1).to_string()]);
        texts::scope(&place, &IN_SCOPE, argument.names());
    }
    if let Some(input) = &call.input {
        texts::scope(&place_of(&["input".to_owned()]), &IN_SCOPE, input.names());
    }
    for (name, value) in &call.env {
        let place = place_of(&["env".to_owned(), name.to_string()]);
        texts::scope(&place, &IN_SCOPE, value.names());
        for variable in value.secrets() {
            if let Err(problem) = Keyring::of_process().secret(variable) {
                place.refuse(problem);
            }
        }
    }
    Some(call)
}
