//! `[auth]`: who may call.

use super::entry::Entry;
use super::section::{NOT_SUPPORTED, Section};

/// Who may call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuthConfig {
    /// `None` when nothing was written: then nothing is protected either, but only programs of
    /// this machine may reach the server.
    pub provider: Option<AuthProvider>,
}

/// What checks a caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuthProvider {
    /// Nothing, and that is meant.
    None,
}

impl AuthConfig {
    pub(crate) fn read(section: Section<'_>) -> Self {
        let provider = section.get("provider").and_then(|entry| provider(&entry));
        section.later(&["default", "public", "rules", "jwt"]);
        section.close();
        Self { provider }
    }
}

fn provider(entry: &Entry<'_>) -> Option<AuthProvider> {
    if entry.text()? == "none" {
        return Some(AuthProvider::None);
    }
    entry.place.refuse(NOT_SUPPORTED);
    None
}
