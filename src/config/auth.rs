//! `[auth]`: who may call.

mod api_keys;
mod jwt;
mod keys;
mod routes;

use std::collections::BTreeMap;
use std::sync::Arc;

use super::entry::Entry;
use super::names::Names;
use super::problem::{ConfigProblem, Spot};
use super::section::{Section, shown_key};
use crate::auth::{self, ApiKeyProvider, ApiKeySettings};

pub use self::jwt::JwtConfig;
pub use self::keys::KeySource;
pub use self::routes::{RoutePattern, RouteRule};
pub use crate::auth::DefaultAccess;

/// Who may call.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AuthConfig {
    /// `None` when nothing was written: then nothing is protected unless there is somebody who
    /// checks tokens, and only programs of this machine may reach the server.
    pub provider: Option<AuthProvider>,
    /// What needs a token when nothing else is said.
    pub default: DefaultAccess,
    /// Routes that need none.
    pub public: Vec<RoutePattern>,
    /// Routes that need one, and which roles.
    pub rules: Vec<RouteRule>,
    /// Where things are seen by their users alone: the roles that see them, too.
    pub owner_roles: Option<Vec<String>>,
    /// `[auth.jwt]`
    pub jwt: Option<JwtConfig>,
    /// `[[auth.api_keys]]`
    pub api_keys: Vec<ApiKeySettings>,
    /// Where the keys are that were written.
    spots: BTreeMap<&'static str, Spot>,
}

/// What is written as the provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuthProvider {
    /// Nothing, and that is meant.
    None,
}

impl AuthConfig {
    pub(crate) fn read(section: Section<'_>) -> Self {
        let provider = section.get("provider").and_then(|entry| provider(&entry));
        let default = section.get("default").and_then(|entry| default_access(&entry));
        let default = default.unwrap_or_default();
        let config = Self {
            provider,
            default,
            public: section.get("public").map(|entry| routes::public(&entry)).unwrap_or_default(),
            rules: section.sections("rules").into_iter().filter_map(RouteRule::read).collect(),
            owner_roles: section.section("ownership").map(routes::owner_roles),
            jwt: section
                .section("jwt")
                .and_then(|jwt| JwtConfig::read(jwt, default == DefaultAccess::Private)),
            api_keys: section.get("api_keys").map(|it| api_keys::read(&it)).unwrap_or_default(),
            spots: spots(&section, default),
        };
        if provider == Some(AuthProvider::None) {
            for key in ["jwt", "api_keys"].into_iter().filter(|key| section.has(key)) {
                let message = "provider = \"none\" says that nobody checks tokens; one of the two";
                section.key_place(key).refuse(message);
            }
        }
        section.close();
        config
    }

    /// Those who check tokens, in the order in which they are asked, with keys from the
    /// environment.
    pub fn providers(
        &self,
        environment: impl Fn(&str) -> Option<String>,
    ) -> Result<Vec<Arc<dyn auth::AuthProvider>>, ConfigProblem> {
        let mut providers: Vec<Arc<dyn auth::AuthProvider>> = Vec::new();
        if let Some(jwt) = &self.jwt {
            providers.push(Arc::new(jwt.provider(environment)?));
        }
        if !self.api_keys.is_empty() {
            let keys = ApiKeyProvider::new(self.api_keys.clone());
            providers.push(Arc::new(keys.map_err(|problem| self.spot("api_keys").error(problem))?));
        }
        Ok(providers)
    }

    /// Whether the configuration itself says who checks tokens.
    pub(crate) fn has_provider(&self) -> bool {
        self.jwt.is_some() || !self.api_keys.is_empty()
    }

    /// Whether tokens are checked.
    pub(super) fn checks_tokens(&self, registered: &Names) -> bool {
        self.has_provider() || !registered.providers.is_empty()
    }

    /// Whether anybody checks tokens, or nobody and that is meant.
    pub(super) fn is_settled(&self, registered: &Names) -> bool {
        self.provider.is_some() || self.checks_tokens(registered)
    }

    /// What contradicts those who check tokens: rules for nobody to enforce, and the word that
    /// there is nobody.
    pub(super) fn check(&self, registered: &Names) -> Vec<ConfigProblem> {
        let kinds: Vec<&str> = registered.providers.iter().map(String::as_str).collect();
        if self.provider == Some(AuthProvider::None) && !kinds.is_empty() {
            let message = format!(
                "\"none\" says that nobody checks tokens, and the program does: {}",
                kinds.join(", ")
            );
            return vec![self.spot("provider").error(message)];
        }
        // What was refused is as good as there: its mistake is told elsewhere.
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
        let message = "does nothing without somebody who checks tokens: [auth.jwt], \
                       [[auth.api_keys]] or a provider in Rust";
        idle.map(|(key, _)| self.spot(key).error(message)).collect()
    }

    /// Where it says who checks tokens.
    pub(crate) fn provider_spot(&self) -> Spot {
        let written = ["jwt", "api_keys"].into_iter().find_map(|key| self.spots.get(key));
        written.cloned().unwrap_or_else(|| Spot::nowhere("auth"))
    }

    fn spot(&self, key: &str) -> Spot {
        let nowhere = || Spot::nowhere(&format!("auth.{}", shown_key(key)));
        self.spots.get(key).cloned().unwrap_or_else(nowhere)
    }
}

/// Places of the keys that later checks are about.
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
    let hint = "must be \"none\"; whoever checks tokens is configured in [auth.jwt] or \
                [[auth.api_keys]]";
    entry.place.refuse(hint);
    None
}

fn default_access(entry: &Entry<'_>) -> Option<DefaultAccess> {
    match entry.text()?.as_str() {
        // the second name is that of earlier versions
        "standard" | "spec" => Some(DefaultAccess::Spec),
        "private" => Some(DefaultAccess::Private),
        _ => {
            entry.place.refuse("must be \"standard\" or \"private\"");
            None
        }
    }
}
