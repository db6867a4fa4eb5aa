//! `greenroom healthcheck`: whether the configured server answers, for containers without `curl`.

use std::net::IpAddr;
use std::time::Duration;

use super::{Arguments, read};
use crate::app;
use crate::config::{Config, ConfigProblem};
use crate::http_client;

/// Most bytes of an answer that are read; those of the server have one short line.
const LINE_BYTES_MAX: usize = 4 << 10;

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
    let expected = if options.ready { "ready" } else { "ok" };
    let answer = app::block_on(answer_of(&url, timeout)).and_then(|text| {
        // a page of something else that has the port
        if text == expected { Ok(text) } else { Err("answers something else".to_owned()) }
    });
    answer.map_err(|why| format!("greenroom: {url} {why}"))
}

/// Loads the configuration, for the address. Without a file it is the default one.
fn config(arguments: &Arguments) -> Result<Config, Vec<ConfigProblem>> {
    if !arguments.has_default_file() {
        return Ok(Config::default());
    }
    read(arguments)
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

/// Returns the first line of the answer of a server on this machine. The error says why it is not good; of
/// a refusal it has the first two lines, the second of which is the reason. The limit is one of the whole request, whatever
/// comes: a server that never ends its answer has not answered.
pub(super) async fn answer_of(url: &str, timeout: Duration) -> Result<String, String> {
    let late = |_elapsed| Err("does not answer in time".to_owned());
    tokio::time::timeout(timeout, line_of(url)).await.unwrap_or_else(late)
}

async fn line_of(url: &str) -> Result<String, String> {
    // the server is on this machine: a proxy would not reach it
    let client = http_client::builder().no_proxy().build();
    let client = client.map_err(|error| format!("cannot be asked: {error}"))?;
    let mut answer = client.get(url).send().await.map_err(|_| "does not answer".to_owned())?;
    let status = answer.status();
    let wanted = if status.is_success() { 1 } else { 2 };
    let mut text = Vec::new();
    while let Ok(Some(part)) = answer.chunk().await {
        text.extend_from_slice(&part);
        let ends = text.iter().filter(|byte| **byte == b'\n').count();
        if ends >= wanted || text.len() > LINE_BYTES_MAX {
            break;
        }
    }
    text.truncate(LINE_BYTES_MAX);
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<_> = text.lines().take(wanted).collect();
    let line: String = lines.join(": ").chars().filter(|c| !c.is_control()).collect();
    if status.is_success() { Ok(line) } else { Err(format!("answers {status}: {line}")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the URL of a server that sends `begin`, and then `rest` without an end.
    fn endless(begin: &'static str, rest: &'static str) -> String {
        use std::io::{Read as _, Write as _};
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/livez", listener.local_addr().unwrap());
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let _ = stream.read(&mut [0; 4096]).unwrap();
            stream.write_all(begin.as_bytes()).unwrap();
            while stream.write_all(rest.as_bytes()).is_ok() {}
        });
        url
    }

    #[test]
    fn an_answer_without_an_end_is_not_waited_for() {
        let asked = |begin, rest| {
            let url = endless(begin, rest);
            app::block_on(answer_of(&url, Duration::from_secs(2)))
        };
        let late = Err("does not answer in time".to_owned());
        assert_eq!(asked("", "HTTP/1.1 100 Continue\r\n\r\n"), late);
        let line = asked("HTTP/1.1 200 OK\r\n\r\nok\n", "garbage");
        assert_eq!(line, Ok("ok".to_owned()));
        let garbage = asked("HTTP/1.1 200 OK\r\n\r\n", "garbage").unwrap();
        assert_eq!(garbage.len(), LINE_BYTES_MAX);
        let refusal =
            asked("HTTP/1.1 503 Service Unavailable\r\n\r\nnot ready\nit stops\n", "more\n");
        let refused = "answers 503 Service Unavailable: not ready: it stops";
        assert_eq!(refusal, Err(refused.to_owned()));
    }

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
