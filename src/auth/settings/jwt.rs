//! Settings of the JWT provider.

use std::time::Duration;

use greenroom_actors::domain::expression::CompiledMapping;
use jsonwebtoken::Algorithm;
use url::Url;

/// Places of tokens beside `Authorization: Bearer`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenSources {
    /// A cookie of this name. Ignored for WebSockets, which browsers open from foreign pages, too.
    pub cookie: Option<String>,
    /// A query parameter of this name, for WebSockets, where browsers cannot set headers.
    pub query: String,
    /// Accepts the query parameter for every request. Addresses end up in histories and in logs of
    /// proxies.
    pub query_anywhere: bool,
}

impl Default for TokenSources {
    fn default() -> Self {
        Self { cookie: None, query: "token".to_owned(), query_anywhere: false }
    }
}

/// Keys of signatures.
#[derive(Clone)]
pub enum JwtKeys {
    /// The secret of HS256, HS384 and HS512; at least 32 bytes.
    Secret(Vec<u8>),
    /// A public key as PEM: of RSA, of the curves P-256 and P-384, or of Ed25519.
    Pem(Vec<u8>),
    /// The address of a JSON Web Key Set. Plain `http://` allows anyone on the network path to
    /// replace the keys.
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

/// Settings of the JWT provider.
#[derive(Debug, Clone)]
pub struct JwtSettings {
    pub keys: JwtKeys,
    /// Accepted algorithms, all of the family of the keys. A token cannot choose another one.
    pub algorithms: Vec<Algorithm>,
    /// Accepted issuers; if empty, `iss` is not checked.
    pub issuer: Vec<String>,
    /// Accepted audiences, of which a token must name one; if empty, `aud` is not checked.
    pub audience: Vec<String>,
    /// Tolerated clock difference; at most 5 s.
    pub leeway: Duration,
    /// True if tokens without `exp` are refused.
    pub require_exp: bool,
    /// Expressions over `claims` for the user's profile; a key whose expression is undefined is
    /// omitted. Default: `id` (the subject), `email`, `name` and `roles`, if the claims have them.
    pub user: Option<Vec<(String, CompiledMapping)>>,
    pub sources: TokenSources,
}

impl JwtSettings {
    /// Returns settings for HS256 with a secret of at least 32 bytes, and defaults otherwise.
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
