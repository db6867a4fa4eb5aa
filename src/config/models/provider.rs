//! Models of providers.

use std::collections::BTreeMap;
use std::time::Duration;

use url::Url;

use crate::adapters::models::{ApiKey, Objects, Omitted, Provider, ProviderConfig, RetryPolicy};
use crate::config::entry::Entry;
use crate::config::names::{NameKind, Reference};
use crate::config::problem::{ConfigProblem, Spot};
use crate::config::secret::{problem_of, read_variable};
use crate::config::section::Section;
use crate::loopback::is_loopback;

use super::ModelConfig;

const FIRST_TOKEN: Duration = Duration::from_secs(30);
const TOTAL: Duration = Duration::from_secs(300);

/// Settings of a model of a provider.
#[derive(Debug, Clone, PartialEq)]
pub struct RemoteConfig {
    /// Settings of its requests.
    pub asked: ProviderConfig,
    /// The environment variable with the key.
    pub key_variable: Option<String>,
    /// Attempts and the pauses between them.
    pub retry: RetryPolicy,
    /// Time limit of a whole answer, including attempts and pauses.
    pub total: Duration,
    /// Ids of the models to use in its place, in order.
    pub fallback: Vec<String>,
    /// The place of the key in the file.
    key_spot: Spot,
    fallback_spot: Spot,
}

impl RemoteConfig {
    pub(super) fn read(
        provider: &'static Provider,
        section: Section<'_>,
        references: &mut Vec<Reference>,
    ) -> Option<Self> {
        let has_address = section.has("base_url");
        let base_url = section.get("base_url").and_then(|entry| base_url(&entry));
        let model = section.required("model").and_then(|entry| entry.filled_text());
        let key = section.get("api_key");
        let key_spot = key.as_ref().map_or_else(|| section.place.spot(), |it| it.place.spot());
        let key_variable = key.as_ref().and_then(|entry| variable(entry, provider));
        if let (None, Some(variable), false) = (&key, provider.key_variable, has_address) {
            let message = format!("key `api_key` is missing, e.g. api_key = \"secret:{variable}\"");
            section.place.refuse(message);
        }
        let retry = section.section("retry").map(read_retry).unwrap_or_default();
        let (first_token, total) =
            section.section("timeouts").map_or((FIRST_TOKEN, TOTAL), read_timeouts);
        let fallback = section.get("fallback");
        let fallback_spot =
            fallback.as_ref().map_or_else(|| section.place.spot(), |it| it.place.spot());
        let fallback = fallback.and_then(|entry| read_fallback(&entry, references));
        let omit = section
            .get_renamed("unsupported_options", Some("omit"))
            .and_then(|entry| entry.items())
            .unwrap_or_default();
        let omit = omit.iter().filter_map(unsupported_option).collect();
        let objects = section
            .get_renamed("object_mode", Some("objects"))
            .and_then(|entry| entry.one_of(&Objects::NAMES));
        let stream = section.flag("stream", true);
        section.close();
        let objects = objects.unwrap_or(provider.objects);
        let model = model?;
        let asked =
            ProviderConfig { provider, base_url, model, stream, objects, first_token, omit };
        let fallback = fallback.unwrap_or_default();
        Some(Self { asked, key_variable, retry, total, fallback, key_spot, fallback_spot })
    }

    /// Returns the key from the environment; `None` if the variable is not set.
    pub fn key(&self, environment: impl Fn(&str) -> Option<String>) -> Option<ApiKey> {
        ApiKey::new(&environment(self.key_variable.as_ref()?)?)
    }

    pub(in crate::config) fn check_key(
        &self,
        environment: impl Fn(&str) -> Option<String>,
    ) -> Option<ConfigProblem> {
        let variable = self.key_variable.as_ref()?;
        if self.key(&environment).is_some() || self.needs_no_key() {
            return None;
        }
        let problem =
            problem_of(variable, environment, |_| Some("contains characters that no key may have"));
        problem.map(|problem| self.key_spot.error(problem))
    }

    /// Returns true for servers on this machine, which seldom need a key.
    fn needs_no_key(&self) -> bool {
        match &self.asked.base_url {
            Some(url) => is_loopback(url),
            None => self.asked.provider.key_variable.is_none(),
        }
    }
}

fn base_url(entry: &Entry<'_>) -> Option<Url> {
    let mut url = entry.web_address()?;
    if url.query().is_some() || url.fragment().is_some() {
        return entry.refuse("must end with a path");
    }
    if !url.path().ends_with('/') {
        url.set_path(&format!("{}/", url.path()));
    }
    Some(url)
}

/// Reads the name of a key. Errors do not repeat the text, which may be the key itself.
fn variable(entry: &Entry<'_>, provider: &Provider) -> Option<String> {
    read_variable(entry, provider.key_variable.unwrap_or("MY_KEY"))
}

fn read_retry(section: Section<'_>) -> RetryPolicy {
    let default = RetryPolicy::default();
    let factor = section.get("factor").and_then(|entry| entry.number(1.0..=100.0));
    let policy = RetryPolicy {
        attempts: section.integer("attempts", 1..=100, default.attempts),
        delay: section.duration("delay", default.delay),
        factor: factor.unwrap_or(default.factor),
        max_delay: section.duration("max_delay", default.max_delay),
    };
    section.close();
    policy
}

fn read_timeouts(section: Section<'_>) -> (Duration, Duration) {
    let first_token = section.duration("first_token", FIRST_TOKEN);
    let total = section.duration("total", TOTAL);
    section.close();
    (first_token, total)
}

fn read_fallback(entry: &Entry<'_>, references: &mut Vec<Reference>) -> Option<Vec<String>> {
    let items = entry.items()?;
    Some(items.iter().filter_map(|item| item.reference(NameKind::Model, references)).collect())
}

/// Reads an option by its name in the file (`top_p`) or in requests (`topP`).
fn unsupported_option(entry: &Entry<'_>) -> Option<Omitted> {
    let written = entry.text()?;
    let mut name = String::new();
    for character in written.chars() {
        if character.is_ascii_uppercase() {
            name.push('_');
        }
        name.push(character.to_ascii_lowercase());
    }
    let found = Omitted::NAMES.into_iter().find(|(known, _)| *known == name);
    if found.is_none() {
        entry.refuse_name(&name, &Omitted::NAMES.map(|(known, _)| known));
    }
    found.map(|(_, omitted)| omitted)
}

/// Returns errors for models that are their own fallback, directly or through others.
pub(crate) fn fallback_cycles(models: &BTreeMap<String, ModelConfig>) -> Vec<ConfigProblem> {
    let circular = models.iter().filter_map(|(id, model)| match model {
        ModelConfig::Remote(remote) => {
            let path = path_back(models, id, remote)?.join(", then ");
            Some(remote.fallback_spot.error(format!("leads back to {id}: {path}")))
        }
        ModelConfig::Mock(_) => None,
    });
    circular.collect()
}

/// Returns the fallbacks on a path from a model back to itself.
fn path_back<'a>(
    models: &'a BTreeMap<String, ModelConfig>,
    start: &str,
    remote: &'a RemoteConfig,
) -> Option<Vec<&'a str>> {
    let mut paths: Vec<Vec<&str>> = remote.fallback.iter().map(|id| vec![id.as_str()]).collect();
    let mut seen = std::collections::BTreeSet::new();
    while let Some(path) = paths.pop() {
        let last = path.last().copied()?;
        if last == start {
            return Some(path);
        }
        if let (true, Some(ModelConfig::Remote(next))) = (seen.insert(last), models.get(last)) {
            paths.extend(next.fallback.iter().map(|id| [&path[..], &[id.as_str()]].concat()));
        }
    }
    None
}
