//! The API document of a server that is not started.

use std::io;

use greenroom_actors::registry::Registry;
use serde_json::Value;

use super::routes::{self, Assembled};
use super::{access, refused, serving, tools};
use crate::api::openapi::{Source, document};
use crate::auth::Providers;
use crate::config::Config;
use crate::web::custom::Routes;

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
