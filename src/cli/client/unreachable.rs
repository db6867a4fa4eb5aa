//! Requests without an answer of a greenroom, as failures that say what to try.

use std::error::Error as _;

use greenroom_actors::causes::with_causes;
use url::Url;

use super::exit::{Exit, Failure, quoted};
use super::settings::SERVER;

/// Returns the failure of a request that could not be sent, or whose answer could not be read.
pub(super) fn unreachable(server: &Url, error: &reqwest::Error) -> Failure {
    if error.is_builder() {
        return Failure::usage("the token or another value cannot be sent in a header");
    }
    if error.is_timeout() {
        return silent(server);
    }
    // its own text repeats the URL, and its causes are more specific
    described(server, &error.source().map(with_causes).unwrap_or_default())
}

/// Returns the failure of a request that was not answered in time.
pub(super) fn silent(server: &Url) -> Failure {
    Failure::new(Exit::Timeout, format!("{server} does not answer"))
        .transient(true)
        .advise("see its log and /readyz; a request that changes something may have arrived")
}

/// Returns the failure of an answer that no server of this kind gives.
pub(super) fn foreign(server: &Url, status: u16) -> Failure {
    let message = format!("{server} answered {status}, and not as greenroom does");
    // a proxy in front of the server can ask for a token as well
    let exit = if matches!(status, 401 | 403) { Exit::Auth } else { Exit::Failed };
    let failure = Failure::new(exit, message)
        .advise("check the URL of the server, its path included, and proxies on the way");
    // many that speak TLS say so in plain text
    match with_scheme(server, "https") {
        Some(other) if status == 400 => failure.advise(try_instead(&other)),
        Some(_) | None => failure,
    }
}

/// Adds that the URL of the server has a path, to the refusal of a route that is not there.
pub(super) fn beside_path(failure: Failure, server: &Url) -> Failure {
    if server.path() == "/" {
        return failure;
    }
    let mut bare = server.clone();
    bare.set_path("/");
    failure.advise(format!(
        "the URL of the server has the path {}: unless a proxy adds it, {}",
        server.path(),
        try_instead(&bare)
    ))
}

/// Returns the failure with these causes, joined by colons; the last one is the most specific.
fn described(server: &Url, causes: &str) -> Failure {
    let has = |parts: &[&str]| parts.iter().any(|part| causes.contains(part));
    let last = causes.rsplit(": ").next().unwrap_or_default();
    let host = server.host_str().unwrap_or_default();
    let failed = |why: &str| {
        let message = format!("cannot reach {server}: {why}");
        Failure::new(Exit::Failed, message).transient(true)
    };
    if has(&["corrupt message", "InvalidContentType"])
        && let Some(other) = with_scheme(server, "http")
    {
        return failed("it does not speak TLS").transient(false).advise(try_instead(&other));
    }
    if has(&["invalid HTTP version", "invalid HTTP status-line"])
        && let Some(other) = with_scheme(server, "https")
    {
        return failed("it does not speak HTTP").transient(false).advise(try_instead(&other));
    }
    if has(&["certificate"]) {
        return failed(last).transient(false).advise(format!(
            "its certificate must be valid for {host}, and of an authority that this machine trusts"
        ));
    }
    if has(&["no address is known", "failed to lookup"]) {
        return failed(&format!("no host {host} is known ({last})")).advise(format!(
            "check the name in --server, {SERVER} or the profile, and the network of this machine"
        ));
    }
    failed(last).advise(format!(
        "start a server with `greenroom serve`, or name another one with --server or {SERVER}"
    ))
}

fn try_instead(url: &Url) -> String {
    let url = url.as_str().trim_end_matches('/');
    format!("try --server {}", quoted(url))
}

/// Returns the URL with another scheme and the same port; `None` if it has that scheme already.
fn with_scheme(server: &Url, scheme: &str) -> Option<Url> {
    let mut other = server.clone();
    let is_other = server.scheme() != scheme && other.set_scheme(scheme).is_ok();
    is_other.then_some(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cause_says_what_to_try() {
        let rows = [
            (
                "https://h:3",
                "received corrupt message of type InvalidContentType",
                "it does not speak TLS\n  try --server http://h:3",
            ),
            (
                "http://h:3",
                "invalid HTTP version parsed",
                "it does not speak HTTP\n  try --server https://h:3",
            ),
            (
                "https://h",
                "invalid peer certificate: UnknownIssuer",
                "UnknownIssuer\n  its certificate must be valid for h",
            ),
            (
                "http://nohost",
                "client error (Connect): no address is known: Name or service not known",
                "no host nohost is known (Name or service not known)\n  check the name in --server",
            ),
            (
                "http://h:9",
                "tcp connect error: Connection refused (os error 111)",
                "/: Connection refused (os error 111)\n  start a server",
            ),
        ];
        for (server, causes, says) in rows {
            let failure = described(&Url::parse(server).unwrap(), causes).to_string();
            assert!(failure.contains(says), "{failure}");
        }
    }

    #[test]
    fn answers_of_others_and_paths_have_an_advice() {
        let url = |text: &str| Url::parse(text).unwrap();
        let failure = foreign(&url("http://h:443"), 400).to_string();
        assert!(failure.ends_with("try --server https://h"), "{failure}");
        for (server, has_advice) in [("https://h", false), ("https://h/base", true)] {
            let failure = beside_path(Failure::usage("no"), &url(server)).to_string();
            let says = "has the path /base: unless a proxy adds it, try --server https://h";
            assert_eq!(failure.contains(says), has_advice, "{failure}");
        }
    }
}
