//! `greenroom healthcheck`: whether the configured server answers, for containers without `curl`.

use std::net::IpAddr;
use std::time::Duration;

use super::{Arguments, read};
use crate::app;
use crate::config::{Config, ConfigProblem};
use crate::http_client;

/// Options of `healthcheck`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::Args)]
pub(super) struct Options {
    /// Ask whether the server takes requests (`/readyz`), not only whether it lives (`/livez`).
    #[arg(long)]
    ready: bool,
    /// Seconds to wait for the answer.
    #[arg(long, value_name = "SECONDS", default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=60))]
    timeout: u64,
}

/// Asks the server. Returns its answer, or why it does not count as healthy.
pub(super) fn ask(arguments: &Arguments, options: Options) -> Result<String, String> {
    let config = config(arguments).map_err(|problems| {
        let lines: Vec<_> = problems.iter().map(ToString::to_string).collect();
        lines.join("\n")
    })?;
    let host = arguments.host.as_deref().unwrap_or(&config.server.host);
    let port = arguments.port.unwrap_or(config.server.port);
    let path = if options.ready { "/readyz" } else { "/livez" };
    let url = format!("http://{}:{port}{path}", reachable(host));
    let timeout = Duration::from_secs(options.timeout);
    app::block_on(answer_of(&url, timeout)).map_err(|why| format!("greenroom: {url} {why}"))
}

/// Loads the configuration, for the address. Without a file it is the default one.
fn config(arguments: &Arguments) -> Result<Config, Vec<ConfigProblem>> {
    if arguments.has_default_file() { read(arguments) } else { Ok(Config::default()) }
}

/// Returns the address at which this machine reaches a server that listens at `host`.
pub(super) fn reachable(host: &str) -> String {
    match host.trim_matches(['[', ']']).parse::<IpAddr>() {
        Ok(IpAddr::V4(ip)) if ip.is_unspecified() => "127.0.0.1".to_owned(),
        Ok(IpAddr::V6(ip)) if ip.is_unspecified() => "[::1]".to_owned(),
        Ok(IpAddr::V6(ip)) => format!("[{ip}]"),
        _ => host.to_owned(),
    }
}

/// Returns the first line of the answer of a server on this machine, or why there is none.
pub(super) async fn answer_of(url: &str, timeout: Duration) -> Result<String, String> {
    // the server is on this machine: a proxy would not reach it
    let client = http_client::builder().no_proxy().timeout(timeout).build();
    let client = client.map_err(|error| format!("cannot be asked: {error}"))?;
    let answer = client.get(url).send().await.map_err(|error| {
        let why = if error.is_timeout() { "in time" } else { "" };
        format!("does not answer {why}").trim_end().to_owned()
    })?;
    let status = answer.status();
    let text = answer.text().await.unwrap_or_default();
    let text = text.lines().next().unwrap_or_default();
    if status.is_success() { Ok(text.to_owned()) } else { Err(format!("answers {status}: {text}")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_for_all_interfaces_is_asked_at_the_loopback() {
        for (host, expected) in [
            ("0.0.0.0", "127.0.0.1"),
            ("::", "[::1]"),
            ("[::]", "[::1]"),
            ("::1", "[::1]"),
            ("10.0.0.7", "10.0.0.7"),
            ("greenroom.local", "greenroom.local"),
        ] {
            assert_eq!(reachable(host), expected);
        }
    }
}
