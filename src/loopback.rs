//! Addresses on this machine.

use url::Url;

/// Returns true if a URL leads to this machine, which no proxy reaches.
pub(crate) fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let is_address = host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback());
    host == "localhost" || is_address
}
