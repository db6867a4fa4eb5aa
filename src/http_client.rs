//! What the HTTP clients of this process have in common: how names are looked up, and what becomes
//! of a request that was sent on a connection which the other side has just closed.

mod kept;
mod names;

use std::sync::Arc;

use reqwest::{Client, ClientBuilder};

pub(crate) use self::kept::HttpClient;
pub(crate) use self::names::{NoAddress, addresses_of, start_lookups};

/// A client in the making, which looks names up as all do and says who is calling.
pub(crate) fn builder() -> ClientBuilder {
    Client::builder()
        .referer(false)
        .dns_resolver(Arc::new(names::Names))
        .user_agent(concat!("greenroom/", env!("CARGO_PKG_VERSION")))
}
