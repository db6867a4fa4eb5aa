//! Who calls: providers that find a token in a request and tell whose it is. Knows neither the
//! web framework nor the routes.

mod api_key;
mod jwks;
mod jwt;
mod settings;
mod sources;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use greenroom_actors::domain::time::Timestamp;
use serde_json::{Map, Value};

pub use jsonwebtoken::Algorithm;

pub use self::api_key::ApiKeyProvider;
pub use self::jwt::{JwtProvider, LEEWAY_MAX, TOKEN_BYTES_MAX};
pub use self::settings::{ApiKeySettings, DefaultAccess, JwtKeys, JwtSettings, TokenSources};

use crate::api::ids::is_id;

/// Who a token stands for.
#[derive(Debug, Clone, PartialEq)]
pub struct User {
    id: Option<Arc<str>>,
    profile: Arc<Map<String, Value>>,
    roles: Arc<[String]>,
    expires_at: Option<Timestamp>,
}

impl User {
    /// Takes what is known of a user: what agents, tools and steps find in their context under
    /// `user`. Its `id` (a text or a whole number) is the `userId`; its `roles` (texts, or one
    /// text with spaces between) are what rules ask for.
    pub fn new(profile: Map<String, Value>) -> Result<Self, AuthError> {
        let id = profile.get("id").map(id_of).transpose()?.flatten();
        let roles = profile.get("roles").map(roles_of).unwrap_or_default();
        Ok(Self { id, profile: Arc::new(profile), roles, expires_at: None })
    }

    /// Takes this id where the profile has none.
    pub fn or_id(mut self, id: Option<&Value>) -> Result<Self, AuthError> {
        if self.id.is_none() {
            self.id = id.map(id_of).transpose()?.flatten();
        }
        Ok(self)
    }

    /// Stops being anybody at this time: what stays open that long is closed then.
    #[must_use]
    pub fn until(mut self, expires_at: Option<Timestamp>) -> Self {
        self.expires_at = expires_at;
        self
    }

    /// The `userId` that work is done under.
    pub fn id(&self) -> Option<&str> {
        self.id.as_deref()
    }

    /// Everything that is known of the user.
    pub fn profile(&self) -> &Map<String, Value> {
        &self.profile
    }

    /// Whether the user has one of these roles.
    pub fn has_one_of(&self, roles: &[String]) -> bool {
        self.roles.iter().any(|role| roles.contains(role))
    }

    /// When the token ends, if it does.
    pub fn expires_at(&self) -> Option<Timestamp> {
        self.expires_at
    }
}

/// An id as text; null is none. What is kept under it is named in paths.
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

/// Why a token is not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AuthError {
    /// Not a token of this provider's making: the next one is asked.
    #[error("Invalid token: not recognized")]
    Foreign,
    /// Not even of the shape of this provider's tokens: the next one is asked. The reason is shown
    /// when there is no other.
    #[error("Invalid token: {0}")]
    Malformed(&'static str),
    #[error("Token expired")]
    Expired,
    /// The reason is shown: it says nothing of keys, and repeats nothing of the token.
    #[error("Invalid token: {0}")]
    Invalid(Cow<'static, str>),
    /// It cannot be checked just now. The reason is logged at debug level, for each request; that a
    /// provider has begun to fail is its own to say.
    #[error("The token cannot be checked just now")]
    Unavailable(String),
}

impl AuthError {
    /// A refusal for this reason, which is shown.
    pub fn invalid(reason: impl Into<Cow<'static, str>>) -> Self {
        Self::Invalid(reason.into())
    }

    /// Whether the provider knows nothing of the token: any other one may know better.
    fn is_foreign(&self) -> bool {
        matches!(self, Self::Foreign | Self::Malformed(_))
    }
}

/// The part of a request that a provider may look at: all but the body.
pub trait RequestHead {
    /// The value of a header that is there once and is text.
    fn header(&self, name: &str) -> Option<&str>;

    /// The value of a query parameter, decoded; the last one counts when there are several.
    fn query(&self, name: &str) -> Option<String>;

    /// Whether the request asks for a WebSocket.
    fn is_upgrade(&self) -> bool;
}

/// The token of `Authorization: Bearer`; the scheme's name in any case.
pub fn bearer(request: &dyn RequestHead) -> Option<&str> {
    let (scheme, token) = request.header("authorization")?.split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

/// The value of a cookie.
pub fn cookie<'r>(request: &'r dyn RequestHead, name: &str) -> Option<&'r str> {
    let pairs = request.header("cookie")?.split(';').filter_map(|pair| pair.split_once('='));
    let mut values = pairs.filter(|(key, _)| key.trim() == name).map(|(_, value)| value.trim());
    values.next().map(|value| value.trim_matches('"')).filter(|value| !value.is_empty())
}

/// Checks tokens.
///
/// ```
/// use futures_util::future::{BoxFuture, FutureExt, ready};
/// use greenroom::auth::{AuthError, AuthProvider, User};
/// use serde_json::json;
///
/// /// Takes the word of whoever knows the password.
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
    /// What it is, for the log.
    fn kind(&self) -> &str;

    /// Finds its token in a request. By default that of `Authorization: Bearer`.
    fn token<'r>(&self, request: &'r dyn RequestHead) -> Option<Cow<'r, str>> {
        bearer(request).map(Cow::Borrowed)
    }

    /// Tells whose a token is. Runs for every request that has one, before its body is read.
    fn verify<'a>(&'a self, token: &'a str) -> BoxFuture<'a, Result<User, AuthError>>;

    /// Routes that need no token beside those of the configuration, as `POST /login`.
    fn public_routes(&self) -> Vec<String> {
        Vec::new()
    }
}

/// The providers of a server, in the order in which they are asked.
#[derive(Clone, Default)]
pub struct Providers(Vec<Arc<dyn AuthProvider>>);

impl fmt::Debug for Providers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|provider| provider.kind())).finish()
    }
}

impl Providers {
    /// Adds one behind the others.
    pub fn push(&mut self, provider: Arc<dyn AuthProvider>) {
        self.0.push(provider);
    }

    /// Whether there is none: then nobody is asked for a token.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What they are, in their order.
    pub fn kinds(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|provider| provider.kind())
    }

    /// The public routes of all of them, each with the kind of the provider that names it.
    pub fn public_routes(&self) -> impl Iterator<Item = (&str, String)> {
        self.0.iter().flat_map(|provider| {
            provider.public_routes().into_iter().map(|route| (provider.kind(), route))
        })
    }

    /// Tells who calls. `None` without a token. When no provider takes it, the refusal is that of
    /// the first one that knows it.
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
                        // The shape that one of several expects explains nothing.
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
