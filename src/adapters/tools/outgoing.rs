//! Clients for calls out of the process, and the policy of allowed hosts.
//!
//! A host in the configuration is the operator's choice. One that data chose (a template, an
//! argument of a model, a redirect) must have a public address or be listed in `[limits]
//! outgoing_hosts`: a prompt injection must not reach hosts that only this machine can reach. The
//! client looks names up through a guard, so that the checked address is the one that is connected
//! to.

mod address;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use greenroom_actors::domain::call::HostChoice;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::redirect::Policy;
use reqwest::{ClientBuilder, Url};

pub use self::address::is_public;

use super::hosts::{OutgoingHost, address_of, plain_name};
use crate::http_client::{self, HttpClient, addresses_of};

/// Timeout of connecting. The caller of each call limits its total time; this fails sooner.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

impl OutgoingHost {
    fn covers(&self, host: &str, address: IpAddr) -> bool {
        match self {
            Self::Address(named) => named.to_canonical() == address.to_canonical(),
            Self::Name(name) => *name == host,
            Self::Suffix(suffix) => host.ends_with(suffix),
        }
    }
}

/// A call to a host that data may not choose.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("calls to {host} are not allowed")]
pub struct HostRefused {
    pub host: String,
}

/// HTTP clients for outgoing calls. Clones share their connections.
///
/// Neither client follows redirects or uses a proxy: both would connect to unchecked addresses.
/// They do not share connections, so that a call to a host chosen by data never uses a connection
/// that was made for the operator's.
#[derive(Debug, Clone)]
pub struct Outgoing {
    unguarded: HttpClient,
    guarded: HttpClient,
    hosts: Arc<[OutgoingHost]>,
}

impl Outgoing {
    /// Makes the clients. Fails if the machine has no usable certificates or entropy.
    pub fn new(hosts: &[OutgoingHost]) -> Result<Self, reqwest::Error> {
        let hosts: Arc<[OutgoingHost]> = Arc::from(hosts);
        let guard = Arc::new(Guard { hosts: Arc::clone(&hosts) });
        Ok(Self {
            unguarded: HttpClient::new(client)?,
            guarded: HttpClient::new(move || client().dns_resolver(Arc::clone(&guard)))?,
            hosts,
        })
    }

    /// Returns the client for a URL. An address is checked here, a name when it is looked up.
    pub(crate) fn client(&self, url: &Url, choice: HostChoice) -> Result<&HttpClient, HostRefused> {
        if choice == HostChoice::Operator {
            return Ok(&self.unguarded);
        }
        let host = url.host_str().unwrap_or_default();
        match address_of(host) {
            Some(address) if !permits(&self.hosts, host, address) => {
                Err(HostRefused { host: host.to_owned() })
            }
            Some(_) | None => Ok(&self.guarded),
        }
    }
}

fn client() -> ClientBuilder {
    http_client::builder().redirect(Policy::none()).no_proxy().connect_timeout(CONNECT_TIMEOUT)
}

/// Resolver that returns only addresses that data may choose.
#[derive(Debug)]
struct Guard {
    hosts: Arc<[OutgoingHost]>,
}

impl Resolve for Guard {
    fn resolve(&self, name: Name) -> Resolving {
        let hosts = Arc::clone(&self.hosts);
        Box::pin(async move {
            let host = name.as_str();
            let permitted = permitted(&hosts, host, addresses_of(host).await?);
            if permitted.is_empty() {
                return Err(HostRefused { host: host.to_owned() }.into());
            }
            Ok(Box::new(permitted.into_iter()) as Addrs)
        })
    }
}

fn permitted(hosts: &[OutgoingHost], host: &str, found: Vec<SocketAddr>) -> Vec<SocketAddr> {
    found.into_iter().filter(|address| permits(hosts, host, address.ip())).collect()
}

fn permits(hosts: &[OutgoingHost], host: &str, address: IpAddr) -> bool {
    let host = plain_name(host);
    is_public(address) || hosts.iter().any(|named| named.covers(&host, address))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(named: &[&str]) -> Vec<OutgoingHost> {
        named.iter().map(|host| host.parse().unwrap()).collect()
    }

    #[test]
    fn listed_and_public_hosts_are_permitted() {
        let named = hosts(&["10.0.0.5", "printer", "*.corp"]);
        for (host, address, expected) in [
            ("example.com", "93.184.216.34", true),
            ("example.com", "10.0.0.1", false),
            ("example.com", "10.0.0.5", true),
            ("example.com", "::ffff:10.0.0.5", true),
            ("10.0.0.5", "10.0.0.5", true),
            ("printer", "127.0.0.1", true),
            ("Printer.", "127.0.0.1", true),
            ("printer.example", "127.0.0.1", false),
            ("db.corp", "192.168.0.1", true),
            ("a.b.corp", "192.168.0.1", true),
            ("corp", "192.168.0.1", false),
            ("evilcorp", "192.168.0.1", false),
        ] {
            assert_eq!(permits(&named, host, address.parse().unwrap()), expected, "{host}");
        }
    }

    #[test]
    fn only_public_addresses_of_a_name_are_used() {
        let found = ["127.0.0.1:0", "93.184.216.34:0", "[::1]:0"];
        let found = found.map(|address| address.parse().unwrap()).to_vec();
        let left = permitted(&[], "example.com", found);
        assert_eq!(left, ["93.184.216.34:0".parse().unwrap()]);
    }

    #[test]
    fn an_address_in_a_url_is_recognized_in_any_notation() {
        let outgoing = Outgoing::new(&hosts(&["10.0.0.5"])).unwrap();
        for (url, expected) in [
            ("http://93.184.216.34/", true),
            ("http://example.com/", true),
            ("http://10.0.0.5/", true),
            ("http://127.0.0.1/", false),
            ("http://127.1/", false),
            ("http://2130706433/", false),
            ("http://0x7f000001/", false),
            ("http://0177.0.0.1/", false),
            ("http://127.0.0.1./", false),
            ("http://[::1]/", false),
            ("http://[::ffff:7f00:1]/", false),
            ("http://169.254.169.254/", false),
            ("http://①②⑦.0.0.1/", false),
        ] {
            let url = Url::parse(url).unwrap();
            assert_eq!(outgoing.client(&url, HostChoice::Data).is_ok(), expected, "{url}");
            assert!(outgoing.client(&url, HostChoice::Operator).is_ok(), "{url}");
        }
    }

    #[tokio::test]
    async fn a_name_is_checked_when_it_is_looked_up() {
        for (named, expected) in [(vec![], false), (hosts(&["localhost"]), true)] {
            let guard = Guard { hosts: Arc::from(named) };
            let found = guard.resolve("localhost".parse().unwrap()).await;
            assert_eq!(found.is_ok(), expected);
            if let Err(error) = found {
                assert_eq!(error.to_string(), "calls to localhost are not allowed");
            }
        }
    }
}
