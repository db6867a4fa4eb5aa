//! Pages of a private server, with and without a token.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

use super::{Site, bearer, guarded, token};

const PRIVATE: &str = "default = \"private\"";
/// Names in the tests' configuration.
const NAMES: [&str; 4] = ["approval", "assistant", "add_three", "/workflows"];

fn first_page(site: &Site, token: Option<&str>) -> support::client::Reply {
    let token = token.map(bearer);
    let headers: Vec<_> = token.iter().map(|token| ("authorization", token.as_str())).collect();
    let reply = site.send("GET", "/", &headers, None);
    assert_eq!(reply.status, 200);
    reply
}

#[test]
fn a_private_landing_page_shows_only_a_form_without_a_token() {
    let site = guarded(PRIVATE);
    for token in [None, Some("nonsense")] {
        let reply = first_page(&site, token);
        let text = reply.text();
        for name in NAMES.iter().chain(&[env!("CARGO_PKG_VERSION")]) {
            assert!(!text.contains(name), "{name} is shown to {token:?}");
        }
        assert!(text.contains("<form id=\"sign-in\">") && text.contains("type=\"password\""));
        assert_eq!(reply.header("cache-control"), Some("no-store"));
        // the browser may run this script only, and submit the form nowhere
        let (_, script) = text.split_once("<script>").unwrap();
        let (script, _) = script.split_once("</script>").unwrap();
        let digest = STANDARD.encode(Sha256::digest(script));
        let policy = reply.header("content-security-policy").unwrap();
        assert!(policy.contains(&format!("script-src 'sha256-{digest}'")), "{policy}");
        assert!(policy.contains("form-action 'none'"), "{policy}");
    }
    let page = site.get("/ui");
    assert_eq!(page.status, 200);
    for file in ["ui.js", "ui.css", "swagger-ui-bundle.js", "favicon-32x32.png"] {
        assert_eq!(site.get(&format!("/ui/{file}")).status, 200, "{file}");
    }
    assert!(!NAMES.iter().any(|name| page.text().contains(name)));
    assert_eq!(site.get("/doc").status, 401);
}

#[test]
fn the_landing_page_lists_everything_with_a_token() {
    let ann = token("ann", &[]);
    let site = guarded(PRIVATE);
    let reply = first_page(&site, Some(&ann));
    let text = reply.text();
    assert!(["approval", "assistant"].iter().all(|name| text.contains(name)), "{text}");
    assert!(!text.contains("<script") && !text.contains(&ann));
    assert_eq!(reply.header("cache-control"), Some("no-store"));
    let headers = [("authorization", &*bearer(&ann))];
    assert_eq!(site.send("GET", "/doc", &headers, None).status, 200);
}

#[test]
fn an_operator_may_show_everything_or_nothing() {
    let shown = guarded("default = \"private\"\npublic = [\"GET /\"]");
    assert!(first_page(&shown, None).text().contains("approval"));
    assert!(first_page(&guarded(""), None).text().contains("approval"), "not private");
    let closed = guarded("default = \"private\"\nrules = [{ route = \"GET /\" }]");
    assert_eq!(closed.get("/").status, 401);
}
