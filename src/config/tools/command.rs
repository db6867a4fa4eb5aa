//! Tools of the kind `command`.

use greenroom_actors::domain::call::CommandCall;

use super::parts::Parts;
use crate::adapters::tools::secrets::SecretLookup;
use crate::config::calls;
use crate::config::section::Section;

/// Reads the keys of this kind.
pub(super) fn read(section: &Section<'_>, parts: &Parts<'_>) -> Option<CommandCall> {
    let body = calls::command(section)?;
    let call = parts.command(&body)?;
    for (name, value) in &call.env {
        for variable in value.secrets() {
            if let Err(problem) = SecretLookup::of_process().secret(variable) {
                parts.refuse(&["env", name], problem);
            }
        }
    }
    Some(call)
}
