//! Bodies that leave the process, as their author wrote them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Projection;

/// A call of another server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HttpBody {
    pub method: HttpMethod,
    /// Template. A value in its path or query is one piece of it, whatever it holds.
    pub url: String,
    /// Templates, by name; `secret:NAME` in them is a secret of the environment.
    pub headers: BTreeMap<String, String>,
    /// Added behind the URL's own query. A value of none leaves its key out, an array repeats it.
    pub query: BTreeMap<String, Projection>,
    /// Sent as JSON. Without it the step's `data` is, where the method has a body.
    pub body: Option<Projection>,
}

/// Methods that a call may have.
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
    /// All of them, by the name on the wire.
    pub const NAMES: [(&'static str, Self); 5] = [
        ("GET", Self::Get),
        ("POST", Self::Post),
        ("PUT", Self::Put),
        ("PATCH", Self::Patch),
        ("DELETE", Self::Delete),
    ];

    /// Whether it has a body when none is named.
    pub fn sends_data(self) -> bool {
        matches!(self, Self::Post | Self::Put | Self::Patch)
    }
}

/// A run of a program.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CommandBody {
    /// The program and its arguments. An argument with `{{ }}` is a template, and one argument
    /// whatever it holds; the program is none.
    pub argv: Vec<String>,
    /// Written to it as JSON. Without it the step's `data` is.
    pub input: Option<Projection>,
    /// Templates, by the variable's name; `secret:NAME` in them is a secret of the environment.
    pub env: BTreeMap<String, String>,
    /// Where it runs; without it, where the server does.
    pub cwd: Option<String>,
    /// Memory of each of its processes; without it, what the server allows.
    pub memory_bytes_max: Option<u64>,
    /// What it may print; without it, what the server allows.
    pub output_bytes_max: Option<u64>,
}
