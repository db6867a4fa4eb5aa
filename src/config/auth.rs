//! `[auth]`: access to the routes.

mod api_keys;
#[cfg(feature = "jwt")]
mod jwt;
#[cfg(feature = "jwt")]
mod keys;
mod routes;

use std::collections::BTreeMap;
use std::sync::Arc;

use super::entry::Entry;
use super::features::JWT;
use super::names::Names;
use super::problem::{ConfigProblem, Spot};
use super::section::{Section, shown_key};
use crate::auth::{self, ApiKeyProvider, ApiKeySettings};

#[cfg(feature = "jwt")]
pub use self::jwt::JwtConfig;
#[cfg(all(feature = "cli", feature = "jwt"))]
pub(super) use self::jwt::algorithm_names;
#[cfg(feature = "jwt")]
pub use self::keys::KeySource;
pub(super) use self::routes::roles_of;
pub use self::routes::{RoutePattern, RouteRule};
pub use crate::auth::DefaultAccess;

/// Access to the routes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AuthConfig {
    /// `None` if not configured: nothing is protected unless a provider checks tokens, and only
    /// programs on this machine may reach the server.
    pub provider: Option<AuthProvider>,
    /// Access to routes without a rule.
    pub default: DefaultAccess,
    /// Routes that need no token.
    pub public: Vec<RoutePattern>,
    /// Routes that need a token, with roles.
    pub rules: Vec<RouteRule>,
    /// Roles that see the data of all users; `None` without ownership.
    pub owner_roles: Option<Vec<String>>,
    /// `[auth.jwt]`
    #[cfg(feature = "jwt")]
    pub jwt: Option<JwtConfig>,
    /// `[[auth.api_keys]]`
    pub api_keys: Vec<ApiKeySettings>,
    /// Places of the keys that were written.
    spots: BTreeMap<&'static str, Spot>,
}

/// The values of `provider`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuthProvider {
    /// No provider checks tokens, on purpose.
    None,
}

impl AuthConfig {
    pub(crate) fn read(section: Section<'_>) -> Self {
        let provider = section.get("provider").and_then(|entry| provider(&entry));
        let default = section.get("default").and_then(|entry| default_access(&entry));
        let default = default.unwrap_or_default();
        if let Some((refusal, jwt)) = JWT.lacking("check tokens").zip(section.get("jwt")) {
            jwt.place.refuse(refusal);
        }
        let config = Self {
            provider,
            default,
            public: section.get("public").map(|entry| routes::public(&entry)).unwrap_or_default(),
            rules: section.sections("rules").into_iter().filter_map(RouteRule::read).collect(),
            owner_roles: section.section("ownership").map(routes::owner_roles),
            #[cfg(feature = "jwt")]
            jwt: section
                .section("jwt")
                .and_then(|jwt| JwtConfig::read(jwt, default == DefaultAccess::Private)),
            api_keys: section.get("api_keys").map(|it| api_keys::read(&it)).unwrap_or_default(),
            spots: spots(&section, default),
        };
        if provider == Some(AuthProvider::None) {
            for key in ["jwt", "api_keys"].into_iter().filter(|key| section.has(key)) {
                section
                    .key_place(key)
                    .refuse("contradicts provider = \"none\"; remove one of them");
            }
        }
        section.close();
        config
    }

    /// Returns the providers that check tokens, in order, with keys from the environment.
    #[cfg_attr(not(feature = "jwt"), expect(unused_variables, reason = "no secrets are needed"))]
    pub fn providers(
        &self,
        environment: impl Fn(&str) -> Option<String>,
    ) -> Result<Vec<Arc<dyn auth::AuthProvider>>, ConfigProblem> {
        let mut providers: Vec<Arc<dyn auth::AuthProvider>> = Vec::new();
        #[cfg(feature = "jwt")]
        if let Some(jwt) = &self.jwt {
            providers.push(Arc::new(jwt.provider(environment)?));
        }
        if !self.api_keys.is_empty() {
            let keys = ApiKeyProvider::new(self.api_keys.clone());
            providers.push(Arc::new(keys.map_err(|problem| self.spot("api_keys").error(problem))?));
        }
        Ok(providers)
    }

    /// Returns true if the configuration itself has a provider.
    pub(crate) fn has_provider(&self) -> bool {
        self.has_jwt() || !self.api_keys.is_empty()
    }

    /// Returns true if the configuration says how JSON Web Tokens are checked.
    pub(super) fn has_jwt(&self) -> bool {
        #[cfg(feature = "jwt")]
        return self.jwt.is_some();
        #[cfg(not(feature = "jwt"))]
        return false;
    }

    /// Returns true if this program can sign tokens.
    #[cfg(feature = "cli")]
    pub(crate) fn signs_tokens(&self) -> bool {
        #[cfg(feature = "jwt")]
        return self.jwt.as_ref().is_some_and(JwtConfig::signs);
        #[cfg(not(feature = "jwt"))]
        return false;
    }

    /// Returns the environment variable of the secret that signs tokens.
    pub(super) fn secret_variable(&self) -> Option<&str> {
        #[cfg(feature = "jwt")]
        return self.jwt.as_ref()?.keys.secret_variable();
        #[cfg(not(feature = "jwt"))]
        return None;
    }

    /// Returns true if tokens are checked.
    pub(super) fn checks_tokens(&self, registered: &Names) -> bool {
        self.has_provider() || !registered.providers.is_empty()
    }

    /// Returns true if tokens are checked, or explicitly not.
    pub(super) fn is_settled(&self, registered: &Names) -> bool {
        self.provider.is_some() || self.checks_tokens(registered)
    }

    /// Returns contradictions: rules without a provider that enforces them, and `provider = "none"`
    /// beside a provider.
    pub(super) fn check(&self, registered: &Names) -> Vec<ConfigProblem> {
        let kinds: Vec<&str> = registered.providers.iter().map(String::as_str).collect();
        if self.provider == Some(AuthProvider::None) && !kinds.is_empty() {
            let kinds = kinds.join(", ");
            let message = format!("\"none\" contradicts the providers registered in Rust: {kinds}");
            return vec![self.spot("provider").error(message)];
        }
        // a refused provider counts as present: it has its own error
        let is_declared = ["jwt", "api_keys"].iter().any(|key| self.spots.contains_key(key));
        if is_declared || self.has_provider() || !kinds.is_empty() {
            return Vec::new();
        }
        let written = [
            ("default", self.default == DefaultAccess::Private),
            ("public", !self.public.is_empty()),
            ("rules", !self.rules.is_empty()),
            ("ownership", self.owner_roles.is_some()),
        ];
        let idle = written.into_iter().filter(|(_, is_written)| *is_written);
        let message = "has no effect without a provider that checks tokens: [auth.jwt], \
                       [[auth.api_keys]] or a provider in Rust";
        idle.map(|(key, _)| self.spot(key).error(message)).collect()
    }

    /// Returns the place of the provider in the file.
    pub(crate) fn provider_spot(&self) -> Spot {
        let written = ["jwt", "api_keys"].into_iter().find_map(|key| self.spots.get(key));
        written.cloned().unwrap_or_else(|| Spot::nowhere("auth"))
    }

    fn spot(&self, key: &str) -> Spot {
        let nowhere = || Spot::nowhere(&format!("auth.{}", shown_key(key)));
        self.spots.get(key).cloned().unwrap_or_else(nowhere)
    }
}

/// Returns the places of the keys that later checks refer to.
fn spots(section: &Section<'_>, default: DefaultAccess) -> BTreeMap<&'static str, Spot> {
    let keys = ["provider", "default", "public", "rules", "ownership", "jwt", "api_keys"];
    let says_something = |key: &str| key != "default" || default == DefaultAccess::Private;
    let written = keys.into_iter().filter(|key| section.has(key) && says_something(key));
    written.map(|key| (key, section.key_place(key).spot())).collect()
}

fn provider(entry: &Entry<'_>) -> Option<AuthProvider> {
    if entry.text()? == "none" {
        return Some(AuthProvider::None);
    }
    entry.refuse("must be \"none\"; configure providers in [auth.jwt] or [[auth.api_keys]]")
}

fn default_access(entry: &Entry<'_>) -> Option<DefaultAccess> {
    match entry.text()?.as_str() {
        // `spec` is the name in earlier versions
        "standard" | "spec" => Some(DefaultAccess::Spec),
        "private" => Some(DefaultAccess::Private),
        _ => entry.refuse("must be \"standard\" or \"private\""),
    }
}
