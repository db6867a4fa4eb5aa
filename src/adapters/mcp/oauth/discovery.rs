//! The address that gives tokens for a server: found by the metadata of the server (RFC 9728) and of its
//! authorization server (RFC 8414, OpenID Connect Discovery).

use greenroom_actors::domain::foreign;
use serde_json::Value;
use url::Url;

use super::challenge::{Challenge, scopes_of};
use super::fetch::{Fetcher, address};
use crate::adapters::mcp::settings::SecretIn;

/// Well-known path of the metadata of a server.
const OF_RESOURCE: &str = "/.well-known/oauth-protected-resource";
/// Well-known paths of the metadata of an authorization server.
const OF_ISSUER: &str = "/.well-known/oauth-authorization-server";
const OF_OPENID: &str = "/.well-known/openid-configuration";

/// Address that gives tokens, and what a request for one has to say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Endpoint {
    pub(super) url: Url,
    /// The server for which the tokens are.
    pub(super) resource: String,
    /// All scopes of the server.
    pub(super) scopes: Vec<String>,
    pub(super) secret_in: SecretIn,
}

/// Finds the address. The error says what is missing or wrong, without addresses.
pub(super) async fn find(
    fetcher: &Fetcher,
    server: &Url,
    challenge: &Challenge,
) -> Result<Endpoint, String> {
    let what = "the metadata of the server (oauth-protected-resource)";
    let addresses = resource_addresses(server, challenge)?;
    let document = document(fetcher, &addresses, what).await?;
    let Resource { resource, issuer, scopes } = resource_of(&document, server)?;
    let what = "the metadata of its authorization server";
    let place = address(&issuer).map_err(|why| format!("the authorization server {why}"))?;
    if place.query().is_some() {
        return Err("the authorization server has an address with a query".to_owned());
    }
    let document = self::document(fetcher, &issuer_addresses(&place), what).await?;
    let (url, secret_in) = endpoint_of(&document, &issuer)?;
    Ok(Endpoint { url, resource, scopes, secret_in })
}

/// Fetches the first of these documents that is there.
async fn document(fetcher: &Fetcher, addresses: &[Url], what: &str) -> Result<Value, String> {
    for url in addresses {
        let host = url.host_str().unwrap_or_default();
        let failed = |why: &str| format!("{what} at {host}: {why}");
        let answer = fetcher.get(url).await.map_err(|why| failed(&why))?;
        match answer.status {
            200 => {
                let read = foreign::from_slice(&answer.body).ok();
                return read
                    .filter(Value::is_object)
                    .ok_or_else(|| failed("it is not a JSON object"));
            }
            400..500 => {}
            300..400 => return Err(failed("it is a redirect, which is not followed")),
            status => return Err(failed(&format!("it answered with status {status}"))),
        }
    }
    Err(format!("{what} is missing; set `oauth.token_url`"))
}

/// Returns where the metadata of a server may be: where its refusal says, else at well-known paths.
fn resource_addresses(server: &Url, challenge: &Challenge) -> Result<Vec<Url>, String> {
    let Some(named) = &challenge.resource_metadata else {
        let own = server.path().trim_end_matches('/');
        let paths = [format!("{OF_RESOURCE}{own}"), OF_RESOURCE.to_owned()];
        return Ok(at(server, &paths[usize::from(own.is_empty())..]));
    };
    let named = server.join(named).ok().filter(|named| named.origin() == server.origin());
    let foreign = "its refusal names metadata at another host (resource_metadata)";
    named.map(|named| vec![named]).ok_or_else(|| foreign.to_owned())
}

/// Returns where the metadata of an authorization server may be.
fn issuer_addresses(issuer: &Url) -> Vec<Url> {
    let own = issuer.path().trim_end_matches('/');
    let paths =
        [format!("{OF_ISSUER}{own}"), format!("{OF_OPENID}{own}"), format!("{own}{OF_OPENID}")];
    at(issuer, &paths[..if own.is_empty() { 2 } else { 3 }])
}

fn at(base: &Url, paths: &[String]) -> Vec<Url> {
    let at = |path: &String| {
        let mut url = base.clone();
        url.set_path(path);
        url.set_query(None);
        url.set_fragment(None);
        url
    };
    paths.iter().map(at).collect()
}

/// The metadata of a server.
#[derive(Debug, PartialEq, Eq)]
struct Resource {
    resource: String,
    issuer: String,
    scopes: Vec<String>,
}

/// Reads the metadata of a server: it has to be about this one.
fn resource_of(document: &Value, server: &Url) -> Result<Resource, String> {
    let Some(resource) = document["resource"].as_str() else {
        return Err("the metadata of the server has no `resource`".to_owned());
    };
    if !Url::parse(resource).is_ok_and(|resource| covers(&resource, server)) {
        return Err("the metadata of the server is about another one (`resource`)".to_owned());
    }
    let Some(issuer) = document["authorization_servers"][0].as_str() else {
        return Err("the metadata of the server names no authorization server".to_owned());
    };
    let scopes = document["scopes_supported"].as_array().into_iter().flatten();
    let scopes: Vec<_> = scopes.filter_map(Value::as_str).collect();
    Ok(Resource {
        resource: resource.to_owned(),
        issuer: issuer.to_owned(),
        scopes: scopes_of(&scopes.join(" ")),
    })
}

/// Returns true if a resource is the server, or has it below its path.
fn covers(resource: &Url, server: &Url) -> bool {
    let own = resource.path().trim_end_matches('/');
    let rest = server.path().strip_prefix(own);
    let is_below = rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    let is_plain = resource.query().is_none() || resource.query() == server.query();
    let has_user = !resource.username().is_empty() || resource.password().is_some();
    resource.origin() == server.origin()
        && is_below
        && is_plain
        && !has_user
        && resource.fragment().is_none()
}

/// Returns the name of a server for which a token is wanted without its metadata: its address without
/// query, which may be confidential.
pub(super) fn resource_name(server: &Url) -> String {
    let mut resource = server.clone();
    resource.set_query(None);
    resource.set_fragment(None);
    match resource.path() {
        "/" => resource.as_str().trim_end_matches('/').to_owned(),
        _ => resource.into(),
    }
}

/// Reads the metadata of an authorization server: it has to be that of this issuer.
fn endpoint_of(document: &Value, issuer: &str) -> Result<(Url, SecretIn), String> {
    let wrong = |why: &str| Err(format!("the metadata of its authorization server {why}"));
    if document["issuer"].as_str() != Some(issuer) {
        return wrong("is that of another one (`issuer`)");
    }
    let Some(url) = document["token_endpoint"].as_str() else {
        return wrong("has no `token_endpoint`");
    };
    let url = match address(url) {
        Ok(url) => url,
        Err(why) => return wrong(&format!("has a `token_endpoint` that {why}")),
    };
    let lists = |member: &str, name: &str| {
        let listed = document.get(member)?.as_array()?;
        Some(listed.iter().any(|listed| listed == name))
    };
    if lists("grant_types_supported", "client_credentials") == Some(false) {
        return wrong("does not list `client_credentials` (`grant_types_supported`)");
    }
    let takes = |method| lists("token_endpoint_auth_methods_supported", method);
    match (takes("client_secret_basic"), takes("client_secret_post")) {
        (Some(true) | None, _) => Ok((url, SecretIn::Header)),
        (_, Some(true)) => Ok((url, SecretIn::Body)),
        _ => wrong("lists no way to send a secret (`token_endpoint_auth_methods_supported`)"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    #[test]
    fn metadata_is_where_the_refusal_says_or_at_well_known_paths() {
        let root = "https://a.example/.well-known/oauth-protected-resource";
        let below = format!("{root}/mcp/b");
        for (server, named, expected) in [
            ("https://a.example/mcp/b?key=1", None, vec![below.as_str(), root]),
            ("https://a.example/mcp/b/", None, vec![&below, root]),
            ("https://a.example/", None, vec![root]),
            ("https://a.example/mcp", Some("https://a.example/m"), vec!["https://a.example/m"]),
            ("https://a.example/mcp", Some("/m"), vec!["https://a.example/m"]),
            ("https://a.example/mcp", Some("https://b.example/m"), vec![]),
            ("https://a.example/mcp", Some("http://a.example/m"), vec![]),
            ("https://a.example/mcp", Some("https://a.example:444/m"), vec![]),
            ("https://a.example/mcp", Some("https://"), vec![]),
        ] {
            let challenge =
                Challenge { resource_metadata: named.map(str::to_owned), ..Challenge::default() };
            let found = resource_addresses(&url(server), &challenge).unwrap_or_default();
            let found: Vec<_> = found.iter().map(Url::as_str).collect();
            assert_eq!(found, expected, "{server} {named:?}");
        }
        for (issuer, expected) in [
            (
                "https://b.example/",
                vec![
                    "https://b.example/.well-known/oauth-authorization-server",
                    "https://b.example/.well-known/openid-configuration",
                ],
            ),
            (
                "https://b.example/t/1",
                vec![
                    "https://b.example/.well-known/oauth-authorization-server/t/1",
                    "https://b.example/.well-known/openid-configuration/t/1",
                    "https://b.example/t/1/.well-known/openid-configuration",
                ],
            ),
        ] {
            let found = issuer_addresses(&url(issuer));
            let found: Vec<_> = found.iter().map(Url::as_str).collect();
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn a_resource_is_the_server_or_above_it() {
        let server = url("https://a.example/mcp/b?key=1");
        for (resource, expected) in [
            ("https://a.example/mcp/b", true),
            ("https://a.example/mcp/b/", true),
            ("https://A.example:443/mcp", true),
            ("https://a.example", true),
            ("https://a.example/mcp/b?key=1", true),
            ("https://a.example/mcp/b?key=2", false),
            ("https://a.example/mc", false),
            ("https://a.example/mcp/b/c", false),
            ("https://a.example/mcp#x", false),
            ("https://u@a.example/mcp", false),
            ("http://a.example/mcp", false),
            ("https://evil.example/mcp/b", false),
        ] {
            assert_eq!(covers(&url(resource), &server), expected, "{resource}");
        }
        for (server, expected) in [
            ("https://A.example/", "https://a.example"),
            ("https://a.example/mcp/?key=1", "https://a.example/mcp/"),
        ] {
            assert_eq!(resource_name(&url(server)), expected);
        }
    }

    #[test]
    fn metadata_of_a_server_names_its_authorization_server() {
        let server = url("https://a.example/mcp");
        let good = json!({ "resource": "https://a.example/mcp", "scopes_supported": ["a", 1, "b\n", "c"],
                           "authorization_servers": ["https://b.example", "https://c.example"] });
        let read = resource_of(&good, &server).unwrap();
        assert_eq!(
            (read.issuer.as_str(), read.scopes.join(" ")),
            ("https://b.example", "a c".into())
        );
        for (member, value, part) in [
            ("resource", json!(null), "has no `resource`"),
            ("resource", json!("no address"), "is about another one"),
            ("resource", json!("https://c.example/mcp"), "is about another one"),
            ("authorization_servers", json!([]), "names no authorization server"),
            ("authorization_servers", json!("https://b.example"), "names no authorization server"),
        ] {
            let mut bad = good.clone();
            bad[member] = value;
            let why = resource_of(&bad, &server).unwrap_err();
            assert!(why.contains(part), "{why}");
        }
    }

    #[test]
    fn metadata_of_an_authorization_server_is_that_of_its_issuer() {
        let issuer = "https://b.example";
        let with = |more: Value| {
            let mut document = json!({ "issuer": issuer, "token_endpoint": "https://b.example/t" });
            document.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            endpoint_of(&document, issuer)
        };
        let methods = |names: &[&str]| json!({ "token_endpoint_auth_methods_supported": names });
        for (more, expected) in [
            (json!({}), SecretIn::Header),
            (json!({ "grant_types_supported": ["client_credentials"] }), SecretIn::Header),
            (methods(&["client_secret_post", "client_secret_basic"]), SecretIn::Header),
            (methods(&["none", "client_secret_post"]), SecretIn::Body),
        ] {
            assert_eq!(with(more), Ok((url("https://b.example/t"), expected)));
        }
        for (more, part) in [
            (json!({ "issuer": "https://b.example/" }), "that of another one"),
            (json!({ "issuer": "https://c.example" }), "that of another one"),
            (json!({ "issuer": null }), "that of another one"),
            (json!({ "token_endpoint": null }), "has no `token_endpoint`"),
            (json!({ "token_endpoint": "http://b.example/t" }), "does not begin with https://"),
            (json!({ "token_endpoint": "/t" }), "is not a URL"),
            (json!({ "grant_types_supported": ["authorization_code"] }), "`client_credentials`"),
            (methods(&["private_key_jwt"]), "no way to send a secret"),
            (methods(&[]), "no way to send a secret"),
        ] {
            let why = with(more).unwrap_err();
            assert!(why.contains(part), "{why}");
        }
    }
}
