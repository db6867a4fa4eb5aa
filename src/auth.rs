//! Authentication: providers that find a token in a request and identify its user. Independent of
//! the web framework and the routes.

mod api_key;
#[cfg(feature = "jwt")]
mod jwks;
#[cfg(feature = "jwt")]
mod jwt;
mod link_key;
mod seal;
mod settings;
mod signed_text;
#[cfg(feature = "jwt")]
mod sources;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

pub use futures_util::future::BoxFuture;
use greenroom_actors::domain::time::Timestamp;
use serde_json::{Map, Value};

#[cfg(feature = "jwt")]
pub use jsonwebtoken::Algorithm;

pub use self::api_key::ApiKeyProvider;
#[cfg(feature = "jwt")]
pub use self::jwt::{JwtProvider, LEEWAY_MAX, TOKEN_BYTES_MAX};
#[cfg(all(feature = "jwt", feature = "cli"))]
pub(crate) use self::jwt::{Unverified, sign};
pub use self::link_key::{LINK_TTL_MAX, LinkKey};
pub use self::seal::SealKey;
pub use self::settings::{ApiKeySettings, DefaultAccess};
#[cfg(feature = "jwt")]
pub use self::settings::{JwtKeys, JwtSettings, TokenSources};

use crate::api::ids::is_id;

/// The user of a token.
#[derive(Debug, Clone, PartialEq)]
pub struct User {
    id: Option<Arc<str>>,
    profile: Arc<Map<String, Value>>,
    roles: Arc<[String]>,
    expires_at: Option<Timestamp>,
}

impl User {
    /// Creates a user from a profile, which agents, tools and steps read as `user` in their context.
    /// Its `id` (a text or a whole number) is the `userId`; its `roles` (texts, or one text with
    /// spaces between) are the roles of rules.
    pub fn new(profile: Map<String, Value>) -> Result<Self, AuthError> {
        let id = profile.get("id").map(id_of).transpose()?.flatten();
        let roles = profile.get("roles").map(roles_of).unwrap_or_default();
        Ok(Self { id, profile: Arc::new(profile), roles, expires_at: None })
    }

    /// Sets the id if the profile has none.
    pub fn or_id(mut self, id: Option<&Value>) -> Result<Self, AuthError> {
        if self.id.is_none() {
            self.id = id.map(id_of).transpose()?.flatten();
        }
        Ok(self)
    }

    /// Sets the time when the token expires; open streams are closed then.
    #[must_use]
    pub fn until(mut self, expires_at: Option<Timestamp>) -> Self {
        self.expires_at = expires_at;
        self
    }

    /// Returns the `userId`.
    pub fn id(&self) -> Option<&str> {
        self.id.as_deref()
    }

    /// Returns the whole profile.
    pub fn profile(&self) -> &Map<String, Value> {
        &self.profile
    }

    /// Returns the roles.
    pub fn roles(&self) -> &[String] {
        &self.roles
    }

    /// Returns true if the user has one of these roles.
    pub fn has_one_of(&self, roles: &[String]) -> bool {
        self.roles.iter().any(|role| roles.contains(role))
    }

    /// Returns the time when the token expires, if it does.
    pub fn expires_at(&self) -> Option<Timestamp> {
        self.expires_at
    }
}

/// Returns an id as text; `None` for null. It must be valid in paths, where data is stored under it.
fn id_of(value: &Value) -> Result<Option<Arc<str>>, AuthError> {
    let text = match value {
        Value::Null => return Ok(None),
        Value::String(text) => text.clone(),
        Value::Number(number) if number.is_i64() || number.is_u64() => number.to_string(),
        _ => return Err(AuthError::invalid("invalid user id")),
    };
    if is_id(&text) { Ok(Some(text.into())) } else { Err(AuthError::invalid("invalid user id")) }
}

fn roles_of(value: &Value) -> Arc<[String]> {
    match value {
        Value::String(text) => text.split_whitespace().map(str::to_owned).collect(),
        Value::Array(items) => items.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        _ => Arc::default(),
    }
}

/// Reason why a token is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AuthError {
    /// Not a token of this provider; the next provider is tried.
    #[error("Invalid token: not recognized")]
    Foreign,
    /// Not in the format of this provider's tokens; the next provider is tried. The reason is shown
    /// if there is only one provider.
    #[error("Invalid token: {0}")]
    Malformed(&'static str),
    #[error("Token expired")]
    Expired,
    /// The reason is shown to clients: it must not reveal keys or repeat parts of the token.
    #[error("Invalid token: {0}")]
    Invalid(Cow<'static, str>),
    /// The token cannot be checked at the moment. The reason is logged at debug level for each
    /// request; a provider that begins to fail logs that itself.
    #[error("The token cannot be checked at the moment")]
    Unavailable(String),
}

impl AuthError {
    /// Returns a refusal with a reason that is shown to clients.
    pub fn invalid(reason: impl Into<Cow<'static, str>>) -> Self {
        Self::Invalid(reason.into())
    }

    /// Returns true if the provider does not know the token, so that another one may.
    fn is_foreign(&self) -> bool {
        matches!(self, Self::Foreign | Self::Malformed(_))
    }
}

/// A request without its body, as providers see it.
pub trait RequestHead {
    /// Returns the value of a header that is present once and is text.
    fn header(&self, name: &str) -> Option<&str>;

    /// Returns the decoded value of a query parameter; the last one if there are several.
    fn query(&self, name: &str) -> Option<String>;

    /// Returns true if the request opens a WebSocket.
    fn is_upgrade(&self) -> bool;
}

/// Returns the token of `Authorization: Bearer`; the scheme is case-insensitive.
pub fn bearer(request: &dyn RequestHead) -> Option<&str> {
    let (scheme, token) = request.header("authorization")?.split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

/// Returns the value of a cookie.
pub fn cookie<'r>(request: &'r dyn RequestHead, name: &str) -> Option<&'r str> {
    let pairs = request.header("cookie")?.split(';').filter_map(|pair| pair.split_once('='));
    let mut values = pairs.filter(|(key, _)| key.trim() == name).map(|(_, value)| value.trim());
    values.next().map(|value| value.trim_matches('"')).filter(|value| !value.is_empty())
}

/// A provider that checks tokens.
///
/// ```
/// use futures_util::future::{BoxFuture, FutureExt, ready};
/// use greenroom::auth::{AuthError, AuthProvider, User};
/// use serde_json::json;
///
/// /// Accepts a fixed password.
/// struct Password(String);
///
/// impl AuthProvider for Password {
///     fn kind(&self) -> &str {
///         "password"
///     }
///
///     fn verify<'a>(&'a self, token: &'a str) -> BoxFuture<'a, Result<User, AuthError>> {
///         let user = match token == self.0 {
///             true => User::new(json!({ "id": "owner" }).as_object().cloned().unwrap_or_default()),
///             false => Err(AuthError::Foreign),
///         };
///         ready(user).boxed()
///     }
/// }
/// ```
pub trait AuthProvider: Send + Sync {
    /// Returns the name of the kind, for the log.
    fn kind(&self) -> &str;

    /// Finds its token in a request. Default: the token of `Authorization: Bearer`.
    fn token<'r>(&self, request: &'r dyn RequestHead) -> Option<Cow<'r, str>> {
        bearer(request).map(Cow::Borrowed)
    }

    /// Returns the user of a token. Runs for every request with a token, before its body is read.
    fn verify<'a>(&'a self, token: &'a str) -> BoxFuture<'a, Result<User, AuthError>>;

    /// Returns further routes that need no token, such as `POST /login`.
    fn public_routes(&self) -> Vec<String> {
        Vec::new()
    }
}

/// The providers of a server, in the order in which they are tried.
#[derive(Clone, Default)]
pub struct Providers(Vec<Arc<dyn AuthProvider>>);

impl fmt::Debug for Providers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|provider| provider.kind())).finish()
    }
}

impl Providers {
    /// Adds a provider after the others.
    pub fn push(&mut self, provider: Arc<dyn AuthProvider>) {
        self.0.push(provider);
    }

    /// Returns true if there are none: no route needs a token then.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns their kinds, in order.
    pub fn kinds(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|provider| provider.kind())
    }

    /// Returns the public routes of all providers, each with the kind of its provider.
    pub fn public_routes(&self) -> impl Iterator<Item = (&str, String)> {
        self.0.iter().flat_map(|provider| {
            provider.public_routes().into_iter().map(|route| (provider.kind(), route))
        })
    }

    /// Returns the user of a request; `None` without a token. If no provider accepts the token, the
    /// refusal is that of the first one that knows it.
    pub async fn identify(&self, request: &dyn RequestHead) -> Result<Option<User>, AuthError> {
        let mut refusal: Option<AuthError> = None;
        for provider in &self.0 {
            let Some(token) = provider.token(request) else { continue };
            match provider.verify(&token).await {
                Ok(user) => return Ok(Some(user)),
                Err(error) => {
                    refusal = Some(match refusal.take() {
                        None => error,
                        Some(first) if !first.is_foreign() => first,
                        // one of several formats would not explain the refusal
                        Some(_) if error.is_foreign() => AuthError::Foreign,
                        Some(_) => error,
                    });
                }
            }
        }
        refusal.map_or(Ok(None), Err)
    }
}

#[cfg(test)]
mod tests;
