//! Calls out of the process: compiled, and as they are to be made. What they read of the scope is
//! in them by then; secrets are named, and opened by whoever makes the call.

mod command;
mod http;
mod text;
mod url;

pub use self::command::{Argument, CommandCall, CommandRun, variable_problem};
pub use self::http::{HttpCall, HttpRequest, header_problem};
pub use self::text::{
    UnresolvedPart, UnresolvedTemplate, UnresolvedText, is_variable, secret_in, secrets_of,
};
pub use self::url::{HostChoice, UrlTemplate, parsed_url};
