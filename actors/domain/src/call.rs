//! Calls out of the process: their compiled form, and the finished request. A finished request
//! holds its values; it refers to secrets by name, and the adapter that makes the call resolves
//! them.

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
