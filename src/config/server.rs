//! `[server]`: the address of the server, and limits of requests and connections.

use std::net::IpAddr;
use std::time::Duration;

use super::keys::{Takes, section};

section! {
    /// The address of the server, and limits of requests and connections.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct ServerConfig {
        /// Address or name to listen at. An address that other machines can reach requires a
        /// provider that checks tokens, or `provider = "none"` under `[auth]`.
        host: String = "127.0.0.1".to_owned(), Takes::Text;
        /// Port to listen at; 0 takes any free port.
        port: u16 = 3141, Takes::Integer(0..=65_535);
        /// Name of this server among those of a database; a server that starts replaces one of
        /// the same name at once, even if that one runs. Default: the name of the machine with the
        /// address and the port.
        name: Option<String> = None, Takes::TextWithVariables;
        /// Threads that serve connections; 0: one per core.
        workers: usize = 0, Takes::Integer(0..=1024);
        /// Time that running steps and generations may continue after SIGTERM or SIGINT.
        shutdown_grace: Duration = Duration::from_secs(10), Takes::Duration;
        /// Largest request body.
        body_bytes_max: usize = 1024 * 1024, Takes::Bytes(1..=1 << 30);
        /// Time limit for the arrival of a request body.
        body_timeout: Duration = Duration::from_secs(30), Takes::Duration;
        /// Time after which the connection of a client that reads nothing is closed. Needs Linux;
        /// elsewhere only streams are closed (`limits.subscriber_stall_timeout`).
        write_timeout: Duration = Duration::from_secs(30), Takes::Duration;
        /// Time that an idle connection stays open.
        keep_alive: Duration = Duration::from_secs(5), Takes::Duration;
        /// Compresses answers of a kilobyte or more with gzip for clients that accept it; streams
        /// are never compressed.
        compression: bool = true, Takes::Flag;
    }
}

impl ServerConfig {
    /// Returns true if only programs on this machine can reach the server.
    pub fn is_loopback(&self) -> bool {
        let host = self.host.trim_start_matches('[').trim_end_matches(']');
        match host.parse::<IpAddr>() {
            Ok(address) => address.to_canonical().is_loopback(),
            Err(_) => host.eq_ignore_ascii_case("localhost"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_addresses_are_recognized() {
        for (host, expected) in [
            ("127.0.0.1", true),
            ("127.8.8.8", true),
            ("::1", true),
            ("[::1]", true),
            ("::ffff:127.0.0.1", true),
            ("localhost", true),
            ("0.0.0.0", false),
            ("::", false),
            ("10.0.0.1", false),
            ("localhost.example", false),
        ] {
            let server = ServerConfig { host: host.to_owned(), ..ServerConfig::default() };
            assert_eq!(server.is_loopback(), expected, "for {host}");
        }
    }
}
