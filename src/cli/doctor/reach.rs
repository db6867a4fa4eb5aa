//! Other servers that the configuration names, and the clock compared with theirs.

use std::collections::BTreeMap;
use std::time::Duration;

use chrono::DateTime;
use futures_util::future::join_all;
use greenroom_actors::causes::with_causes;
use greenroom_actors::domain::time::Timestamp;
use greenroom_actors::ports::clock::{Clock as _, SystemClock};
use reqwest::header::DATE;
use reqwest::redirect::Policy;
use reqwest::{Client, Url};

use crate::adapters::mcp::settings::McpTransport;
use crate::app::finding::{Finding, State};
use crate::app::{self, Variables};
use crate::config::Config;
#[cfg(feature = "jwt")]
use crate::config::KeySource;
#[cfg(feature = "providers")]
use crate::config::ModelConfig;
use crate::http_client;
use crate::loopback::is_loopback;

/// Time in which a server answers.
const PATIENCE: Duration = Duration::from_secs(5);

/// Difference of clocks, in seconds, with which tokens are refused too early or accepted too long.
const DIFFERENCE_MAX: u64 = 5;

/// The first second of 2025: a clock before it was never set.
const NEVER_SET: Timestamp = Timestamp(1_735_689_600_000);

/// Answer of a server.
#[derive(Debug)]
pub(super) struct Answer {
    /// Scheme, host and port.
    origin: String,
    /// Parts of the configuration that need it.
    users: Vec<String>,
    /// Its status and the difference of its clock in seconds, or why there is no answer.
    result: Result<(u16, Option<u64>), String>,
}

/// Asks each server once, all at the same time, without any key. An answer shows that names, routes,
/// proxies and certificates work, whatever the server says to a request without a key.
pub(super) fn ask(config: &Config) -> Vec<Answer> {
    let asked = servers(config).into_iter().map(|(origin, (url, users))| async move {
        Answer { origin, users, result: answer_of(url).await }
    });
    app::block_on(join_all(asked))
}

/// Returns the servers by their origin, with what needs them.
fn servers(config: &Config) -> BTreeMap<String, (Url, Vec<String>)> {
    #[cfg(not(feature = "providers"))]
    let models = std::iter::empty();
    #[cfg(feature = "providers")]
    let models = config.models.iter().filter_map(|(id, model)| match model {
        ModelConfig::Remote(remote) => Some((remote.asked.url().ok()?, format!("models.{id}"))),
        ModelConfig::Mock(_) => None,
    });
    #[cfg(not(feature = "jwt"))]
    let keys = None;
    #[cfg(feature = "jwt")]
    let keys = config.auth.jwt.as_ref().and_then(|jwt| match &jwt.keys {
        KeySource::Jwks(url) => Some((url.clone(), "auth.jwt".to_owned())),
        _ => None,
    });
    let variables = Variables::of(config);
    let exports = config.telemetry.exports(&|name| variables.found(name), config.environment);
    let collectors = exports.settings.into_iter().flat_map(|settings| {
        let targets = [settings.traces, settings.metrics, settings.logs];
        targets.into_iter().flatten().map(|target| (target.url, "telemetry".to_owned()))
    });
    let mcp = config.mcp.iter().filter_map(|(name, server)| match &server.server.transport {
        McpTransport::Http { url, .. } => Some((url.clone(), format!("mcp.{name}"))),
        McpTransport::Program { .. } => None,
    });
    let mut servers: BTreeMap<String, (Url, Vec<String>)> = BTreeMap::new();
    for (url, user) in models.chain(keys).chain(collectors).chain(mcp) {
        let origin = url.origin().ascii_serialization();
        let (_, users) = servers.entry(origin).or_insert_with(|| (url, Vec::new()));
        if !users.contains(&user) {
            users.push(user);
        }
    }
    servers
}

async fn answer_of(mut url: Url) -> Result<(u16, Option<u64>), String> {
    let is_here = is_loopback(&url);
    let client = http_client::builder().redirect(Policy::none()).timeout(PATIENCE);
    let client = if is_here { client.no_proxy() } else { client };
    let client: Client = client.build().map_err(|error| error.to_string())?;
    // the rest of an address may be a key
    url.set_path("/");
    url.set_query(None);
    let answer = client.head(url).send().await.map_err(|error| {
        let error = error.without_url();
        if error.is_timeout() { "no answer in time".to_owned() } else { with_causes(&error) }
    })?;
    let date = answer.headers().get(DATE).and_then(|date| date.to_str().ok());
    let now = SystemClock.now();
    // a server on this machine has the same clock
    let time = date.and_then(time_of).filter(|_| !is_here);
    let apart = time.map(|time| now.ms_since(time).max(time.ms_since(now)) / 1000);
    Ok((answer.status().as_u16(), apart))
}

/// Returns the time in a `Date` header, which has the format of mails.
fn time_of(date: &str) -> Option<Timestamp> {
    Some(Timestamp(DateTime::parse_from_rfc2822(date).ok()?.timestamp_millis()))
}

impl Answer {
    pub(super) fn finding(&self) -> Finding {
        let Self { origin, users, result } = self;
        let users = users.join(", ");
        match result {
            Ok((status, _)) => {
                let (state, remark) = judged(*status);
                let text = format!("{origin} answers ({status}), for {users}{remark}");
                Finding::new(state, "reach", text)
            }
            Err(why) => {
                let text = format!("{origin} cannot be reached, for {users}: {why}");
                Finding::new(State::Failed, "reach", text)
            }
        }
    }
}

/// Returns what a status means for the way to a server: some are answers of what stands before it.
fn judged(status: u16) -> (State, &'static str) {
    match status {
        407 => {
            (State::Failed, ": the proxy wants a name and a password, as http://NAME:PASSWORD@HOST")
        }
        502..=504 => (State::Warned, ": a proxy or gateway before it does not reach it"),
        500..=599 => (State::Warned, ": it fails"),
        _ => (State::Good, ""),
    }
}

/// Compares the clock with those of the servers that answered: with the nearest, because answers take
/// their time.
pub(super) fn clock(answers: &[Answer]) -> Finding {
    let apart = answers.iter().filter_map(|it| Some((it.result.as_ref().ok()?.1?, &*it.origin)));
    compared(SystemClock.now(), apart.min())
}

/// Returns a warning about a clock that was never set, for a server that starts. Before 1970 nothing
/// can be served: answers have dates.
pub(in crate::cli) fn accepted(now: Timestamp) -> Result<Option<String>, String> {
    let says = format!("greenroom: the clock of this machine says {}", now.to_iso());
    match now {
        now if now < Timestamp(0) => Err(format!("{says}; set it: nothing is served before 1970")),
        now if now < NEVER_SET => {
            Ok(Some(format!("{says}: it was never set, and timers and tokens go by it")))
        }
        _ => Ok(None),
    }
}

fn compared(now: Timestamp, nearest: Option<(u64, &str)>) -> Finding {
    const NAME: &str = "clock";
    let time = now.to_iso();
    if now < NEVER_SET {
        return Finding::new(State::Failed, NAME, format!("{time}: it was never set"));
    }
    let Some((apart, origin)) = nearest else {
        return Finding::new(State::Good, NAME, format!("{time}, compared with no other"));
    };
    if apart > DIFFERENCE_MAX {
        let text = format!("{time}: {apart} s from that of {origin}; timers and tokens go by it");
        return Finding::new(State::Warned, NAME, text);
    }
    Finding::new(State::Good, NAME, format!("{time}, within {} s of {origin}", apart + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mcp_servers_over_http_are_asked_at_their_origin() {
        let text = "[mcp.a]\nurl = \"https://mcp.example/one\"\n\
                    [mcp.b]\nurl = \"https://mcp.example/other\"\n\
                    [mcp.c]\ncommand = [\"true\"]\n";
        let servers = servers(&Config::parse(text, "c.toml").unwrap());
        let users: Vec<_> =
            servers.into_iter().map(|(origin, (_, users))| (origin, users)).collect();
        let expected = vec!["mcp.a".to_owned(), "mcp.b".to_owned()];
        assert_eq!(users, [("https://mcp.example".to_owned(), expected)]);
    }

    #[test]
    fn clocks_are_compared() {
        let now = Timestamp(2 * NEVER_SET.0);
        for (now, nearest, state, says) in [
            (Timestamp(0), None, State::Failed, "never set"),
            (now, None, State::Good, "compared with no other"),
            (now, Some((2, "x")), State::Good, "within 3 s of x"),
            (now, Some((3600, "x")), State::Warned, "3600 s from that of x"),
        ] {
            let finding = compared(now, nearest);
            assert_eq!(finding.state, state, "{finding}");
            assert!(finding.text.contains(says), "{finding}");
        }
        let date = time_of("Sun, 06 Nov 1994 08:49:37 GMT").unwrap();
        assert_eq!(date.to_iso(), "1994-11-06T08:49:37.000Z");
    }

    #[test]
    fn a_server_needs_a_time_after_1970() {
        assert_eq!(accepted(NEVER_SET), Ok(None));
        let warning = accepted(Timestamp(5)).unwrap().unwrap();
        assert!(warning.contains("1970-01-01T00:00:00.005Z: it was never set"), "{warning}");
        let refusal = accepted(Timestamp(-5)).unwrap_err();
        assert!(refusal.contains("1969-12-31T23:59:59.995Z; set it"), "{refusal}");
    }

    #[test]
    fn answers_of_proxies_are_no_good_ones() {
        for (status, state) in [
            (200, State::Good),
            (401, State::Good),
            (404, State::Good),
            (407, State::Failed),
            (500, State::Warned),
            (502, State::Warned),
            (504, State::Warned),
        ] {
            let (origin, users) = ("https://h".to_owned(), vec!["models.a".to_owned()]);
            let finding = Answer { origin, users, result: Ok((status, None)) }.finding();
            assert_eq!(finding.state, state, "{finding}");
        }
    }

    #[test]
    fn each_server_is_asked_once_for_all_that_need_it() {
        let text = "[models.a]\nprovider = \"openai\"\nmodel = \"m\"\nbase_url = \"http://h/v1/a\"\n\
                    [models.b]\nprovider = \"openai\"\nmodel = \"m\"\nbase_url = \"http://h/v2\"\n\
                    [auth.jwt]\njwks_url = \"https://login.example/key-in-path\"\n";
        let config = Config::parse(text, "c.toml").unwrap();
        let servers = servers(&config);
        let of = |origin: &str| servers[origin].1.clone();
        assert_eq!(of("http://h"), ["models.a", "models.b"]);
        assert_eq!(of("https://login.example"), ["auth.jwt"]);
    }
}
