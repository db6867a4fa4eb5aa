//! `oauth` of an MCP server: credentials of this process, for tokens of the server.

use url::Url;

use super::super::entry::Entry;
use super::super::problem::{ConfigProblem, Spot};
use super::super::secret::{problem_of, read_variable};
use super::super::section::Section;
use crate::adapters::mcp::settings::{OAuth, SecretIn, is_scope};
use crate::loopback::is_loopback;

/// Longest id of a client, in bytes.
const ID_BYTES_MAX: usize = 1024;
/// Longest scope, in bytes.
const SCOPE_BYTES_MAX: usize = 2048;

/// Reads the credentials of a server, which is at this address.
pub(super) fn read(entry: &Entry<'_>, server: &Section<'_>, url: Option<&Url>) -> Option<OAuth> {
    let section = entry.section()?;
    let client_id = section.required("client_id").and_then(|entry| client_id(&entry));
    let client_secret =
        section.required("client_secret").and_then(|entry| read_variable(&entry, "CLIENT_SECRET"));
    let scope = section.get("scope").map(|entry| scope(&entry));
    let token_url = section.get("token_url").map(|entry| token_url(&entry));
    let ways = [("basic", SecretIn::Header), ("post", SecretIn::Body)];
    let secret_in = section.get("client_auth").map(|entry| entry.one_of(&ways));
    section.close();
    for (name, header) in server.named_entries("headers") {
        if name.eq_ignore_ascii_case("authorization") {
            header.place.refuse("cannot be combined with `oauth`, which sets this header");
        }
    }
    if url.is_some_and(|url| url.scheme() == "http" && !is_loopback(url)) {
        let message =
            "sends tokens over plain http://, where anyone on the network path reads them";
        server.key_place("url").warn(message);
    }
    Some(OAuth {
        client_id: client_id?,
        client_secret: client_secret?.into(),
        scope: given(scope)?,
        token_url: given(token_url)?,
        secret_in: given(secret_in)?,
    })
}

/// Returns what may be left out; the outer `None`: it is refused.
#[expect(clippy::option_option, reason = "outer: refused; inner: left out")]
fn given<T>(read: Option<Option<T>>) -> Option<Option<T>> {
    match read {
        Some(read) => read.map(Some),
        None => Some(None),
    }
}

fn client_id(entry: &Entry<'_>) -> Option<String> {
    let id = entry.filled_text()?;
    let fits = id.len() <= ID_BYTES_MAX && id.bytes().all(|byte| matches!(byte, b' '..=b'~'));
    if fits { Some(id) } else { entry.refuse("must be 1 to 1024 characters of ASCII") }
}

fn scope(entry: &Entry<'_>) -> Option<String> {
    let scope = entry.filled_text()?;
    if scope.len() <= SCOPE_BYTES_MAX && scope.split(' ').all(is_scope) {
        return Some(scope);
    }
    entry.refuse("must be scopes with a space between two, 2048 characters of ASCII at most")
}

fn token_url(entry: &Entry<'_>) -> Option<Url> {
    let url = entry.web_address()?;
    if url.scheme() == "http" && !is_loopback(&url) {
        return entry.refuse("must begin with https://, as the secret is sent to it");
    }
    if url.fragment().is_some() {
        return entry.refuse("must end before #");
    }
    Some(url)
}

/// Returns the problem of the secret in the environment.
pub(super) fn secret_problem(
    oauth: &OAuth,
    spot: &Spot,
    environment: &impl Fn(&str) -> Option<String>,
) -> Option<ConfigProblem> {
    let problem = problem_of(&oauth.client_secret, environment, |value| {
        let has_control = value.chars().any(char::is_control);
        has_control.then_some("contains a line break or another control character")
    });
    problem.map(|problem| spot.error(problem))
}
