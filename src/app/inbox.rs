//! Links to asks, as configured.

use crate::api::inbox::Links;
use crate::config::{Config, ConfigProblem, LinkBase};

/// Returns what makes and reads links to asks, if the configuration has a secret for them.
pub(super) fn links(config: &Config) -> Result<Option<Links>, ConfigProblem> {
    let key = config.inbox.link_key(|name| std::env::var(name).ok())?;
    let (base, ttl) = (config.inbox.base_url.clone(), config.inbox.link_ttl);
    Ok(key.zip(base).map(|(key, LinkBase(base_url))| Links { key, base_url, ttl }))
}
