//! Reasons for not starting links, each with what to do.

use std::io;
use std::net::SocketAddr;

/// Failure to start links.
#[derive(Debug, thiserror::Error)]
pub enum LinksError {
    #[error("cannot listen at {address} (`listen` under [cluster]): {reason}")]
    Listen { address: String, reason: io::Error },
    #[error(
        "other machines can reach {0} (`listen` under [cluster]): set `certificate`, `key` and `ca` there, or \
         `trusted_network = true` if none but servers of this cluster can reach it"
    )]
    Unprotected(SocketAddr),
    /// A file for encryption; the text has its path.
    #[error("`certificate`, `key` and `ca` under [cluster] cannot be used: {0}")]
    Tls(String),
    #[error("the secret of the cluster has {0} bytes; at least {least} are needed", least = LinksError::SECRET_BYTES_MIN)]
    SecretTooShort(usize),
    #[error("the id of the cluster has {0} bytes; at most {most} are allowed", most = LinksError::CLUSTER_BYTES_MAX)]
    ClusterTooLong(usize),
    #[error("cannot start the thread of links: {0}")]
    Thread(io::Error),
}

impl LinksError {
    /// Minimum size of the secret.
    pub const SECRET_BYTES_MIN: usize = 16;
    /// Maximum size of the id of a cluster.
    pub const CLUSTER_BYTES_MAX: usize = 256;
}
