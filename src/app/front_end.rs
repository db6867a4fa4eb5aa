//! Configuration of the front end, with what the environment and the machine decide.

use std::sync::Arc;

use url::Url;

use crate::api::faces::mcp::{Offer, Protection, ServedFace, WELL_KNOWN};
use crate::api::inbox::Links;
#[cfg(feature = "ui")]
use crate::config::{Accent, ConsoleConfig, LoginUrl};
use crate::config::{Config, ConfigProblem, LinkBase, McpFace};
#[cfg(feature = "ui")]
use crate::web::console::ConsoleSettings;
use crate::web::settings::WebConfig;

use super::{capacity, web_config};

/// Returns the configuration; that of the routes and of the running server is still missing.
pub(super) fn prepare(config: &Config) -> Result<WebConfig, ConfigProblem> {
    let admission = capacity::prepare(&config.limits);
    let (links, mcp) = (links(config)?, served_faces(config)?);
    Ok(WebConfig { links, mcp, admission, ..web_config(config) })
}

/// Returns the faces for clients of MCP, with their keys.
fn served_faces(config: &Config) -> Result<Vec<Arc<ServedFace>>, ConfigProblem> {
    let served = |face: &McpFace| {
        let key = face.key(|name| std::env::var(name).ok())?;
        let McpFace { name, workflows, agents, tools, .. } = face.clone();
        Ok(Arc::new(ServedFace {
            name,
            offer: Offer { workflows, agents, tools },
            has_resources: face.has_resources,
            task_after: face.task_after,
            subscriptions_max: face.subscriptions_max,
            protection: protection(config, face.url.clone()),
            key,
        }))
    };
    config.faces.mcp.iter().map(served).collect()
}

/// Returns what makes and reads links to asks, if the configuration has a secret for them.
fn links(config: &Config) -> Result<Option<Links>, ConfigProblem> {
    let key = config.inbox.link_key(|name| std::env::var(name).ok())?;
    let (base, ttl) = (config.inbox.base_url.clone(), config.inbox.link_ttl);
    Ok(key.zip(base).map(|(key, LinkBase(base_url))| Links { key, base_url, ttl }))
}

/// Returns where clients of a face get a token, if the configuration says that.
fn protection(config: &Config, url: Option<Url>) -> Option<Protection> {
    let issuers = issuers(config);
    let url = url.filter(|_| !issuers.is_empty())?;
    let mut metadata = url.clone();
    metadata.set_path(&format!("{WELL_KNOWN}{}", url.path()));
    Some(Protection { resource: url.into(), metadata: metadata.into(), issuers })
}

#[cfg(feature = "jwt")]
fn issuers(config: &Config) -> Vec<String> {
    config.auth.jwt.as_ref().map(|jwt| jwt.issuer.clone()).unwrap_or_default()
}

#[cfg(not(feature = "jwt"))]
fn issuers(_: &Config) -> Vec<String> {
    Vec::new()
}

/// Returns what the pages of the console show of the configuration.
#[cfg(feature = "ui")]
pub(super) fn console_settings(console: &ConsoleConfig) -> ConsoleSettings {
    ConsoleSettings {
        is_read_only: console.read_only,
        title: console.title.clone(),
        accent: console.accent.as_ref().map(|Accent(colour)| colour.clone()),
        login_url: console.login_url.as_ref().map(|LoginUrl(url)| url.clone()),
    }
}
