//! `[auth.jwt]`: JSON Web Tokens.

use std::time::Duration;

use greenroom_actors::domain::definition::Mapping;
use greenroom_actors::domain::expression::CompiledMapping;
use jsonwebtoken::{Algorithm, AlgorithmFamily};
use toml::de::DeValue;

use super::keys::KeySource;
#[cfg(feature = "cli")]
use crate::auth::JwtKeys;
use crate::auth::{JwtProvider, JwtSettings, LEEWAY_MAX, TokenSources};
use crate::config::entry::Entry;
use crate::config::problem::{ConfigProblem, Spot};
use crate::config::section::Section;
use crate::config::texts::TextScope;

/// Algorithms that tokens may be signed with.
const ALGORITHMS: [(&str, Algorithm); 12] = [
    ("HS256", Algorithm::HS256),
    ("HS384", Algorithm::HS384),
    ("HS512", Algorithm::HS512),
    ("RS256", Algorithm::RS256),
    ("RS384", Algorithm::RS384),
    ("RS512", Algorithm::RS512),
    ("PS256", Algorithm::PS256),
    ("PS384", Algorithm::PS384),
    ("PS512", Algorithm::PS512),
    ("ES256", Algorithm::ES256),
    ("ES384", Algorithm::ES384),
    ("EdDSA", Algorithm::EdDSA),
];

/// Settings of JSON Web Tokens.
#[derive(Debug, Clone, PartialEq)]
pub struct JwtConfig {
    /// The source of the keys.
    pub keys: KeySource,
    /// Accepted algorithms, all of the family of the keys.
    pub algorithms: Vec<Algorithm>,
    /// Accepted issuers; if empty, `iss` is not checked.
    pub issuer: Vec<String>,
    /// Accepted audiences; if empty, `aud` is not checked.
    pub audience: Vec<String>,
    /// Tolerated clock difference; at most 5 s.
    pub leeway: Duration,
    /// True if tokens without `exp` are refused.
    pub require_exp: bool,
    /// Expressions over `claims` for the user's profile.
    pub user: Option<Vec<(String, Mapping)>>,
    /// Places of tokens in requests.
    pub sources: TokenSources,
    /// The place of the keys in the file.
    spot: Spot,
}

/// Returns the names of the algorithms.
#[cfg(feature = "cli")]
pub(in crate::config) fn algorithm_names() -> impl Iterator<Item = &'static str> {
    ALGORITHMS.iter().map(|(name, _)| *name)
}

impl JwtConfig {
    pub(super) fn read(section: Section<'_>, require_exp: bool) -> Option<Self> {
        let keys = KeySource::read(&section);
        let named = ["secret", "public_key", "jwks_url"].into_iter().find(|key| section.has(key));
        let spot = named.map_or_else(|| section.place.clone(), |key| section.key_place(key)).spot();
        let takes_secret = named.is_none_or(|key| key == "secret");
        let algorithms = match section.get("algorithms") {
            Some(entry) => algorithms(&entry, takes_secret),
            None if takes_secret => Some(vec![Algorithm::HS256]),
            None => Some(vec![Algorithm::RS256]),
        };
        let texts = |key| section.get(key).map(|entry| one_or_more(&entry)).unwrap_or_default();
        let (issuer, audience) = (texts("issuer"), texts("audience"));
        let leeway = section.get("leeway").and_then(|entry| leeway(&entry)).unwrap_or_default();
        let require_exp = section.flag("require_exp", require_exp);
        let user = section.has("user").then(|| user(&section));
        let sources = sources(&section);
        section.close();
        let (keys, algorithms) = (keys?, algorithms?);
        let user = match user {
            Some(user) => Some(user?),
            None => None,
        };
        Some(Self { keys, algorithms, issuer, audience, leeway, require_exp, user, sources, spot })
    }

    /// Returns the provider, with its keys from the environment. Errors name the variable, never
    /// its value.
    pub fn provider(
        &self,
        environment: impl Fn(&str) -> Option<String>,
    ) -> Result<JwtProvider, ConfigProblem> {
        let of_keys = |problem: String| match self.keys.variable() {
            Some(name) => format!("the environment variable {name}: {problem}"),
            None => problem,
        };
        let keys = self.keys.keys(environment);
        let compiled = |(key, mapping): &(String, Mapping)| {
            let compiled = CompiledMapping::compile(mapping);
            Ok((key.clone(), compiled.map_err(|error| format!("user.{key}: {error}"))?))
        };
        let user = self.user.as_ref().map(|user| user.iter().map(compiled).collect());
        let refused = |problem: String| self.spot.error(problem);
        let settings = JwtSettings {
            keys: keys.map_err(refused)?,
            algorithms: self.algorithms.clone(),
            issuer: self.issuer.clone(),
            audience: self.audience.clone(),
            leeway: self.leeway,
            require_exp: self.require_exp,
            user: user.transpose().map_err(refused)?,
            sources: self.sources.clone(),
        };
        JwtProvider::new(settings).map_err(|problem| refused(of_keys(problem)))
    }
}

/// Signing of tokens, where the keys are a secret.
#[cfg(feature = "cli")]
impl JwtConfig {
    /// Returns true if the keys are a secret, with which this program can sign.
    pub(crate) fn signs(&self) -> bool {
        matches!(self.keys, KeySource::Secret(_))
    }

    /// Returns the secret and the algorithm that sign tokens for this server, or the reason why
    /// nothing here can.
    pub(crate) fn signer(
        &self,
        environment: impl Fn(&str) -> Option<String>,
    ) -> Result<(Vec<u8>, Algorithm), ConfigProblem> {
        let algorithm = self.algorithms.first().copied().unwrap_or(Algorithm::HS256);
        let keys = self.keys.keys(environment).map_err(|problem| self.spot.error(problem));
        match keys? {
            JwtKeys::Secret(secret) => Ok((secret, algorithm)),
            JwtKeys::Pem(_) | JwtKeys::Jwks(_) => Err(self.spot.error(
                "only checks tokens: who has the private key signs them, which is the identity \
                 provider",
            )),
        }
    }
}

fn algorithms(entry: &Entry<'_>, takes_secret: bool) -> Option<Vec<Algorithm>> {
    let items = entry.items()?;
    let algorithms: Option<Vec<_>> = items.iter().map(|item| item.one_of(&ALGORITHMS)).collect();
    let algorithms = algorithms?;
    let Some(first) = algorithms.first() else {
        return entry.refuse("needs at least one");
    };
    let is_symmetric = first.family() == AlgorithmFamily::Hmac;
    if is_symmetric != takes_secret {
        let needed = if is_symmetric { "`secret`" } else { "`public_key` or `jwks_url`" };
        return items.first()?.refuse(format!("needs {needed}"));
    }
    let foreign = algorithms.iter().position(|other| other.family() != first.family());
    if let Some(item) = foreign.and_then(|index| items.get(index)) {
        return item.refuse("needs another kind of key than the first one");
    }
    Some(algorithms)
}

/// Reads a text or an array of texts.
fn one_or_more(entry: &Entry<'_>) -> Vec<String> {
    if !matches!(entry.value, DeValue::Array(_)) {
        return entry.filled_text().into_iter().collect();
    }
    let items = entry.items().unwrap_or_default();
    if items.is_empty() {
        entry.place.refuse("needs at least one");
    }
    items.iter().filter_map(Entry::filled_text).collect()
}

fn leeway(entry: &Entry<'_>) -> Option<Duration> {
    let leeway = entry.pause()?;
    if leeway > LEEWAY_MAX {
        return entry.refuse("must be at most 5s: expired tokens are accepted for that long");
    }
    Some(leeway)
}

fn user(section: &Section<'_>) -> Option<Vec<(String, Mapping)>> {
    let entries = section.named_entries("user").into_iter();
    let entries: Vec<_> = entries.map(|(key, entry)| Some((key, mapping(&entry)?))).collect();
    entries.into_iter().collect()
}

fn mapping(entry: &Entry<'_>) -> Option<Mapping> {
    let mapping = entry.mapping()?;
    TextScope::of(&["claims"]).mapping(entry);
    Some(mapping)
}

fn sources(section: &Section<'_>) -> TokenSources {
    let default = TokenSources::default();
    TokenSources {
        cookie: section.get("cookie").and_then(|entry| name(&entry)),
        query: section.get("query").and_then(|entry| name(&entry)).unwrap_or(default.query),
        query_anywhere: section.flag("query_anywhere", default.query_anywhere),
    }
}

/// Reads the name of a cookie or parameter; it must need no escaping.
fn name(entry: &Entry<'_>) -> Option<String> {
    let text = entry.filled_text()?;
    if text.chars().all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c)) {
        return Some(text);
    }
    entry.refuse("must be letters, digits, `_`, `-` or `.`")
}
