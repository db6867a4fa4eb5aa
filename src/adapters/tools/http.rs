//! HTTP calls, of steps and of tools.
//!
//! Data in a call stays where the configuration puts it: values in URLs are encoded, values of
//! headers cannot add headers, hosts chosen by data are checked (see [`super::outgoing`]).
//! Responses are limited, and secrets are removed from them.

mod answer;
mod tool;

use std::io;

use greenroom_actors::domain::call::{HostChoice, HttpRequest, parsed_url};
use greenroom_actors::domain::definition::HttpMethod;
use greenroom_actors::domain::failure::{AttemptFailure, ErrorKind};
use greenroom_actors::domain::trace::Trace;
use greenroom_actors::ports::external_calls::CallOrigin;
use percent_encoding::{CONTROLS, utf8_percent_encode};
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, LOCATION};
use reqwest::{Method, Response, StatusCode, Url};
use serde_json::Value;

pub use self::tool::HttpTool;

use super::outgoing::{HostRefused, Outgoing};
use super::secrets::{Known, SecretLookup};
use crate::http_client::NoAddress;

/// Redirects followed in one call.
const REDIRECTS_MAX: usize = 5;

/// Header with the same value in every attempt of a call, so that a server can recognize
/// repetitions.
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// Makes HTTP calls. Clones share their connections.
#[derive(Debug, Clone)]
pub struct HttpCalls {
    pub outgoing: Outgoing,
    pub secrets: SecretLookup,
    /// Limit of a request: its URL, headers and body.
    pub request_bytes_max: usize,
    /// Limit of the body of an answer.
    pub answer_bytes_max: usize,
}

/// A call in progress.
struct Exchange<'a> {
    calls: &'a HttpCalls,
    /// For the log.
    name: &'a str,
    secrets: Known,
}

/// One request of a call: the first one, or that of a redirect.
struct Hop {
    method: Method,
    url: Url,
    headers: HeaderMap,
    body: Option<Vec<u8>>,
    choice: HostChoice,
}

impl HttpCalls {
    /// Makes a call. Texts of failures are fit for models and callers. There is no timeout: every
    /// caller has one.
    pub async fn call(
        &self,
        request: HttpRequest,
        origin: &CallOrigin,
    ) -> Result<Value, AttemptFailure> {
        let (exchange, hop) = self.prepare(request, origin).map_err(not_made)?;
        exchange.follow(hop).await
    }

    fn prepare<'a>(
        &'a self,
        request: HttpRequest,
        origin: &'a CallOrigin,
    ) -> Result<(Exchange<'a>, Hop), String> {
        let resolved =
            self.secrets.resolve(request.headers.iter().map(|(name, text)| (name, text)))?;
        let mut headers = own_headers(&request, origin)?;
        // configured headers replace our own
        for (name, value) in resolved.texts {
            let bad = |_| format!("header {name}: contains a character that no header can hold");
            let mut value = HeaderValue::from_str(&value).map_err(bad)?;
            value.set_sensitive(true);
            let bad = |_| format!("header {name}: is not the name of a header");
            headers.insert(HeaderName::try_from(&*name).map_err(bad)?, value);
        }
        let exchange = Exchange { calls: self, name: &origin.name, secrets: resolved.secrets };
        let hop = Hop {
            method: wire_method(request.method),
            url: request.url,
            headers,
            body: request.body.map(String::into_bytes),
            choice: request.host,
        };
        if hop.bytes() > self.request_bytes_max {
            return Err(format!("the request is larger than {} bytes", self.request_bytes_max));
        }
        Ok((exchange, hop))
    }
}

fn not_made(why: impl Into<String>) -> AttemptFailure {
    AttemptFailure::new(ErrorKind::Request, why)
}

fn unreadable(why: impl Into<String>) -> AttemptFailure {
    AttemptFailure::new(ErrorKind::Response, why)
}

/// Returns the headers of a call that are not configured.
fn own_headers(request: &HttpRequest, origin: &CallOrigin) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::new();
    headers.insert(IDEMPOTENCY_KEY, idempotency_key(&origin.idempotency_key)?);
    if request.body.is_some() {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    }
    for (name, value) in origin.trace.iter().flat_map(Trace::headers) {
        let value = HeaderValue::try_from(value).map_err(|error| error.to_string())?;
        headers.insert(name, value);
    }
    Ok(headers)
}

/// Encodes the id of a call: ids come from providers of models and may contain anything.
fn idempotency_key(key: &str) -> Result<HeaderValue, String> {
    let key = utf8_percent_encode(key, CONTROLS).to_string();
    HeaderValue::try_from(key).map_err(|_| "the call's id cannot be sent".to_owned())
}

fn wire_method(method: HttpMethod) -> Method {
    match method {
        HttpMethod::Get => Method::GET,
        HttpMethod::Post => Method::POST,
        HttpMethod::Put => Method::PUT,
        HttpMethod::Patch => Method::PATCH,
        HttpMethod::Delete => Method::DELETE,
    }
}

impl Exchange<'_> {
    async fn follow(&self, mut hop: Hop) -> Result<Value, AttemptFailure> {
        for _ in 0..=REDIRECTS_MAX {
            let answer = self.send(&hop).await?;
            match redirection(&answer) {
                Some(location) => {
                    let has_secret = self.cleaned(location.to_owned()) != location;
                    let next = hop.redirected(answer.status(), location, has_secret);
                    hop = next.map_err(|why| unreadable(self.cleaned(why)))?;
                }
                None => return self.read(answer).await,
            }
        }
        Err(unreadable(format!("redirected more than {REDIRECTS_MAX} times")))
    }

    async fn send(&self, hop: &Hop) -> Result<Response, AttemptFailure> {
        let client = self.calls.outgoing.client(&hop.url, hop.choice);
        let client = client.map_err(|it| self.refused(&it))?;
        let mut request = client.request(hop.method.clone(), hop.url.clone());
        request = request.headers(hop.headers.clone());
        if let Some(body) = &hop.body {
            request = request.body(body.clone());
        }
        client.send(request).await.map_err(|error| self.failure(&error, &hop.url))
    }

    async fn read(&self, answer: Response) -> Result<Value, AttemptFailure> {
        let bytes_max = self.calls.answer_bytes_max;
        let url = answer.url().clone();
        let read = answer::read(answer, bytes_max, |text| self.cleaned(text)).await;
        read.map_err(|error| match error {
            answer::AnswerError::Connection(error) => self.failure(&error, &url),
            answer::AnswerError::Answer(failure) => failure,
        })
    }

    /// Removes the secrets of the call from a server's text.
    fn cleaned(&self, text: String) -> String {
        self.secrets.removed_from(text)
    }

    /// Makes a text for models and callers, and logs the causes. Both name only the host of the
    /// URL: its path and query may be private.
    fn failure(&self, error: &reqwest::Error, url: &Url) -> AttemptFailure {
        let mut problem =
            if error.is_connect() { "cannot be reached" } else { "closed the connection early" };
        let mut causes = vec![];
        let mut next = std::error::Error::source(error);
        while let Some(cause) = next {
            if let Some(refused) = cause.downcast_ref::<HostRefused>() {
                return self.refused(refused);
            }
            if cause.is::<NoAddress>() {
                problem = "cannot be reached: its name has no address";
            }
            let refuses = |it: &io::Error| it.kind() == io::ErrorKind::ConnectionRefused;
            if cause.downcast_ref::<io::Error>().is_some_and(refuses) {
                problem = "cannot be reached: it refuses the connection";
            }
            causes.push(cause.to_string());
            next = cause.source();
        }
        let host = self.cleaned(host_of(url));
        log::warn!("{}: the call to {host} failed: {}", self.name, causes.join(": "));
        if error.is_timeout() {
            let why = format!("{host} did not answer in time");
            return AttemptFailure::new(ErrorKind::Timeout, why);
        }
        AttemptFailure::new(ErrorKind::Connection, format!("{host} {problem}"))
    }

    fn refused(&self, refused: &HostRefused) -> AttemptFailure {
        let HostRefused { host } = refused;
        log::warn!(
            "{}: refused to call {host:?}: it is not a public address; to allow it, add it to \
             [limits] outgoing_hosts",
            self.name
        );
        not_made(refused.to_string())
    }
}

/// Returns the host of a URL, with its port unless it is the default.
fn host_of(url: &Url) -> String {
    let host = url.host_str().unwrap_or("the server");
    url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

impl Hop {
    /// Returns the approximate size on the wire.
    fn bytes(&self) -> usize {
        let header = |(name, value): (&HeaderName, &HeaderValue)| name.as_str().len() + value.len();
        let headers: usize = self.headers.iter().map(header).sum();
        self.url.as_str().len() + headers + self.body.as_ref().map_or(0, Vec::len)
    }

    /// Returns the request that follows a redirect. Another origin gets none of these headers, as
    /// they may hold secrets, and no URL with a secret: its host would be looked up, and logged.
    fn redirected(
        self,
        status: StatusCode,
        location: &str,
        has_secret: bool,
    ) -> Result<Self, String> {
        let Self { mut method, url: from, mut headers, mut body, mut choice } = self;
        let bad = |_| "redirected to an invalid URL".to_owned();
        let url = from.join(location).map_err(bad)?;
        // the same checks as for a URL of data
        let url = parsed_url(url.as_str()).map_err(|why| format!("redirected to a bad {why}"))?;
        if from.scheme() == "https" && url.scheme() != "https" {
            return Err("redirected from https to http".to_owned());
        }
        if from.origin() != url.origin() {
            if has_secret {
                return Err("redirected to another origin with a secret of the call".to_owned());
            }
            headers.clear();
            choice = HostChoice::Data;
            if body.is_some() {
                headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
            }
        }
        let becomes_get = match status {
            StatusCode::SEE_OTHER => true,
            StatusCode::MOVED_PERMANENTLY | StatusCode::FOUND => method == Method::POST,
            _ => false,
        };
        if becomes_get {
            method = Method::GET;
            body = None;
            headers.remove(CONTENT_TYPE);
            headers.remove(IDEMPOTENCY_KEY);
        }
        Ok(Self { method, url, headers, body, choice })
    }
}

/// Returns the location of a redirect.
fn redirection(answer: &Response) -> Option<&str> {
    match answer.status().as_u16() {
        301 | 302 | 303 | 307 | 308 => answer.headers().get(LOCATION)?.to_str().ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
