//! The routes of a configuration with their access rules, and what describes them.

use std::io;
use std::sync::Arc;

use greenroom_actors::registry::Registry;
use serde_json::Value;

use super::routes::{self, Assembled};
use super::{Registered, access, refused, serving, tools};
use crate::api::access::Pattern;
use crate::api::openapi::{Source, document};
use crate::auth::Providers;
use crate::config::{Config, ConfigProblem};
use crate::web::binding::Binding;
use crate::web::custom::Routes;
use crate::web::gate::Auth;

/// Returns the API document of the server that this configuration describes, without starting it.
/// Needs no secrets.
pub(crate) fn openapi(config: &Config) -> io::Result<Value> {
    let outbound = tools::outbound(config);
    let registry = serving(config, &outbound, &config.limits, Registry::default())?;
    let assembled = routes::assemble(config, &Routes::default());
    let Assembled { catalogue, .. } = assembled.map_err(|problems| refused(&problems))?;
    let policy = access::policy(config, &Providers::default(), &catalogue);
    let policy = policy.map_err(|problems| refused(&problems))?;
    Ok(document(Source {
        catalogue: &catalogue,
        policy: config.auth.has_provider().then_some(&policy),
        takes_api_keys: !config.auth.api_keys.is_empty(),
        registry: &registry,
    }))
}

/// Returns the problems of routes and of access to them.
pub(crate) fn check(config: &Config, registered: &Registered) -> Vec<ConfigProblem> {
    let assembled = routes::assemble(config, &registered.routes);
    let policy = assembled
        .and_then(|assembled| access::policy(config, &registered.providers, &assembled.catalogue));
    policy.err().unwrap_or_default()
}

/// Assembles the routes, their access policy and the identity providers.
pub(super) fn binding(
    config: &Config,
    registered: Providers,
    added: &Routes,
) -> Result<Binding, Vec<ConfigProblem>> {
    let Assembled { catalogue, custom } = routes::assemble(config, added)?;
    let mut policy = access::policy(config, &registered, &catalogue)?;
    policy.public.extend(added.public_routes().filter_map(|route| Pattern::parse(&route).ok()));
    let mut providers = registered;
    let configured = config.auth.providers(|name| std::env::var(name).ok());
    configured.map_err(|problem| vec![problem])?.into_iter().for_each(|it| providers.push(it));
    let auth = Auth { providers, policy };
    Ok(Binding { catalogue: Arc::new(catalogue), auth: Arc::new(auth), custom })
}
