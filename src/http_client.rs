//! Common parts of the HTTP clients of this process: name lookup, and the repetition of a request
//! that was sent on a connection which the server had just closed.

mod client;
mod lines;
mod names;

use std::sync::Arc;

use reqwest::{Client, ClientBuilder, Url};

pub(crate) use self::client::HttpClient;
pub(crate) use self::lines::Lines;
pub(crate) use self::names::{NoAddress, addresses_of, start_lookups};

/// Returns an error with its causes, which are more specific.
pub(crate) fn causes(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

/// Returns true if a URL leads to this machine, which no proxy reaches.
pub(crate) fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let is_address = host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback());
    host == "localhost" || is_address
}

/// Returns a client builder with this process's name lookup and `User-Agent`.
pub(crate) fn builder() -> ClientBuilder {
    Client::builder()
        .referer(false)
        .dns_resolver(Arc::new(names::Names))
        .user_agent(concat!("greenroom/", env!("CARGO_PKG_VERSION")))
}
