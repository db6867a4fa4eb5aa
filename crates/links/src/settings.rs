//! Settings of links.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use greenroom_actors::domain::cluster::NodeId;

use crate::tls::Tls;

/// Settings of the links of a server.
#[derive(Debug, Clone)]
pub struct LinkSettings {
    /// Host and port to accept connections at. Port 0: one that is free.
    pub listen: String,
    /// Encryption of all connections, with certificates on both sides.
    pub tls: Option<LinkTls>,
    /// True if connections beyond this machine need no encryption.
    pub trusted_network: bool,
    /// Maximum size of a request or an answer. Twice as much may wait to be sent per connection.
    pub message_bytes_max: u32,
    pub times: LinkTimes,
}

impl LinkSettings {
    /// Returns the default settings.
    pub fn new(listen: impl Into<String>) -> Self {
        Self {
            listen: listen.into(),
            tls: None,
            trusted_network: false,
            message_bytes_max: 80 * 1024 * 1024,
            times: LinkTimes::default(),
        }
    }
}

/// PEM files for encryption.
///
/// The authority should be one for this cluster. Names in certificates are not compared with
/// addresses: both sides prove that they know the secret, over the very connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkTls {
    /// Certificate of this server, which it shows as a server and as a client, with those between
    /// it and the authority.
    pub certificate: PathBuf,
    pub key: PathBuf,
    /// Certificates of the authorities that the certificates of others are checked against.
    pub authority: PathBuf,
}

impl LinkTls {
    /// Reads the files, and checks that the authority has signed the certificate; the error says
    /// which file cannot be used, and why.
    pub fn check(&self) -> Result<(), String> {
        Tls::check(self)
    }
}

/// Intervals of links.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkTimes {
    /// Time to connect, and that for the handshake.
    pub handshake: Duration,
    /// Interval at which each side shows that it is alive.
    pub ping: Duration,
    /// Number of pings without an answer after which a connection is given up.
    pub silent_pings: u32,
    /// Shortest and longest pause between two attempts to connect.
    pub pauses: (Duration, Duration),
}

impl Default for LinkTimes {
    fn default() -> Self {
        Self {
            handshake: Duration::from_secs(5),
            ping: Duration::from_secs(1),
            silent_pings: 3,
            pauses: (Duration::from_millis(50), Duration::from_secs(1)),
        }
    }
}

/// This server as a member of its cluster.
#[derive(Debug, Clone)]
pub struct LinkIdentity {
    pub own: NodeId,
    /// Id of the cluster.
    pub cluster: Vec<u8>,
    pub secret: LinkSecret,
}

/// The secret that the servers of a cluster share. Its text form hides it.
#[derive(Clone)]
pub struct LinkSecret(pub Vec<u8>);

impl fmt::Debug for LinkSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LinkSecret(..)")
    }
}
