//! The JWT provider, which identifies users by signed tokens.
//!
//! The header is read strictly before the signature is verified, and the claims only afterwards.
//! Algorithm and key come from the settings, never from the token. Reasons of refusals are a fixed
//! set of texts.

pub(in crate::auth) mod algorithms;
mod claims;
#[cfg(feature = "cli")]
mod issue;
mod keys;
mod profile;
mod token;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use greenroom_actors::ports::clock::{Clock, SystemClock};
use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::{Algorithm, DecodingKey, crypto};
use serde_json::{Map, Value};

pub use self::claims::LEEWAY_MAX;
#[cfg(feature = "cli")]
pub(crate) use self::issue::{Unverified, sign};
pub use self::token::TOKEN_BYTES_MAX;

use self::claims::Rules;
use self::keys::Keys;
use self::profile::Profile;
use self::token::{MALFORMED, Token};
use super::{AuthError, AuthProvider, JwtSettings, RequestHead, TokenSources, User};

/// Identifies callers by signed tokens (JSON Web Tokens).
pub struct JwtProvider {
    algorithms: Vec<Algorithm>,
    keys: Keys,
    rules: Rules,
    profile: Profile,
    sources: TokenSources,
    clock: Arc<dyn Clock>,
}

impl fmt::Debug for JwtProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JwtProvider")
            .field("algorithms", &self.algorithms)
            .field("rules", &self.rules)
            .field("sources", &self.sources)
            .finish_non_exhaustive()
    }
}

impl JwtProvider {
    /// Creates a provider. Returns an error for a short secret, a key that is not for the
    /// algorithms, algorithms of different families, or too much leeway. A key set is fetched when
    /// it is first needed.
    pub fn new(settings: JwtSettings) -> Result<Self, String> {
        Self::at(settings, Arc::new(SystemClock))
    }

    /// Creates a provider with another clock.
    pub(super) fn at(settings: JwtSettings, clock: Arc<dyn Clock>) -> Result<Self, String> {
        let JwtSettings { keys, algorithms, issuer, audience, leeway, require_exp, user, sources } =
            settings;
        let keys = Keys::new(keys, &algorithms, &clock)?;
        let rules = Rules::new(issuer, audience, leeway, require_exp)?;
        let profile = user.map_or(Profile::Usual, Profile::Mapped);
        Ok(Self { algorithms, keys, rules, profile, sources, clock })
    }

    /// Sets a function that returns the profile for the claims, in place of the settings' `user`.
    /// The `userId` is its `id`, else the subject.
    #[must_use]
    pub fn map_user(
        mut self,
        map: impl Fn(&Map<String, Value>) -> Result<Map<String, Value>, AuthError>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        self.profile = Profile::Function(Box::new(map));
        self
    }

    async fn user_of(&self, text: &str) -> Result<User, AuthError> {
        let token = Token::split(text)?;
        let algorithm = token.header.algorithm.filter(|it| self.algorithms.contains(it));
        let algorithm = algorithm.ok_or_else(|| AuthError::invalid("invalid algorithm"))?;
        match &self.keys {
            Keys::Own(key) => check_signature(&token, key, algorithm)?,
            Keys::Set(set) => {
                let key = set.key(token.header.kid.as_deref(), algorithm).await?;
                check_signature(&token, &key, algorithm)?;
            }
        }
        let claims = token.claims()?;
        let expires_at = self.rules.check(&claims, self.clock.now())?;
        Ok(self.profile.user(claims)?.until(expires_at))
    }
}

impl AuthProvider for JwtProvider {
    fn kind(&self) -> &str {
        "jwt"
    }

    fn token<'r>(&self, request: &'r dyn RequestHead) -> Option<Cow<'r, str>> {
        self.sources.find(request)
    }

    fn verify<'a>(&'a self, token: &'a str) -> BoxFuture<'a, Result<User, AuthError>> {
        self.user_of(token).boxed()
    }
}

fn check_signature(
    token: &Token<'_>,
    key: &DecodingKey,
    algorithm: Algorithm,
) -> Result<(), AuthError> {
    match crypto::verify(token.signature, token.signed.as_bytes(), key, algorithm) {
        Ok(true) => Ok(()),
        Ok(false) => Err(AuthError::invalid("invalid signature")),
        Err(error) => match error.kind() {
            ErrorKind::Base64(_) => Err(AuthError::invalid(MALFORMED)),
            _ => Err(AuthError::invalid("invalid signature")),
        },
    }
}
