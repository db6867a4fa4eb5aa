//! Parts that all connections share.

use std::net::SocketAddr;

use tokio::runtime::Handle;

use crate::accepted::Accepted;
use crate::complaints::Complaints;
use crate::handshake::Greeter;
use crate::peers::Peers;
use crate::settings::LinkTimes;
use crate::tls::Tls;

/// Parts that all connections share.
pub(crate) struct Shared {
    pub(crate) greeter: Greeter,
    pub(crate) tls: Option<Tls>,
    pub(crate) trusted_network: bool,
    pub(crate) times: LinkTimes,
    pub(crate) complaints: Complaints,
    pub(crate) accepted: Accepted,
    pub(crate) peers: Peers,
    /// The thread of answers.
    pub(crate) answers: Handle,
}

impl Shared {
    /// Returns true if a connection with this address needs no encryption, or has it.
    pub(crate) fn may_be_plain(&self, address: &SocketAddr) -> bool {
        self.tls.is_some() || may_be_plain(address, self.trusted_network)
    }
}

/// Returns true if a connection with this address needs no encryption.
pub(crate) fn may_be_plain(address: &SocketAddr, trusted_network: bool) -> bool {
    trusted_network || address.ip().to_canonical().is_loopback()
}
