//! Addresses of databases: `postgres://USER@HOST,HOST:PORT/DATABASE?sslmode=…`.
//!
//! Refusals name the place in the text and repeat nothing of it, because it may have a password.

mod parse;

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;

use tokio_postgres::config::ChannelBinding;

/// Port of a host without one.
const PORT: u16 = 5432;

/// A database, and the role to connect as.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    pub(crate) user: String,
    /// The password, if the address has one, where it does not belong.
    pub password: Option<Password>,
    /// At least one.
    pub(crate) hosts: Vec<Host>,
    pub(crate) database: String,
    /// `sslmode`.
    pub(crate) tls: Option<Tls>,
    /// Settings of each session, as in `-c search_path=mine`.
    pub(crate) options: Option<String>,
    pub(crate) channel_binding: ChannelBinding,
}

/// A password, which `Debug` does not show.
#[derive(Clone, PartialEq, Eq)]
pub struct Password(pub String);

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[redacted]")
    }
}

/// A host, or the folder of a socket, with its port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Host {
    pub(crate) place: HostPlace,
    pub(crate) port: u16,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum HostPlace {
    /// A name or an IP address.
    Network(String),
    /// The folder of a Unix socket.
    Socket(PathBuf),
}

/// Encryption of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tls {
    /// None.
    Off,
    /// If the server offers it; the certificate is then verified.
    IfOffered,
    /// Always. The name and the chain of the certificate are verified.
    Verified,
}

/// Refusal of an address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct AddressError {
    /// Place in the text, in bytes.
    pub at: usize,
    /// Refusal, which repeats nothing of the text.
    pub message: &'static str,
}

impl Address {
    /// Returns the name of the database.
    pub fn database(&self) -> &str {
        &self.database
    }

    /// Returns the name of the role.
    pub fn user(&self) -> &str {
        &self.user
    }

    /// Returns the hosts with their ports, in the order in which they are tried.
    pub fn hosts(&self) -> impl Iterator<Item = String> {
        self.hosts.iter().map(ToString::to_string)
    }

    /// Returns the encryption of connections to each host, in their order.
    pub fn tls(&self) -> impl Iterator<Item = Tls> {
        self.hosts.iter().map(|host| self.tls_to(host))
    }

    /// Returns the encryption of connections to a host. A socket has none, nor, unless the address
    /// asks for it, have connections within this machine.
    pub(crate) fn tls_to(&self, host: &Host) -> Tls {
        match (&host.place, self.tls) {
            (HostPlace::Socket(_), _) => Tls::Off,
            (HostPlace::Network(_), Some(tls)) => tls,
            (HostPlace::Network(name), None) if is_loopback(name) => Tls::Off,
            (HostPlace::Network(_), None) => Tls::Verified,
        }
    }
}

fn is_loopback(host: &str) -> bool {
    match host.parse::<IpAddr>() {
        Ok(address) => address.to_canonical().is_loopback(),
        Err(_) => host.eq_ignore_ascii_case("localhost"),
    }
}

/// Shows the address without its password and its parameters.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hosts: Vec<_> = self.hosts().collect();
        write!(f, "postgres://{}@{}/{}", self.user, hosts.join(","), self.database)
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            HostPlace::Network(name) if name.contains(':') => write!(f, "[{name}]:{}", self.port),
            HostPlace::Network(name) => write!(f, "{name}:{}", self.port),
            HostPlace::Socket(folder) => {
                write!(f, "{}", folder.join(format!(".s.PGSQL.{}", self.port)).display())
            }
        }
    }
}

impl fmt::Display for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Off => "off",
            Self::IfOffered => "if the server offers it",
            Self::Verified => "verified",
        })
    }
}
