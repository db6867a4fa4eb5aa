//! Patterns of routes, and warnings about public routes.

use std::sync::Arc;

use futures_util::future::{BoxFuture, FutureExt, ready};

use super::*;
use crate::api::access::DefaultAccess;
use crate::auth::{AuthError, AuthProvider, User};

/// A provider that accepts no token and declares public routes.
struct Stranger(&'static [&'static str]);

impl AuthProvider for Stranger {
    fn kind(&self) -> &str {
        "stranger"
    }

    fn verify<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<User, AuthError>> {
        ready(Err(AuthError::Foreign)).boxed()
    }

    fn public_routes(&self) -> Vec<String> {
        self.0.iter().map(|route| (*route).to_owned()).collect()
    }
}

fn strangers(public: &'static [&'static str]) -> Providers {
    let mut providers = Providers::default();
    providers.push(Arc::new(Stranger(public)));
    providers
}

fn config(auth: &str) -> Config {
    Config::parse(&format!("[auth]\n{auth}\n[auth.jwt]\n"), "c.toml").unwrap()
}

fn problems_of(auth: &str, public: &'static [&'static str]) -> Vec<String> {
    let problems = policy(&config(auth), &strangers(public), &Catalogue::default());
    problems.err().unwrap_or_default().iter().map(ToString::to_string).collect()
}

#[test]
fn patterns_without_a_route_are_problems_with_their_place() {
    let expected = [
        "c.toml:2:11: auth.public[0]: matches no route; did you mean GET /agents?",
        "c.toml:2:26: auth.public[1]: `FETCH` is not a supported method; expected one of GET, \
         POST, PUT, PATCH, DELETE",
        "c.toml:3:20: auth.rules[0].route: matches no route; did you mean POST /updates?",
        "c.toml:3:48: auth.rules[1].route: probes and links to asks are always public: this rule \
         has no effect",
    ];
    let auth = "public = [\"GET /agnets\", \"FETCH /\"]\n\
                rules = [{ route = \"POST /update\" }, { route = \"GET /livez\" }]\n";
    assert_eq!(problems_of(auth, &[]), expected);
    assert_eq!(
        problems_of("public = [\"GET /*\"]\nrules = [{ route = \"GET /*\" }]", &[]),
        [""; 0]
    );
}

#[test]
fn a_pattern_of_ui_routes_names_the_setting_that_enables_them() {
    let config = config("public = [\"GET /ui\", \"GET /uu\"]");
    let policy = policy(&config, &strangers(&[]), &Catalogue::default().without_ui());
    let problems: Vec<_> = policy.unwrap_err().iter().map(ToString::to_string).collect();
    let off =
        "c.toml:2:11: auth.public[0]: matches only /ui, which is off: set ui = true in [docs]";
    assert_eq!(problems[0], off);
    assert!(problems[1].contains("matches no route"), "{problems:?}");

    let config = self::config("public = [\"GET /console\"]");
    let policy = self::policy(&config, &strangers(&[]), &Catalogue::default().without_console());
    let off = "matches only /console, which is off: set enabled = true in [console]";
    assert!(policy.unwrap_err()[0].to_string().ends_with(off));
}

#[test]
fn unknown_names_in_patterns_are_warned_about() {
    let mut registry = Registry::default();
    let workflow = Config::parse("[workflows.pay]\nsteps = [{ id = \"a\", map = 1 }]\n", "c.toml");
    registry.workflows = workflow.unwrap().workflows;
    let config = config(
        "public = [\"GET /workflows/executions\", \"GET /workflows/gone\", \"GET /ui/x\"]\n\
         rules = [{ route = \"POST /workflows/pya/*\" }, { route = \"POST /workflows/pay/*\" }, \
         { route = \"POST /workflows/:id/execute\" }, { route = \"POST /tools/*\" }, \
         { route = \"POST /agents/a/text\" }]",
    );
    let odd = unknown_names(&config.auth, &Catalogue::default(), &registry);
    let expected = [
        "c.toml:3:20: warning: auth.rules[0].route: workflow pya is not configured; did you mean \
         pay?",
        "c.toml:3:166: warning: auth.rules[4].route: agent a is not configured",
        "c.toml:2:40: warning: auth.public[1]: workflow gone is not configured",
    ];
    assert_eq!(odd.iter().map(ToString::to_string).collect::<Vec<_>>(), expected);
}

#[test]
fn public_routes_of_a_provider_must_exist() {
    let expected = ["public route \"POST /login\" of the provider stranger: matches no route"];
    assert_eq!(problems_of("", &["POST /login"]), expected);
    let policy = policy(
        &config("default = \"private\"\nownership = { roles = [\"admin\"] }"),
        &strangers(&["GET /agents"]),
        &Catalogue::default(),
    );
    let policy = policy.unwrap();
    assert_eq!(policy.default, DefaultAccess::Private);
    assert_eq!(policy.owner_roles.as_deref(), Some(&["admin".to_owned()][..]));
    assert_eq!(policy.public, [Pattern::parse("GET /agents").unwrap()]);
}

#[test]
fn public_routes_that_change_something_are_warned_about_unless_loopback() {
    let catalogue = Catalogue::default();
    let auth = |config: &Config, providers: Providers| {
        let policy = policy(config, &providers, &catalogue).unwrap();
        Auth { providers, policy }
    };
    let warned = |config: &mut Config, host: &str, providers: Providers| {
        config.set_host(host.to_owned(), "--host");
        warning(config, &auth(config, providers), &catalogue)
    };
    let mut spec = config("");
    assert_eq!(warned(&mut spec, "127.0.0.1", strangers(&[])), None);
    let spec = warned(&mut spec, "0.0.0.0", strangers(&[])).unwrap();
    for route in [
        "POST /workflows/:id/executions/:executionId/resume",
        "POST /workflows/:id/executions/:executionId/suspend",
        "POST /updates",
        "POST /setup-observability",
    ] {
        assert!(spec.contains(route), "{route} is not in {spec}");
    }
    assert!(!spec.contains("/execute") && !spec.contains("GET"), "{spec}");

    let mut private = config("default = \"private\"");
    assert_eq!(warned(&mut private, "::", strangers(&[])), None);
    let mut opened = config("default = \"private\"\npublic = [\"POST /workflows/a/execute\"]");
    let opened = warned(&mut opened, "::", strangers(&[])).unwrap();
    assert!(opened.ends_with("without a token: POST /workflows/:id/execute"), "{opened}");
    let unprotected = warned(&mut Config::default(), "::", Providers::default()).unwrap();
    assert!(unprotected.contains("POST /workflows/:id/execute"), "{unprotected}");
}
