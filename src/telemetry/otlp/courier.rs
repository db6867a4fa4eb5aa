//! Sends one request after the other to the address of one signal.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::sync::Arc;
use std::time::Duration;

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
/// What a collector has to say is short.
const ANSWER_BYTES_MAX: usize = 64 * 1024;
/// Words of a collector that are repeated in the log.
const MESSAGE_CHARS_MAX: usize = 200;
/// Between two reports of parts that were not taken.
const PARTIAL_PAUSE: Duration = Duration::from_secs(60);

pub(super) struct Courier {
    /// `spans`, `data points` or `log records`.
    what: &'static str,
    target: Target,
    client: HttpClient,
    stats: Arc<SignalStats>,
    retry: Retry,
    stop: watch::Receiver<bool>,
    /// Whether the newest request was not taken: told when it changes.
    is_failing: bool,
    partial_told: Option<Instant>,
}

impl Courier {
    pub(super) fn new(
        what: &'static str,
        target: Target,
        stats: Arc<SignalStats>,
        retry: Retry,
        stop: watch::Receiver<bool>,
    ) -> Result<Self, reqwest::Error> {
        let is_local = target.is_local;
        let client = HttpClient::new(move || {
            // The operator named this address.
            let client = http_client::builder().redirect(Policy::none());
            if is_local { client.no_proxy() } else { client }
        })?;
        let (is_failing, partial_told) = (false, None);
        Ok(Self { what, target, client, stats, retry, stop, is_failing, partial_told })
    }

    /// Sends a request with so many parts until it is taken or given up, and counts them. Once the
    /// server stops there are no pauses, and there is one attempt more at most.
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
            self.tell_trouble(&why);
            let Some(pause) = self.retry.pause(failed, asked, chance()) else { break why };
            if *self.stop.borrow() {
                break why;
            }
            self.rest(pause).await;
        };
        self.tell_trouble(&why);
        self.stats.add_failed(parts);
    }

    async fn send(&self, body: Vec<u8>) -> Answer {
        let Target { url, headers, timeout, .. } = &self.target;
        let request = self.client.request(Method::POST, url.clone()).headers(headers.clone());
        let request = request.header(CONTENT_TYPE, PROTOBUF).body(body);
        let deadline = Instant::now() + *timeout;
        let answered = timeout_at(deadline, async {
            // what a collector gets twice it may count twice, as after every other failed attempt
            let response = self.client.send_repeatable(request).await?;
            read(response).await
        });
        match answered.await {
            Ok(Ok(answer)) => answer,
            Ok(Err(error)) => {
                let why = chain(&error.without_url());
                Answer::Later { why, after: None }
            }
            Err(_) => {
                let why = format!("it did not answer within {timeout:?}");
                Answer::Later { why, after: None }
            }
        }
    }

    /// Rests; no longer than until the server stops.
    async fn rest(&mut self, pause: Duration) {
        let stopping = self.stop.wait_for(|is_stopping| *is_stopping);
        // either way the next attempt follows
        let _ = tokio::time::timeout(pause, stopping).await;
    }

    fn taken(&mut self, parts: u64, rejected: u64, message: &str) {
        self.stats.add_exported(parts - rejected);
        self.stats.add_failed(rejected);
        let what = self.what;
        if std::mem::take(&mut self.is_failing) {
            log::info!("the collector at {} takes {what} again", self.host());
        }
        let told_long_ago = self.partial_told.is_none_or(|at| at.elapsed() >= PARTIAL_PAUSE);
        if (rejected > 0 || !message.is_empty()) && told_long_ago {
            self.partial_told = Some(Instant::now());
            let message: String = message.chars().take(MESSAGE_CHARS_MAX).collect();
            let host = self.host();
            log::warn!("the collector at {host} refused {rejected} of {parts} {what}: {message:?}");
        }
    }

    /// Tells of trouble when it begins; what follows is counted.
    fn tell_trouble(&mut self, why: &str) {
        if !std::mem::replace(&mut self.is_failing, true) {
            let (what, host) = (self.what, self.host());
            log::warn!("the collector at {host} takes no {what}: {why}");
        }
    }

    /// What may be shown of the address: the rest of it may hold a key.
    fn host(&self) -> String {
        let Target { url, .. } = &self.target;
        let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
        format!("{}{port}", url.host_str().unwrap_or_default())
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

/// An error with its causes, which tell more than it does.
fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

/// From 0 to 1.
fn chance() -> f64 {
    RandomState::new().build_hasher().finish() as f64 / u64::MAX as f64
}
