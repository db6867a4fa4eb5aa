//! What can be said of authentication, as the configuration or a program writes it.

use std::time::Duration;

use greenroom_actors::domain::expression::CompiledProjection;
use jsonwebtoken::Algorithm;
use reqwest::Url;
use sha2::{Digest as _, Sha256};

/// What needs a token when nothing else is said.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum DefaultAccess {
    /// What the specification protects: the routes that start work, and those of memory and tools.
    #[default]
    Spec,
    /// Everything but probes.
    Private,
}

/// Where a built-in provider looks for its token, beside `Authorization: Bearer`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenSources {
    /// A cookie of this name. Not for WebSockets, which browsers open from foreign pages.
    pub cookie: Option<String>,
    /// A query parameter of this name: for WebSockets, whose browsers cannot set headers.
    pub query: String,
    /// Whether the query parameter counts for every request. Addresses end up in histories and
    /// in logs of what stands in between.
    pub query_anywhere: bool,
}

impl Default for TokenSources {
    fn default() -> Self {
        Self { cookie: None, query: "token".to_owned(), query_anywhere: false }
    }
}

/// What signatures are checked with.
#[derive(Clone)]
pub enum JwtKeys {
    /// The secret of HS256, HS384 and HS512; at least 32 bytes.
    Secret(Vec<u8>),
    /// A public key as PEM: of RSA, of the curves P-256 and P-384, or of Ed25519.
    Pem(Vec<u8>),
    /// The address of a JSON Web Key Set. Over `http://` whoever is in between can give keys of
    /// its own.
    Jwks(Url),
}

impl std::fmt::Debug for JwtKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Secret(_) => "Secret",
            Self::Pem(_) => "Pem",
            Self::Jwks(_) => "Jwks",
        })
    }
}

/// What the JWT provider is told.
#[derive(Debug, Clone)]
pub struct JwtSettings {
    pub keys: JwtKeys,
    /// What tokens may be signed with; never what a token says of itself. Of one family, that of
    /// the keys.
    pub algorithms: Vec<Algorithm>,
    /// Accepted issuers; empty: any, or none.
    pub issuer: Vec<String>,
    /// Accepted audiences, of which a token must name one; empty: any, or none.
    pub audience: Vec<String>,
    /// How far clocks may differ; at most 5 s.
    pub leeway: Duration,
    /// Whether a token without an end is refused.
    pub require_exp: bool,
    /// The user's profile, made from `claims`: a key whose expression finds nothing is left out.
    /// Without it: `id` (the subject), `email`, `name` and `roles`, as far as the claims have them.
    pub user: Option<Vec<(String, CompiledProjection)>>,
    pub sources: TokenSources,
}

impl JwtSettings {
    /// Tokens that are signed with a secret of at least 32 bytes, by HS256; everything else is as
    /// where the configuration says nothing.
    pub fn hs256(secret: impl Into<Vec<u8>>) -> Self {
        Self {
            keys: JwtKeys::Secret(secret.into()),
            algorithms: vec![Algorithm::HS256],
            issuer: Vec::new(),
            audience: Vec::new(),
            leeway: Duration::ZERO,
            require_exp: false,
            user: None,
            sources: TokenSources::default(),
        }
    }
}

/// A key that a program calls with.
#[derive(Debug, Clone, PartialEq)]
pub struct ApiKeySettings {
    /// The name it goes by, in the log and as the user's id when the profile has none.
    pub id: String,
    /// SHA-256 of the key.
    pub hash: [u8; 32],
    /// The profile of the user that it stands for.
    pub user: serde_json::Map<String, serde_json::Value>,
}

impl ApiKeySettings {
    /// A key by its name. Only its hash is kept.
    pub fn new(id: impl Into<String>, key: &str) -> Self {
        Self { id: id.into(), hash: Sha256::digest(key).into(), user: serde_json::Map::new() }
    }
}
