//! `[server]`: where the server listens and how patient it is.

use std::net::IpAddr;
use std::time::Duration;

use super::section::Section;

/// Where the server listens and how patient it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerConfig {
    /// Address or name to listen at.
    pub host: String,
    /// 0 takes any free port.
    pub port: u16,
    /// Threads that serve connections; 0: one per core.
    pub workers: usize,
    /// How long running steps may go on after a signal to stop.
    pub shutdown_grace: Duration,
    /// Largest request body.
    pub body_bytes_max: usize,
    /// How long a request body may take to arrive.
    pub body_timeout: Duration,
    /// How long a client may take nothing of what is sent to it.
    pub write_timeout: Duration,
    /// How long an idle connection stays open.
    pub keep_alive: Duration,
    /// Whether clients that ask for it get answers in gzip.
    pub compression: bool,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            host: "127.0.0.1".to_owned(),
            port: 3141,
            workers: 0,
            shutdown_grace: Duration::from_secs(10),
            body_bytes_max: 1024 * 1024,
            body_timeout: Duration::from_secs(30),
            write_timeout: Duration::from_secs(30),
            keep_alive: Duration::from_secs(5),
            compression: true,
        }
    }
}

impl ServerConfig {
    /// Whether only programs of this machine can reach the server.
    pub fn is_loopback(&self) -> bool {
        let host = self.host.trim_start_matches('[').trim_end_matches(']');
        match host.parse::<IpAddr>() {
            Ok(address) => address.to_canonical().is_loopback(),
            Err(_) => host.eq_ignore_ascii_case("localhost"),
        }
    }

    pub(crate) fn read(section: Section<'_>) -> Self {
        let default = Self::default();
        let server = Self {
            host: section.get("host").and_then(|entry| entry.filled_text()).unwrap_or(default.host),
            port: section.integer("port", 0..=65_535, default.port),
            workers: section.integer("workers", 0..=1024, default.workers),
            shutdown_grace: section.duration("shutdown_grace", default.shutdown_grace),
            body_bytes_max: section.integer("body_bytes_max", 1..=1 << 30, default.body_bytes_max),
            body_timeout: section.duration("body_timeout", default.body_timeout),
            write_timeout: section.duration("write_timeout", default.write_timeout),
            keep_alive: section.duration("keep_alive", default.keep_alive),
            compression: section.flag("compression", default.compression),
        };
        section.later(&["base_path", "tls"]);
        section.close();
        server
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_told_from_the_rest() {
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
