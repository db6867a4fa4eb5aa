//! Sends requests one after the other to the endpoint of one signal.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::sync::Arc;
use std::time::Duration;

use greenroom_actors::causes::with_causes;
use prost::Message;
use reqwest::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use reqwest::redirect::Policy;
use reqwest::{Method, Response};
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

use crate::http_client::{self, HttpClient};
use crate::telemetry::export::{SignalStats, Target};

use super::answer::{Answer, Retry};

const PROTOBUF: HeaderValue = HeaderValue::from_static("application/x-protobuf");
/// Maximum size of a response body; a larger one is ignored.
const ANSWER_BYTES_MAX: usize = 64 * 1024;
/// Maximum length of a collector's message in the log.
const MESSAGE_CHARS_MAX: usize = 200;
/// Minimum interval between warnings about rejected items.
const PARTIAL_PAUSE: Duration = Duration::from_secs(60);

pub(super) struct Sender {
    /// `spans`, `data points` or `log records`.
    what: &'static str,
    target: Target,
    client: HttpClient,
    stats: Arc<SignalStats>,
    retry: Retry,
    stop: watch::Receiver<bool>,
    /// True if the newest request failed; changes are logged.
    is_failing: bool,
    /// Time of the last warning about rejected items.
    partial_logged: Option<Instant>,
}

impl Sender {
    pub(super) fn new(
        what: &'static str,
        target: Target,
        stats: Arc<SignalStats>,
        retry: Retry,
        stop: watch::Receiver<bool>,
    ) -> Result<Self, reqwest::Error> {
        let is_local = target.is_local;
        let client = HttpClient::new(move || {
            // the operator chose this address
            let client = http_client::builder().redirect(Policy::none());
            if is_local { client.no_proxy() } else { client }
        })?;
        let (is_failing, partial_logged) = (false, None);
        Ok(Self { what, target, client, stats, retry, stop, is_failing, partial_logged })
    }

    /// Sends a request with `parts` items until it is accepted or has finally failed, and counts
    /// them. Once the server stops, there is at most one further attempt, without a pause.
    pub(super) async fn deliver(&mut self, request: &impl Message, parts: usize) {
        let (body, parts) = (request.encode_to_vec(), parts as u64);
        let mut failed = 0;
        let why = loop {
            let (why, asked) = match self.send(body.clone()).await {
                Answer::Taken { rejected, message } => {
                    self.taken(parts, rejected.min(parts), &message);
                    return;
                }
                Answer::Refused { why } => break why,
                Answer::Later { why, after } => (why, after),
            };
            failed += 1;
            self.log_failure(&why);
            let Some(pause) = self.retry.pause(failed, asked, chance()) else { break why };
            if *self.stop.borrow() {
                break why;
            }
            self.pause(pause).await;
        };
        self.log_failure(&why);
        self.stats.add_failed(parts);
    }

    async fn send(&self, body: Vec<u8>) -> Answer {
        let Target { url, headers, timeout, .. } = &self.target;
        let request = self.client.request(Method::POST, url.clone()).headers(headers.clone());
        let request = request.header(CONTENT_TYPE, PROTOBUF).body(body);
        let deadline = Instant::now() + *timeout;
        let answered = timeout_at(deadline, async {
            // a collector may count a request twice, as after every other retry
            let response = self.client.send_repeatable(request).await?;
            read(response).await
        });
        match answered.await {
            Ok(Ok(answer)) => answer,
            Ok(Err(error)) => {
                let why = with_causes(&error.without_url());
                Answer::Later { why, after: None }
            }
            Err(_) => {
                let why = format!("it did not answer within {timeout:?}");
                Answer::Later { why, after: None }
            }
        }
    }

    /// Waits, but not longer than until the server stops.
    async fn pause(&mut self, pause: Duration) {
        let stopping = self.stop.wait_for(|is_stopping| *is_stopping);
        // the next attempt follows in both cases
        let _ = tokio::time::timeout(pause, stopping).await;
    }

    fn taken(&mut self, parts: u64, rejected: u64, message: &str) {
        self.stats.add_exported(parts - rejected);
        self.stats.add_failed(rejected);
        let what = self.what;
        if std::mem::take(&mut self.is_failing) {
            log::info!("the collector at {} accepts {what} again", self.target.host());
        }
        let is_due = self.partial_logged.is_none_or(|at| at.elapsed() >= PARTIAL_PAUSE);
        if (rejected > 0 || !message.is_empty()) && is_due {
            self.partial_logged = Some(Instant::now());
            let message: String = message.chars().take(MESSAGE_CHARS_MAX).collect();
            let host = self.target.host();
            log::warn!(
                "the collector at {host} rejected {rejected} of {parts} {what}: {message:?}"
            );
        }
    }

    /// Logs the first of consecutive failures; the others are only counted.
    fn log_failure(&mut self, why: &str) {
        if !std::mem::replace(&mut self.is_failing, true) {
            let (what, host) = (self.what, self.target.host());
            log::warn!("cannot export {what} to the collector at {host}: {why}");
        }
    }
}

async fn read(mut response: Response) -> Result<Answer, reqwest::Error> {
    let status = response.status().as_u16();
    let retry_after = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok());
    let retry_after = retry_after.map(str::to_owned);
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        if body.len() + chunk.len() > ANSWER_BYTES_MAX {
            body.clear();
            break;
        }
        body.extend_from_slice(&chunk);
    }
    Ok(Answer::read(status, retry_after.as_deref(), &body))
}

/// Returns a random number from 0 to 1.
fn chance() -> f64 {
    RandomState::new().build_hasher().finish() as f64 / u64::MAX as f64
}
