//! Access to routes: the policy of the configuration and of Rust code, and warnings about it.

use greenroom_actors::registry::Registry;

use super::{Registered, routes};
use crate::api::access::{AccessPolicy, AccessRule, Pattern};
use crate::api::catalogue::{Access, Catalogue, Route, RouteName};
use crate::auth::Providers;
use crate::config::{AuthConfig, Config, ConfigProblem, RoutePattern};
use crate::nearest::nearest;
use crate::web::gate::Auth;

/// Builds the access policy, or returns the problems of its patterns with their places.
/// `registered` are the identity providers of Rust code, which may declare public routes.
pub(crate) fn policy(
    config: &Config,
    registered: &Providers,
    catalogue: &Catalogue,
) -> Result<AccessPolicy, Vec<ConfigProblem>> {
    let auth = &config.auth;
    let mut reading = Reading { catalogue, problems: Vec::new() };
    let opened = registered.public_routes().map(|(kind, route)| {
        RoutePattern::new(&route, &format!("public route {route:?} of the provider {kind}"))
    });
    let public = opened.chain(auth.public.iter().cloned());
    let policy = AccessPolicy {
        default: auth.default,
        public: public.filter_map(|it| reading.pattern(&it, Pattern::opens_any)).collect(),
        rules: auth
            .rules
            .iter()
            .filter_map(|rule| {
                let roles = rule.roles.as_slice().into();
                Some(AccessRule { route: reading.rule(&rule.route)?, roles })
            })
            .collect(),
        owner_roles: auth.owner_roles.as_deref().map(Into::into),
    };
    if reading.problems.is_empty() { Ok(policy) } else { Err(reading.problems) }
}

struct Reading<'a> {
    catalogue: &'a Catalogue,
    problems: Vec<ConfigProblem>,
}

impl Reading<'_> {
    /// Parses a pattern. A pattern that matches no route is a problem.
    fn pattern(
        &mut self,
        written: &RoutePattern,
        is_about_any: fn(&Pattern, &Catalogue) -> bool,
    ) -> Option<Pattern> {
        let problem = match Pattern::parse(&written.text) {
            Ok(pattern) if is_about_any(&pattern, self.catalogue) => return Some(pattern),
            Ok(pattern) if is_about_any(&pattern, &Catalogue::default()) => {
                let off = match written.text.contains("/console") {
                    true => "/console, which is off: set enabled = true in [console]",
                    false => "/ui, which is off: set ui = true in [docs]",
                };
                written.problem(&format!("matches only {off}"), None)
            }
            Ok(_) => {
                let routes: Vec<_> = self.catalogue.rows().iter().map(Route::to_string).collect();
                let meant = nearest(&written.text, routes.iter().map(String::as_str));
                written.problem("matches no route", meant)
            }
            Err(message) => written.problem(&message, None),
        };
        self.problems.push(problem);
        None
    }

    /// Parses the pattern of a rule, which must restrict a route.
    fn rule(&mut self, written: &RoutePattern) -> Option<Pattern> {
        let pattern = self.pattern(written, Pattern::closes_any)?;
        if pattern.is_about_open_routes_alone(self.catalogue) {
            let message = "probes and links to asks are always public: this rule has no effect";
            self.problems.push(written.problem(message, None));
        }
        Some(pattern)
    }
}

/// Returns warnings about patterns that name an unknown workflow, agent or tool: a misspelt rule
/// protects nothing. Not errors, because executions outlive their workflows.
pub(crate) fn unknown_names(
    auth: &AuthConfig,
    catalogue: &Catalogue,
    registry: &Registry,
) -> Vec<ConfigProblem> {
    let patterns = auth.rules.iter().map(|rule| &rule.route).chain(&auth.public);
    let unknown = patterns.filter_map(|pattern| {
        let (_, path) = pattern.text.split_once(' ')?;
        let mut segments = path.trim().split('/').skip(1);
        let (what, name) = (segments.next()?, segments.next()?);
        let is_written = |row: &Route| row.path.split('/').nth(2) == Some(name);
        if name.starts_with(':') || name == "*" || catalogue.rows().iter().any(is_written) {
            return None;
        }
        let known: Vec<&str> = match what {
            "workflows" => registry.workflows.keys().map(String::as_str).collect(),
            "agents" => registry.agents.keys().map(String::as_str).collect(),
            "tools" => registry.tools.keys().map(String::as_str).collect(),
            _ => return None,
        };
        let is_known = known.contains(&name);
        let meant = nearest(name, known);
        let message = || format!("{} {name} is not configured", what.trim_end_matches('s'));
        (!is_known).then(|| pattern.warning(message(), meant))
    });
    unknown.collect()
}

/// Returns a warning if suspend or resume need no token although tokens are checked. This is the
/// default, also behind a proxy.
pub(crate) fn open_answers(config: &Config, registered: &Registered) -> Option<ConfigProblem> {
    let assembled = routes::assemble(config, &registered.routes).ok()?;
    let policy = policy(config, &registered.providers, &assembled.catalogue).ok()?;
    if !config.auth.has_provider() && registered.providers.is_empty() {
        return None;
    }
    let rows = assembled.catalogue.rows().iter();
    let answers = rows
        .filter(|row| matches!(row.name, RouteName::SuspendExecution | RouteName::ResumeExecution));
    let open = answers.filter(|row| policy.gate(row).is_open_by_default());
    let open: Vec<_> = open.map(Route::to_string).collect();
    let message = format!(
        "tokens are checked, but not for {}: any client can answer an approval whose step has no `to`; set \
         default = \"private\" or rules for these routes in [auth], or list them in `public` if \
         that is intended",
        open.join(" and ")
    );
    (!open.is_empty()).then(|| config.auth.provider_spot().warning(message))
}

/// Returns a warning that names the public routes that change something, if the server is reachable
/// from other machines.
pub(crate) fn warning(config: &Config, auth: &Auth, catalogue: &Catalogue) -> Option<String> {
    if config.server.is_loopback() {
        return None;
    }
    let is_open = |row: &&Route| {
        row.method.changes()
            && row.access != Access::Open
            && (auth.providers.is_empty() || auth.policy.gate(row).is_open_somewhere())
    };
    let open: Vec<_> = catalogue.rows().iter().filter(is_open).map(Route::to_string).collect();
    let host = &config.server.host;
    (!open.is_empty())
        .then(|| format!("any client of {host} may call, without a token: {}", open.join(", ")))
}

#[cfg(test)]
mod tests;
