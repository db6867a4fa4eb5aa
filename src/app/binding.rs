//! The routes of a configuration with their access rules.

use std::sync::Arc;

use super::routes::{self, Assembled};
use super::{Registered, access};
use crate::api::access::Pattern;
use crate::auth::Providers;
use crate::config::{Config, ConfigProblem};
use crate::web::binding::Binding;
use crate::web::custom::Routes;
use crate::web::gate::Auth;

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
