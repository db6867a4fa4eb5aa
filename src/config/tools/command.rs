//! Tools of the kind `command`.

use greenroom_actors::domain::call::CommandCall;
use greenroom_actors::domain::plan::compile_command;

use crate::adapters::tools::secrets::SecretLookup;
use crate::config::calls;
use crate::config::section::Section;
use crate::config::texts::TextScope;
use crate::config::workflows::deepest;

/// Reads the keys of this kind.
pub(super) fn read(section: &Section<'_>, scope: &TextScope) -> Option<CommandCall> {
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
    let argv = section.get("argv").and_then(|entry| entry.items()).unwrap_or_default();
    argv.iter().skip(1).for_each(|argument| scope.template(argument));
    section.get("input").iter().for_each(|input| scope.projection(input));
    section.named_entries("env").iter().for_each(|(_, value)| scope.template(value));
    for (name, value) in &call.env {
        let place = place_of(&["env".to_owned(), name.to_string()]);
        for variable in value.secrets() {
            if let Err(problem) = SecretLookup::of_process().secret(variable) {
                place.refuse(problem);
            }
        }
    }
    Some(call)
}
