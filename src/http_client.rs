//! Common parts of the HTTP clients of this process: name lookup, and the repetition of a request
//! that was sent on a connection which the server had just closed.

#[cfg(any(feature = "cli", feature = "mcp", feature = "otel", feature = "providers"))]
mod client;
#[cfg(any(feature = "cli", feature = "providers"))]
mod lines;
mod names;

use std::sync::Arc;

use reqwest::{Client, ClientBuilder};

#[cfg(any(feature = "cli", feature = "mcp", feature = "otel", feature = "providers"))]
pub(crate) use self::client::HttpClient;
#[cfg(any(feature = "cli", feature = "providers"))]
pub(crate) use self::lines::Lines;
#[cfg(feature = "providers")]
pub(crate) use self::names::NoAddress;
#[cfg(any(feature = "mcp", feature = "providers"))]
pub(crate) use self::names::addresses_of;
pub(crate) use self::names::start_lookups;

/// Returns a client builder with this process's name lookup and `User-Agent`.
pub(crate) fn builder() -> ClientBuilder {
    Client::builder()
        .referer(false)
        .dns_resolver(Arc::new(names::Names))
        .user_agent(concat!("greenroom/", env!("CARGO_PKG_VERSION")))
}
