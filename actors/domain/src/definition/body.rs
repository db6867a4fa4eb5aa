//! Bodies that call out of the process, in source form.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Mapping;

/// An HTTP call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HttpBody {
    pub method: HttpMethod,
    /// Template. A value in its path or query is always one segment or one query value.
    pub url: String,
    /// Templates by header name; `secret:NAME` in them is a secret of the environment.
    pub headers: BTreeMap<String, String>,
    /// Appended to the URL's own query. `null` omits its key, an array repeats it.
    pub query: BTreeMap<String, Mapping>,
    /// Sent as JSON. Defaults to the step's `data` if the method has a body.
    pub body: Option<Mapping>,
}

/// Methods of HTTP calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum HttpMethod {
    #[default]
    Get,
    Post,
    Put,
    Patch,
    Delete,
}

impl HttpMethod {
    /// All methods with their names on the wire.
    pub const NAMES: [(&'static str, Self); 5] = [
        ("GET", Self::Get),
        ("POST", Self::Post),
        ("PUT", Self::Put),
        ("PATCH", Self::Patch),
        ("DELETE", Self::Delete),
    ];

    /// Returns true if the call has a body by default.
    pub fn sends_data(self) -> bool {
        matches!(self, Self::Post | Self::Put | Self::Patch)
    }
}

/// A run of a program.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CommandBody {
    /// The program and its arguments. An argument with `{{ }}` is a template and always gives one
    /// argument; the program is not a template.
    pub argv: Vec<String>,
    /// Written to its standard input as JSON. Defaults to the step's `data`.
    pub input: Option<Mapping>,
    /// Templates by variable name; `secret:NAME` in them is a secret of the environment.
    pub env: BTreeMap<String, String>,
    /// Working directory; defaults to that of the server.
    pub cwd: Option<String>,
    /// Memory limit of each of its processes; defaults to that of the server.
    pub memory_bytes_max: Option<u64>,
    /// Maximum size of its output; defaults to that of the server.
    pub output_bytes_max: Option<u64>,
}
