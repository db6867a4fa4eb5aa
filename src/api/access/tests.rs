//! The default table, and configured exceptions to it.

use serde_json::json;

use super::*;
use crate::api::catalogue::{Catalogue, ROUTES};

fn pattern(text: &str) -> Pattern {
    Pattern::parse(text).unwrap()
}

fn policy(default: DefaultAccess, public: &[&str], rules: &[(&str, &[&str])]) -> AccessPolicy {
    let rule = |(route, roles): &(&str, &[&str])| AccessRule {
        route: pattern(route),
        roles: roles.iter().map(|role| (*role).to_owned()).collect(),
    };
    AccessPolicy {
        default,
        public: public.iter().map(|text| pattern(text)).collect(),
        rules: rules.iter().map(rule).collect(),
        owner_roles: None,
    }
}

fn gate(policy: &AccessPolicy, route: &str) -> Gate {
    policy.gate(ROUTES.iter().find(|row| row.to_string() == route).unwrap())
}

#[test]
fn the_default_table_is_that_of_the_specification() {
    let protected = |policy: &AccessPolicy| {
        let rows = ROUTES.iter().filter(|row| policy.gate(row).needs_token(&row.path));
        rows.map(ToString::to_string).collect::<Vec<_>>()
    };
    let spec = protected(&AccessPolicy::default());
    for route in [
        "POST /agents/:id/text",
        "POST /agents/:id/stream",
        "POST /agents/:id/object",
        "POST /agents/:id/stream-object",
        "POST /agents/:id/chat",
        "POST /workflows/:id/execute",
        "POST /workflows/:id/stream",
        "POST /workflows/:id/executions/:executionId/cancel",
        "POST /tools/:name/execute",
        "GET /api/memory/search",
        "DELETE /api/memory/users/:userId",
    ] {
        assert!(spec.iter().any(|row| row == route), "{route} is public");
    }
    for route in [
        "GET /",
        "GET /doc",
        "GET /ui",
        "GET /agents",
        "GET /agents/:id",
        "GET /agents/:id/history",
        "GET /workflows",
        "GET /workflows/:id",
        "POST /workflows/:id/executions/:executionId/suspend",
        "POST /workflows/:id/executions/:executionId/resume",
        "GET /workflows/:id/executions/:executionId/state",
        "GET /updates",
        "POST /updates",
        "POST /setup-observability",
        "GET /ws",
        "GET /observability/status",
        "GET /observability/traces",
        "GET /observability/traces/:traceId",
        "GET /observability/traces/:traceId/logs",
        "GET /observability/spans/:spanId",
        "GET /observability/spans/:spanId/logs",
        "GET /observability/logs",
        "GET /api/logs",
        "GET /ws/logs",
        "GET /ws/observability",
        "GET /livez",
    ] {
        assert!(!spec.iter().any(|row| row == route), "{route} is protected");
    }
    let private = protected(&policy(DefaultAccess::Private, &[], &[]));
    let open: Vec<_> =
        ROUTES.iter().map(ToString::to_string).filter(|row| !private.contains(row)).collect();
    // probes, pages that reveal nothing about the server, links, which are credentials, and where
    // clients get a token
    let links = ["GET /inbox/link/:token", "POST /inbox/link/:token"];
    let pages = [
        "GET /",
        "GET /ui",
        "GET /ui/:file",
        "GET /console",
        "GET /console/assets/:file",
        "GET /console/*",
    ];
    let probes = ["GET /livez", "GET /readyz"];
    let metadata = [
        "GET /.well-known/oauth-protected-resource/mcp",
        "GET /.well-known/oauth-protected-resource/mcp/:name/mcp",
    ];
    assert_eq!(open, [&links[..], &pages, &probes, &metadata].concat());
}

type Texts = &'static [&'static str];

/// Default, public patterns, rules, route, path, and whether it needs a token.
type Row = (DefaultAccess, Texts, Texts, &'static str, &'static str, bool);

#[test]
fn public_patterns_open_and_rules_close() {
    use DefaultAccess::{Private, Spec};
    let (execute, resume) =
        ("POST /workflows/:id/execute", "POST /workflows/:id/executions/:executionId/resume");
    let rows: [Row; 17] = [
        (Private, &["GET /agents"], &[], "GET /agents", "/agents", false),
        (Private, &["GET /agents"], &[], "GET /agents/:id", "/agents/a", true),
        (Private, &["GET /agents/*"], &[], "GET /agents/:id", "/agents/a", false),
        (Private, &["GET /agents/*"], &[], "GET /agents", "/agents", true),
        (Spec, &["POST /workflows/noop3/execute"], &[], execute, "/workflows/noop3/execute", false),
        (
            Spec,
            &["POST /workflows/noop3/execute"],
            &[],
            execute,
            "/workflows/noop%33/execute",
            false,
        ),
        (Spec, &["POST /workflows/noop3/execute"], &[], execute, "/workflows/other/execute", true),
        (Spec, &["POST /workflows/noop3/execute"], &[], execute, "/workflows/%ff/execute", true),
        (Spec, &[], &["POST /workflows/*"], resume, "/workflows/a/executions/b/resume", true),
        (Spec, &[], &["POST /workflows/pay/*"], resume, "/workflows/a/executions/b/resume", false),
        (
            Spec,
            &[],
            &["POST /workflows/pay/*"],
            resume,
            "/workflows/p%61y/executions/b/resume",
            true,
        ),
        // Patterns that open match narrowly, patterns that close widely.
        (Private, &["GET /workflows/:id"], &[], "GET /workflows/:id", "/workflows/a", false),
        (
            Private,
            &["GET /workflows/:id"],
            &[],
            "GET /workflows/executions",
            "/workflows/executions",
            true,
        ),
        (
            Spec,
            &[],
            &["GET /workflows/:id"],
            "GET /workflows/executions",
            "/workflows/executions",
            true,
        ),
        // A segment that cannot be decoded opens nothing and is always closed.
        (
            Spec,
            &[],
            &["POST /workflows/pay/*"],
            resume,
            "/workflows/%%370ay/executions/b/resume",
            true,
        ),
        (Spec, &["POST /workflows/pay/execute"], &[], execute, "/workflows/%%370ay/execute", true),
        // A rule overrides a public pattern.
        (
            Spec,
            &["POST /workflows/*"],
            &["POST /workflows/:any/execute"],
            execute,
            "/workflows/a/execute",
            true,
        ),
    ];
    for (default, public, rules, route, path, expected) in rows {
        let rules: Vec<(&str, &[&str])> = rules.iter().map(|route| (*route, &[][..])).collect();
        let gate = gate(&policy(default, public, &rules), route);
        assert_eq!(gate.needs_token(path), expected, "{default:?} {public:?} {rules:?} {path}");
    }
}

#[test]
fn one_segment_is_not_everything_below() {
    let files = Route { path: "/files/*".into(), ..ROUTES[0].clone() };
    let rows = [
        ("POST /files/*", true),
        ("POST /*", true),
        // `:any` matches variable segments of a route, not fixed ones.
        ("POST /:any/*", false),
        ("POST /files/:name", false),
        ("POST /files/a", false),
        ("POST /files/a/*", false),
        ("POST /files", false),
    ];
    for (text, is_open) in rows {
        let gate = policy(DefaultAccess::Private, &[text], &[]).gate(&files);
        assert_eq!(!gate.needs_token("/files/a"), is_open, "{text}");
        assert_eq!(!gate.needs_token("/files/a/b"), is_open, "{text}");
    }
}

#[test]
fn every_matching_rule_requires_one_of_its_roles() {
    let rules: [(&str, &[&str]); 3] = [
        ("POST /workflows/*", &[]),
        ("POST /workflows/:id/execute", &["staff", "admin"]),
        ("POST /workflows/pay/execute", &["admin"]),
    ];
    let gate = gate(&policy(DefaultAccess::Spec, &[], &rules), "POST /workflows/:id/execute");
    let user = |role: &str| {
        let profile = json!({ "roles": [role] });
        User::new(profile.as_object().cloned().unwrap()).unwrap()
    };
    let missing = |path, role| gate.missing_roles(path, &user(role)).map(<[String]>::to_vec);
    assert_eq!(missing("/workflows/a/execute", "staff"), None);
    assert_eq!(missing("/workflows/a/execute", "guest").unwrap(), ["staff", "admin"]);
    assert_eq!(missing("/workflows/pay/execute", "staff").unwrap(), ["admin"]);
    assert_eq!(missing("/workflows/pay/execute", "admin"), None);
}

#[test]
fn rules_alone_say_what_is_unmet() {
    let rules: [(&str, &[&str]); 2] =
        [("POST /tools/mcp/open/accept", &[]), ("POST /tools/mcp/files/*", &["staff", "admin"])];
    let policy = policy(DefaultAccess::Private, &[], &rules);
    let gate = gate(&policy, "POST /tools/mcp/:server/accept");
    let user = |role: &str| {
        let profile = json!({ "roles": [role] });
        User::new(profile.as_object().cloned().unwrap()).unwrap()
    };
    let unmet = |server: &str, user: Option<User>| {
        let path = format!("/tools/mcp/{server}/accept");
        gate.unmet(&path, user.as_ref()).map(<[String]>::to_vec)
    };
    let roles = || Some(vec!["staff".to_owned(), "admin".to_owned()]);
    for (server, caller, expected) in [
        ("other", None, None),
        ("other", Some("guest"), None),
        ("open", None, Some(Vec::new())),
        ("open", Some("guest"), None),
        ("files", None, roles()),
        ("files", Some("guest"), roles()),
        ("files", Some("admin"), None),
    ] {
        assert_eq!(unmet(server, caller.map(user)), expected, "{server} {caller:?}");
    }
}

#[test]
fn routes_of_user_data_are_protected_when_data_is_private() {
    let mut policy = AccessPolicy { owner_roles: Some(Arc::from([])), ..AccessPolicy::default() };
    let state = "GET /workflows/:id/executions/:executionId/state";
    assert!(gate(&policy, state).needs_token("/workflows/a/executions/b/state"));
    assert!(gate(&policy, "GET /ws/observability").needs_token("/ws/observability"));
    assert!(!gate(&policy, "GET /agents").needs_token("/agents"));
    policy.public.push(pattern("GET /workflows/*"));
    assert!(!gate(&policy, state).needs_token("/workflows/a/executions/b/state"));
}

#[test]
fn patterns_are_checked() {
    for good in ["GET /", "POST /a/:b/c", "PUT /a/*", "DELETE /*"] {
        assert_eq!(pattern(good).to_string(), good);
    }
    for bad in [
        "", "GET", "/a", "get /a", "FETCH /a", "GET a", "GET /a*", "GET /*/b", "GET /a b",
        "GET /%61",
    ] {
        assert!(Pattern::parse(bad).is_err(), "{bad:?} was accepted");
    }
}

#[test]
fn a_pattern_without_a_route_is_detected() {
    let catalogue = Catalogue::default();
    let rows = [
        ("GET /agents", true, false),
        ("GET /agent", false, true),
        ("POST /agents", false, true),
        // a segment is never empty
        ("GET /agents/", false, true),
        ("GET /workflows//executions", false, true),
        ("GET /nope/*", false, true),
        ("POST /open/add", false, true),
        ("GET /livez", true, true),
        ("GET /inbox/link/:token", true, true),
        ("GET /*", true, false),
    ];
    for (text, closes_any, is_powerless) in rows {
        let pattern = pattern(text);
        let found =
            (pattern.closes_any(&catalogue), pattern.is_about_open_routes_alone(&catalogue));
        assert_eq!(found, (closes_any, is_powerless), "{text}");
    }
}
