//! Streams of events of a server over HTTP, watched while they are read: too many messages, and
//! messages that are too deep.

use std::collections::HashMap;
use std::future::ready;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::StreamExt as _;
use http::{HeaderName, HeaderValue};
use rmcp::model::ClientJsonRpcMessage;
use rmcp::transport::common::client_side_sse::BoxedSseResponse;
use rmcp::transport::streamable_http_client::{
    SseError, StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
    StreamableHttpResponseLimits,
};
use tokio::time::sleep;

use crate::adapters::mcp::connection::faults::{Findings, Shape};
use crate::adapters::mcp::connection::invalid_answers::in_place_of;
use crate::adapters::mcp::oauth::{Token, Tokens};
use crate::adapters::mcp::reasons::{challenge_of, refused};

/// Shortest pause before a stream of events is opened again, whatever the server says.
const RETRY_MIN: Duration = Duration::from_secs(1);

type HttpResult<T> = Result<T, StreamableHttpError<reqwest::Error>>;

/// Id of a session that a server over HTTP has given. Clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct SessionId(Arc<Mutex<Option<Arc<str>>>>);

impl SessionId {
    pub(crate) fn get(&self) -> Option<Arc<str>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn set(&self, id: Option<Arc<str>>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = id;
    }
}

/// An HTTP client whose streams of events end with a fault, like the output of a program.
#[derive(Debug, Clone)]
pub(crate) struct WatchedClient {
    client: reqwest::Client,
    findings: Findings,
    session: SessionId,
    limits: StreamableHttpResponseLimits,
    /// Tokens that requests have.
    tokens: Option<Tokens>,
}

impl WatchedClient {
    /// Watches a client. `message_bytes_max` bounds events and bodies.
    pub(crate) fn of(
        client: reqwest::Client,
        findings: Findings,
        session: SessionId,
        message_bytes_max: usize,
    ) -> Self {
        let mut limits = StreamableHttpResponseLimits::default();
        limits.max_sse_event_size = message_bytes_max;
        limits.max_json_response_size = message_bytes_max;
        Self { client, findings, session, limits, tokens: None }
    }

    /// Adds tokens to all requests.
    pub(crate) fn with_tokens(self, tokens: Option<Tokens>) -> Self {
        Self { tokens, ..self }
    }

    /// Sends a request with a token, if there are any. One that is refused for its token is sent again
    /// with another one: once because the token has ended, and once because its scope is too narrow.
    /// Without tokens it is not copied.
    async fn authorized<R, T, F>(
        &self,
        request: R,
        send: impl Fn(R, Option<String>) -> F,
    ) -> HttpResult<T>
    where
        R: Clone,
        F: Future<Output = HttpResult<T>>,
    {
        let Some(tokens) = &self.tokens else { return send(request, None).await };
        let text = |token: &Option<Arc<Token>>| token.as_ref().map(|token| token.text.clone());
        let mut token = tokens.current().await.map_err(refused)?;
        let (mut may_renew, mut may_widen) = (true, true);
        loop {
            let error = match send(request.clone(), text(&token)).await {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            let used = token.as_ref();
            token = match challenge_of(&error) {
                Some((401, header)) if std::mem::take(&mut may_renew) => {
                    Some(tokens.renewed(used, header).await.map_err(refused)?)
                }
                Some((403, header)) if std::mem::take(&mut may_widen) => {
                    match tokens.widened(used, header).await.map_err(refused)? {
                        Some(wider) => Some(wider),
                        None => return Err(error),
                    }
                }
                Some((401, _)) => return Err(refused(tokens.refused_again(used))),
                _ => return Err(error),
            };
        }
    }

    /// Ends a stream at the first message that is a fault.
    fn watched(&self, events: BoxedSseResponse) -> BoxedSseResponse {
        let (findings, reader) = (self.findings.clone(), self.findings.clone());
        let is_fine = move |text: &str| {
            let noted = findings.message().and_then(|()| {
                let mut shape = Shape::default();
                let mut take = |byte| match shape.take(byte)? {
                    true => findings.request(),
                    false => Ok(()),
                };
                text.bytes().try_for_each(&mut take)
            });
            noted.map_err(|why| findings.fault(&why)).is_ok()
        };
        let watch = events.take_while(move |event| {
            ready(event.as_ref().map_or(true, |event| is_fine(event.data.as_deref().unwrap_or(""))))
        });
        let slow = watch.map(move |event| {
            event.map(|mut event| {
                event.retry = event.retry.map(slower);
                let is_message = matches!(event.event.as_deref(), None | Some("" | "message"));
                let message = event.data.as_ref().filter(|it| is_message && !it.trim().is_empty());
                if let Some(read) = message.and_then(|it| in_place_of(it.as_bytes(), &reader)) {
                    event.data = Some(read);
                }
                event
            })
        });
        slow.boxed()
    }
}

/// Returns a pause in milliseconds that is not too short.
fn slower(pause: u64) -> u64 {
    pause.max(RETRY_MIN.as_secs() * 1000)
}

/// Delays the end of a stream that broke: it is opened again at once.
async fn late<T>(event: Result<T, SseError>) -> Result<T, SseError> {
    if event.is_err() {
        sleep(RETRY_MIN).await;
    }
    event
}

impl StreamableHttpClient for WatchedClient {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> HttpResult<StreamableHttpPostResponse> {
        let limits = self.limits;
        self.post_message_with_response_limits(
            uri,
            message,
            session_id,
            auth_header,
            custom_headers,
            limits,
        )
        .await
    }

    async fn post_message_with_response_limits(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
        limits: StreamableHttpResponseLimits,
    ) -> HttpResult<StreamableHttpPostResponse> {
        self.session.set(session_id.clone());
        let send = |(message, session_id, headers), token: Option<String>| {
            let auth_header = token.or_else(|| auth_header.clone());
            self.client.post_message_with_response_limits(
                Arc::clone(&uri),
                message,
                session_id,
                auth_header,
                headers,
                limits,
            )
        };
        let answer = self.authorized((message, session_id, custom_headers), send).await?;
        Ok(match answer {
            StreamableHttpPostResponse::Sse(events, session) => {
                StreamableHttpPostResponse::Sse(self.watched(events), session)
            }
            answer => answer,
        })
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> HttpResult<()> {
        let send = |headers, token: Option<String>| {
            let auth_header = token.or_else(|| auth_header.clone());
            let (uri, session_id) = (Arc::clone(&uri), Arc::clone(&session_id));
            self.client.delete_session(uri, session_id, auth_header, headers)
        };
        self.authorized(custom_headers, send).await
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> HttpResult<BoxedSseResponse> {
        let event_bytes_max = self.limits.max_sse_event_size;
        self.get_stream_with_max_sse_event_size(
            uri,
            session_id,
            last_event_id,
            auth_header,
            custom_headers,
            event_bytes_max,
        )
        .await
    }

    async fn get_stream_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
        event_bytes_max: usize,
    ) -> HttpResult<BoxedSseResponse> {
        let send = |(session_id, last_event_id, headers), token: Option<String>| {
            let auth_header = token.or_else(|| auth_header.clone());
            self.client.get_stream_with_max_sse_event_size(
                Arc::clone(&uri),
                session_id,
                last_event_id,
                auth_header,
                headers,
                event_bytes_max,
            )
        };
        let request = (session_id, last_event_id, custom_headers);
        let events = self.authorized(request, send).await?;
        Ok(self.watched(events).then(late).boxed())
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;

    use super::*;

    /// Returns the number of events that are read of this stream, and the reason of its end.
    async fn read(events: String) -> (usize, String) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            assert!(stream.read(&mut [0; 4096]).unwrap() > 0);
            let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
            // the client may leave early
            let _ = stream.write_all(format!("{head}{events}").as_bytes());
        });
        let findings = Findings::default();
        let client = crate::http_client::builder().build().unwrap();
        let client = WatchedClient::of(client, findings.clone(), SessionId::default(), 1 << 20);
        let stream = client.get_stream(url.into(), None, None, None, HashMap::new()).await.unwrap();
        let count = stream.count().await;
        server.join().unwrap();
        (count, findings.explain("it ended".to_owned()))
    }

    #[tokio::test]
    async fn deep_messages_and_floods_end_a_stream() {
        let ping = "data: {\"method\":\"ping\"}\n\n";
        let deep = format!("{ping}data: {}\n\n{ping}", "[".repeat(200));
        for (events, count, reason) in [
            (ping.repeat(10_000), 10_000, "it ended"),
            (
                ping.repeat(10_001),
                10_000,
                "it sent over 10000 requests and notifications within 10 seconds",
            ),
            (deep, 1, "it sent a message that is nested deeper than 120 levels"),
        ] {
            let read = read(events).await;
            assert_eq!((read.0, read.1.as_str()), (count, reason));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn streams_are_not_opened_again_at_once() {
        assert_eq!([0, 999, 1500].map(slower), [1000, 1000, 1500]);
        let begun = tokio::time::Instant::now();
        assert!(late(Err::<(), _>(SseError::Body("broken".into()))).await.is_err());
        assert_eq!(begun.elapsed(), RETRY_MIN);
        assert!(late(Ok(())).await.is_ok());
        assert_eq!(begun.elapsed(), RETRY_MIN, "events are not delayed");
    }
}
