//! Findings of `greenroom doctor` about single subjects.

use std::fmt;

use serde_json::{Value, json};

/// Subject of findings about the configured store.
pub(crate) const STORE: &str = "store";

/// State of a subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    Good,
    /// Works, but perhaps not as intended.
    Warned,
    /// The server would not start, or not work.
    Failed,
}

impl State {
    fn name(self) -> &'static str {
        match self {
            Self::Good => "ok",
            Self::Warned => "warning",
            Self::Failed => "failed",
        }
    }
}

/// Finding about one subject, in a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Finding {
    pub(crate) state: State,
    pub(crate) subject: &'static str,
    pub(crate) text: String,
}

impl Finding {
    pub(crate) fn new(state: State, subject: &'static str, text: impl Into<String>) -> Self {
        Self { state, subject, text: text.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { state, subject, text } = self;
        write!(f, "{:<8} {subject:<14} {text}", state.name())
    }
}

/// Returns the JSON output. Names and meanings are stable; more members may be added.
pub(crate) fn report(findings: &[Finding], is_well: bool) -> Value {
    let findings = findings.iter().map(|Finding { state, subject, text }| {
        json!({ "subject": subject, "state": state.name(), "text": text })
    });
    json!({ "ok": is_well, "findings": findings.collect::<Vec<_>>() })
}
