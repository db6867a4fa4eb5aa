//! Load of one kind of work, over connections that each wait for their answer.

use std::fmt;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use serde_json::Value;

use crate::cli::client::api::{Api, Call};
use crate::cli::client::exit::{Exit, Failure};
use crate::cli::client::text::text;

/// Time before each measurement, in which connections are made and caches filled.
const WARM_UP: Duration = Duration::from_secs(1);

/// A kind of work.
#[derive(Debug)]
pub(super) enum Kind {
    /// The barest answer of a server: `GET /livez`.
    Bare,
    /// An execution, which is resumed if it waits and there is an `answer`.
    Execute { workflow: String, body: Value, answer: Option<Value> },
    /// A generation of an agent: `text` or `stream`.
    Ask { agent: String, route: &'static str, body: Value },
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bare => f.write_str("livez"),
            Self::Execute { workflow, answer: None, .. } => write!(f, "execute {workflow}"),
            Self::Execute { workflow, answer: Some(_), .. } => {
                write!(f, "execute and resume {workflow}")
            }
            Self::Ask { agent, route, .. } => write!(f, "{route} {agent}"),
        }
    }
}

impl Kind {
    /// Does the work once.
    pub(super) async fn once(&self, api: &Api) -> Result<(), Failure> {
        match self {
            Self::Bare => {
                // an answer that is read leaves its connection to the next request
                let answer = api.open(Call::get(&["livez"])).await?;
                answer.bytes().await.map(drop).map_err(|error| api.unreachable(&error))
            }
            Self::Execute { workflow, body, answer } => {
                let path = ["workflows", workflow, "execute"];
                let state = api.data(Call::post(&path, body)).await?;
                let Some(answer) = answer else { return Ok(()) };
                if text(&state, "status") != "suspended" {
                    return Ok(());
                }
                let path =
                    ["workflows", workflow, "executions", text(&state, "executionId"), "resume"];
                api.data(Call::post(&path, answer)).await.map(drop)
            }
            Self::Ask { agent, route: "stream", body } => {
                let path = ["agents", agent, "stream"];
                let (_, mut events) = api.events(Call::post(&path, body)).await?;
                let mut last = Value::Null;
                while let Some(event) = events.next().await {
                    last = event.data;
                }
                match text(&last, "type") {
                    "finish" => Ok(()),
                    kind => {
                        Err(Failure::new(Exit::Failed, format!("the stream ends with {kind:?}")))
                    }
                }
            }
            Self::Ask { agent, route, body } => {
                let path = ["agents", agent, route];
                api.data(Call::post(&path, body)).await.map(drop)
            }
        }
    }
}

/// The server that is measured, and for how long.
pub(super) struct Place<'a> {
    pub(super) api: &'a Api,
    pub(super) time: Duration,
}

/// Result of a measurement.
#[derive(Debug)]
pub(super) struct Measured {
    /// Times of the answers, in order.
    times: Vec<Duration>,
    /// Time of the measurement.
    took: Duration,
    /// Requests that were refused, or got no answer.
    pub(super) errors: u64,
}

impl Measured {
    pub(super) fn per_second(&self) -> f64 {
        let count = u32::try_from(self.times.len()).unwrap_or(u32::MAX);
        f64::from(count) / self.took.as_secs_f64().max(f64::MIN_POSITIVE)
    }

    /// Returns the time in which this part of the answers came; 0 without any.
    pub(super) fn percentile_ms(&self, part: f64) -> f64 {
        let last = self.times.len().saturating_sub(1);
        let at = (last as f64 * part).round() as usize;
        self.times.get(at).map_or(0.0, |time| time.as_secs_f64() * 1000.0)
    }
}

/// Measures a kind of work over a number of connections.
pub(super) async fn measure(place: &Place<'_>, kind: &Kind, connections: u64) -> Measured {
    let began = Instant::now() + WARM_UP;
    let until = began + place.time;
    let all = (0..connections).map(|_| one(place.api, kind, began, until));
    let all = join_all(all).await;
    let took = began.elapsed().max(place.time);
    let errors = all.iter().map(|(_, errors)| errors).sum();
    let mut times: Vec<_> = all.into_iter().flat_map(|(times, _)| times).collect();
    times.sort_unstable();
    Measured { times, took, errors }
}

/// Errors after which a connection gives up: the server is gone, or refuses everything.
const ERRORS_MAX: u64 = 100;

/// Works on one connection; returns the times of answers to requests after `began`, and the number of
/// errors. There is one answer or error at least, however long a request takes.
async fn one(api: &Api, kind: &Kind, began: Instant, until: Instant) -> (Vec<Duration>, u64) {
    let (mut times, mut errors) = (Vec::new(), 0);
    while errors < ERRORS_MAX {
        let asked = Instant::now();
        if asked >= until && !(times.is_empty() && errors == 0) {
            break;
        }
        match kind.once(api).await {
            Ok(()) if asked >= began => times.push(asked.elapsed()),
            Ok(()) => {}
            Err(_) => errors += 1,
        }
    }
    (times, errors)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_of_sorted_times() {
        let times: Vec<_> = (1..=100).map(Duration::from_millis).collect();
        let measured = Measured { times, took: Duration::from_secs(2), errors: 0 };
        assert!((measured.per_second() - 50.0).abs() < 1e-9);
        assert!((measured.percentile_ms(0.5) - 51.0).abs() < 1e-9);
        assert!((measured.percentile_ms(0.99) - 99.0).abs() < 1e-9);
        let none = Measured { times: Vec::new(), took: Duration::from_secs(2), errors: 1 };
        assert!(none.percentile_ms(0.5).abs() < 1e-9);
    }
}
