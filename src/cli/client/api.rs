//! Requests to a server, and its refusals.

use std::time::Duration;

use percent_encoding::percent_decode_str;
use reqwest::header::HeaderMap;
use reqwest::redirect::Policy;
use reqwest::{Method, RequestBuilder, Response, Url};
use serde_json::Value;

use super::exit::{Exit, Failure};
use super::refusal::{Reply, refusal_of, request_id_of};
use super::settings::Target;
use super::sse::Events;
use super::unreachable::{self, silent};
use crate::http_client::{HttpClient, builder};
use crate::loopback::is_loopback;

/// Time in which a connection is made.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Time in which a request is answered that waits for no execution and no agent.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

/// Limits of time.
#[derive(Debug, Clone, Copy)]
struct Limits {
    answer: Duration,
    silence: Duration,
}

/// Time in which a stream has to bring something: a server sends a heartbeat every 15 seconds.
const SILENCE_MAX: Duration = Duration::from_secs(120);

/// Maximum size of an answer: states with large values are the largest that a server returns.
const BODY_BYTES_MAX: usize = 256 << 20;

/// A server.
#[derive(Debug)]
pub(super) struct Api {
    http: HttpClient,
    target: Target,
    limits: Limits,
}

/// Kind of answer that a request waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Awaits {
    /// The whole answer, which comes within [`ANSWER_TIMEOUT`].
    Answer,
    /// A stream: its begin comes within [`ANSWER_TIMEOUT`].
    Stream,
    /// The end of an execution, a tool or an agent, which has no limit.
    Work,
}

/// A request.
#[derive(Debug)]
pub(super) struct Call<'a> {
    method: Method,
    path: &'a [&'a str],
    query: &'a [(&'a str, &'a str)],
    headers: &'a [(&'a str, &'a str)],
    body: Option<&'a Value>,
    awaits: Awaits,
}

impl<'a> Call<'a> {
    /// Reads something.
    pub(super) fn get(path: &'a [&'a str]) -> Self {
        let (query, headers) = (&[], &[]);
        Self { method: Method::GET, path, query, headers, body: None, awaits: Awaits::Answer }
    }

    /// Changes something.
    pub(super) fn post(path: &'a [&'a str], body: &'a Value) -> Self {
        Self { method: Method::POST, body: Some(body), ..Self::get(path) }
    }

    pub(super) fn query(self, query: &'a [(&'a str, &'a str)]) -> Self {
        Self { query, ..self }
    }

    pub(super) fn headers(self, headers: &'a [(&'a str, &'a str)]) -> Self {
        Self { headers, ..self }
    }

    /// Waits for the answer without a limit: until an execution or an agent has ended.
    pub(super) fn long(self) -> Self {
        Self { awaits: Awaits::Work, ..self }
    }

    /// Waits for the begin of a stream, which may last.
    pub(super) fn stream(self) -> Self {
        Self { awaits: Awaits::Stream, ..self }
    }
}

impl Api {
    /// Prepares calls of a server; connects to nothing.
    pub(super) fn new(target: Target) -> Result<Self, Failure> {
        let is_near = is_loopback(&target.server);
        let http = HttpClient::new(move || {
            let client = builder().connect_timeout(CONNECT_TIMEOUT).redirect(Policy::none());
            // a connection of HTTP/2 cannot become a WebSocket
            let client = client.http1_only();
            // a proxy cannot reach this machine
            if is_near { client.no_proxy() } else { client }
        });
        let http = http.map_err(|error| Failure::new(Exit::Failed, error.to_string()))?;
        let limits = Limits { answer: ANSWER_TIMEOUT, silence: SILENCE_MAX };
        Ok(Self { http, target, limits })
    }

    /// Returns the URL of the server.
    pub(super) fn server(&self) -> &Url {
        &self.target.server
    }

    /// Sends a request and returns the `data` of the answer.
    pub(super) async fn data(&self, call: Call<'_>) -> Result<Value, Failure> {
        let mut reply = self.reply(call).await?;
        match reply.body.get_mut("data") {
            Some(data) => Ok(data.take()),
            None => Err(self.foreign(reply.status, &reply.headers)),
        }
    }

    /// Sends a request and returns the whole answer.
    pub(super) async fn reply(&self, call: Call<'_>) -> Result<Reply, Failure> {
        let reply = self.any_reply(call).await?;
        if reply.is_refusal() { Err(self.refused(&reply)) } else { Ok(reply) }
    }

    /// Sends a request and returns the whole answer, also if it is a refusal.
    pub(super) async fn any_reply(&self, call: Call<'_>) -> Result<Reply, Failure> {
        let response = self.send(call).await?;
        self.read(response).await
    }

    /// Sends a request and returns the answer with its body unread. Fails with the refusal of the
    /// server.
    pub(super) async fn open(&self, call: Call<'_>) -> Result<Response, Failure> {
        let response = self.send(call).await?;
        if response.status().is_success() || response.status() == 101 {
            return Ok(response);
        }
        Err(self.refused(&self.read(response).await?))
    }

    /// Sends a request for a stream of events.
    pub(super) async fn events(&self, call: Call<'_>) -> Result<(u16, Events), Failure> {
        let response = self.open(call.stream()).await?;
        let status = response.status().as_u16();
        Ok((status, Events::of(response, self.limits.silence)))
    }

    /// Returns the time in which a stream has to bring something.
    pub(super) fn silence(&self) -> Duration {
        self.limits.silence
    }

    /// Returns a refusal as a failure.
    pub(super) fn refused(&self, reply: &Reply) -> Failure {
        let refusal = refusal_of(reply, self.target.token.is_some());
        let is_route = |part: &str| ["agents", "inbox", "tools", "workflows"].contains(&part);
        // behind the URL of a list, the rest of a route reads as an id
        let ends_as_route = || {
            self.server().path_segments().and_then(|mut it| it.next_back()).is_some_and(is_route)
        };
        if reply.is_of_route() || reply.status == 404 && ends_as_route() {
            return unreachable::beside_path(refusal, self.server());
        }
        refusal
    }

    async fn send(&self, call: Call<'_>) -> Result<Response, Failure> {
        let request = self.request(&call)?;
        let sending = self.http.send(request);
        let sent = match call.awaits {
            Awaits::Work => sending.await,
            Awaits::Answer | Awaits::Stream => tokio::time::timeout(self.limits.answer, sending)
                .await
                .map_err(|_elapsed| silent(self.server()))?,
        };
        sent.map_err(|error| self.unreachable(&error))
    }

    /// Reads an answer, which is JSON or empty; a refusal has its text.
    async fn read(&self, response: Response) -> Result<Reply, Failure> {
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let path = self.parts_of(response.url());
        let bytes = self.whole(response).await?;
        let body = match serde_json::from_slice(&bytes) {
            Ok(body) => body,
            Err(_) if bytes.is_empty() => Value::Null,
            Err(_) => return Err(self.foreign(status, &headers)),
        };
        let reply = Reply { status, headers, path, body };
        if reply.is_refusal() && !reply.body["error"].is_string() {
            return Err(self.foreign(status, &reply.headers));
        }
        Ok(reply)
    }

    /// Reads a body to its end.
    async fn whole(&self, mut response: Response) -> Result<Vec<u8>, Failure> {
        let mut bytes = Vec::new();
        while let Some(part) = response.chunk().await.map_err(|error| self.unreachable(&error))? {
            if bytes.len() + part.len() > BODY_BYTES_MAX {
                let why = format!("the answer has more than {} MiB", BODY_BYTES_MAX >> 20);
                return Err(Failure::new(Exit::Failed, why));
            }
            bytes.extend_from_slice(&part);
        }
        Ok(bytes)
    }

    fn request(&self, call: &Call<'_>) -> Result<RequestBuilder, Failure> {
        let url = self.url(call.path, call.query)?;
        let mut request = self.http.request(call.method.clone(), url);
        if call.awaits == Awaits::Answer {
            request = request.timeout(self.limits.answer);
        }
        for (name, value) in call.headers {
            request = request.header(*name, *value);
        }
        if let Some(body) = call.body {
            request = request.json(body);
        }
        if let Some(token) = &self.target.token {
            request = request.bearer_auth(token.reveal());
        }
        Ok(request)
    }

    fn url(&self, path: &[&str], query: &[(&str, &str)]) -> Result<Url, Failure> {
        let mut url = self.target.server.clone();
        // an id of dots would name another route
        if path.iter().any(|part| matches!(*part, "" | "." | "..")) {
            return Err(Failure::usage("an id must not be empty, \".\" or \"..\""));
        }
        if let Ok(mut parts) = url.path_segments_mut() {
            parts.pop_if_empty().extend(path);
        }
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        Ok(url)
    }

    /// Returns the failure of a request without an answer.
    pub(super) fn unreachable(&self, error: &reqwest::Error) -> Failure {
        unreachable::unreachable(self.server(), error)
    }

    /// Returns the failure of an answer that no server of this kind gives.
    fn foreign(&self, status: u16, headers: &HeaderMap) -> Failure {
        unreachable::foreign(self.server(), status).of_request(request_id_of(headers))
    }

    /// Returns the parts of the path of a request, without those of the server.
    fn parts_of(&self, url: &Url) -> Vec<String> {
        let parts = |url: &Url| -> Vec<String> {
            let parts = url.path_segments().into_iter().flatten().filter(|part| !part.is_empty());
            parts.map(|part| percent_decode_str(part).decode_utf8_lossy().into_owned()).collect()
        };
        let base = parts(self.server()).len();
        parts(url).into_iter().skip(base).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn api(server: &str) -> Api {
        Api::new(Target { server: Url::parse(server).unwrap(), token: None }).unwrap()
    }

    #[test]
    fn ids_are_one_part_of_a_path() {
        for (server, expected) in [
            ("http://x", "http://x/workflows/a%2Fb%3F%20c?q=%26"),
            ("http://x/base/", "http://x/base/workflows/a%2Fb%3F%20c?q=%26"),
            ("http://x/base", "http://x/base/workflows/a%2Fb%3F%20c?q=%26"),
        ] {
            let url = api(server).url(&["workflows", "a/b? c"], &[("q", "&")]).unwrap();
            assert_eq!(url.as_str(), expected);
        }
        for id in ["", ".", ".."] {
            let refused = api("http://x").url(&["workflows", id], &[]).unwrap_err();
            assert_eq!(refused.exit, Exit::Usage, "{id:?}");
        }
    }

    /// Returns the URL of a server that accepts connections, and sends `answer` again and again.
    fn mute(answer: &'static str) -> String {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                std::thread::spawn(move || {
                    use std::io::{Read as _, Write as _};
                    let _ = stream.read(&mut [0; 4096]).unwrap();
                    while !answer.is_empty() && stream.write_all(answer.as_bytes()).is_ok() {}
                    std::thread::park();
                });
            }
        });
        url
    }

    #[tokio::test]
    async fn a_server_that_says_nothing_is_not_waited_for() {
        let soon = Duration::from_millis(50);
        for answer in ["", "HTTP/1.1 100 Continue\r\n\r\n"] {
            let limits = Limits { answer: soon, silence: soon };
            let api = Api { limits, ..api(&mute(answer)) };
            for call in [Call::get(&["agents"]), Call::get(&["ws", "logs"]).stream()] {
                let failure = api.open(call).await.unwrap_err();
                assert_eq!(failure.exit, Exit::Timeout, "{answer}: {failure}");
                assert!(failure.is_transient());
            }
        }
    }

    #[test]
    fn proxies_are_for_other_machines() {
        for (url, expected) in [
            ("http://127.0.0.1:3141", true),
            ("http://[::1]:3141", true),
            ("http://localhost", true),
            ("http://localhost.example", false),
            ("https://10.0.0.1", false),
        ] {
            assert_eq!(is_loopback(&Url::parse(url).unwrap()), expected, "{url}");
        }
    }
}
