//! Settings of authentication, from the configuration or from Rust code.

#[cfg(feature = "jwt")]
mod jwt;

use sha2::{Digest as _, Sha256};

#[cfg(feature = "jwt")]
pub use self::jwt::{JwtKeys, JwtSettings, TokenSources};

/// Routes that need a token by default.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum DefaultAccess {
    /// The routes that the specification protects: those that start work, memory and tools.
    #[default]
    Spec,
    /// All routes except probes.
    Private,
}

/// An API key of a program.
#[derive(Debug, Clone, PartialEq)]
pub struct ApiKeySettings {
    /// Name of the key in the log, and the user's id if the profile has none.
    pub id: String,
    /// SHA-256 of the key.
    pub hash: [u8; 32],
    /// Profile of its user.
    pub user: serde_json::Map<String, serde_json::Value>,
}

impl ApiKeySettings {
    /// Returns a key with an empty profile. Only the hash is stored.
    pub fn new(id: impl Into<String>, key: &str) -> Self {
        Self { id: id.into(), hash: Sha256::digest(key).into(), user: serde_json::Map::new() }
    }
}
