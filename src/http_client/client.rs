//! Requests on reused connections.
//!
//! A server may close an idle connection at any time, also while the next request is on its way:
//! then there is no response, and nothing is wrong with the request. It is sent again, on a new
//! connection, if repeating it is safe.

use std::cell::Cell;
use std::fmt;
use std::io;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

use reqwest::{Client, ClientBuilder, IntoUrl, Method, Request, RequestBuilder, Response};
use tower_layer::Layer;
use tower_service::Service;

/// Header by which a server recognizes a repeated request.
#[cfg(any(feature = "cli", feature = "mcp", feature = "providers"))]
const IDEMPOTENCY_KEY: &str = "idempotency-key";

tokio::task_local! {
    /// True once a connection was made for the request that this task sends.
    static HAS_CONNECTED: Cell<bool>;
}

/// A client that repeats requests whose reused connection was closed. Clones share connections.
#[derive(Clone)]
pub(crate) struct HttpClient {
    pooled: Client,
    /// Client without a connection pool; made on first use.
    unpooled: Arc<OnceLock<Client>>,
    builder: Arc<dyn Fn() -> ClientBuilder + Send + Sync>,
}

impl fmt::Debug for HttpClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("HttpClient").field(&self.pooled).finish()
    }
}

impl HttpClient {
    /// Builds the pooled client, and keeps the builder for the unpooled one.
    pub(crate) fn new(
        builder: impl Fn() -> ClientBuilder + Send + Sync + 'static,
    ) -> Result<Self, reqwest::Error> {
        let pooled = builder().connector_layer(RecordingLayer).build()?;
        Ok(Self { pooled, unpooled: Arc::default(), builder: Arc::new(builder) })
    }

    /// Starts building a request.
    pub(crate) fn request(&self, method: Method, url: impl IntoUrl) -> RequestBuilder {
        self.pooled.request(method, url)
    }

    /// Sends a request. If a reused connection ends before the response begins, the request is sent
    /// again if its method is idempotent or it carries an `Idempotency-Key`.
    #[cfg(any(feature = "cli", feature = "mcp", feature = "providers"))]
    pub(crate) async fn send(&self, request: RequestBuilder) -> Result<Response, reqwest::Error> {
        let request = request.build()?;
        let again = is_repeatable(&request).then(|| request.try_clone()).flatten();
        self.send_or(request, again).await
    }

    /// Sends a request that is safe to repeat whatever its method.
    #[cfg(feature = "otel")]
    pub(crate) async fn send_repeatable(
        &self,
        request: RequestBuilder,
    ) -> Result<Response, reqwest::Error> {
        let request = request.build()?;
        let again = request.try_clone();
        self.send_or(request, again).await
    }

    async fn send_or(
        &self,
        request: Request,
        again: Option<Request>,
    ) -> Result<Response, reqwest::Error> {
        let sending = self.pooled.execute(request);
        let recorded = async {
            let sent = sending.await;
            (sent, HAS_CONNECTED.with(Cell::get))
        };
        match (HAS_CONNECTED.scope(Cell::new(false), recorded).await, again) {
            ((Err(error), false), Some(again)) if is_unanswered(&error) => {
                let host = again.url().host_str().unwrap_or_default();
                log::debug!("{host} closed a reused connection; sending the request again");
                self.unpooled()?.execute(again).await
            }
            ((sent, _), _) => sent,
        }
    }

    fn unpooled(&self) -> Result<&Client, reqwest::Error> {
        match self.unpooled.get() {
            Some(client) => Ok(client),
            None => {
                let client = (self.builder)().pool_max_idle_per_host(0).build()?;
                Ok(self.unpooled.get_or_init(|| client))
            }
        }
    }
}

#[cfg(any(feature = "cli", feature = "mcp", feature = "providers"))]
fn is_repeatable(request: &Request) -> bool {
    request.method().is_idempotent() || request.headers().contains_key(IDEMPOTENCY_KEY)
}

/// Returns true if the connection ended before the head of a response. Only errors of sending come
/// here: a connection that ends after the head is an error of the response body.
fn is_unanswered(error: &reqwest::Error) -> bool {
    let first: &(dyn std::error::Error + 'static) = error;
    std::iter::successors(Some(first), |error| error.source()).any(|cause| {
        let is_cut = |error: &hyper::Error| error.is_incomplete_message() || error.is_closed();
        let is_ended = |error: &io::Error| {
            matches!(
                error.kind(),
                io::ErrorKind::ConnectionReset
                    | io::ErrorKind::ConnectionAborted
                    | io::ErrorKind::BrokenPipe
                    | io::ErrorKind::NotConnected
                    | io::ErrorKind::UnexpectedEof
            )
        };
        cause.downcast_ref().is_some_and(is_cut) || cause.downcast_ref().is_some_and(is_ended)
    })
}

/// Wraps the connector, to record new connections.
#[derive(Debug, Clone, Copy)]
struct RecordingLayer;

/// A connector that sets [`HAS_CONNECTED`] for the request that needs a connection.
#[derive(Debug, Clone)]
struct Recording<S>(S);

impl<S> Layer<S> for RecordingLayer {
    type Service = Recording<S>;

    fn layer(&self, connector: S) -> Recording<S> {
        Recording(connector)
    }
}

impl<S: Service<R>, R> Service<R> for Recording<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, target: R) -> S::Future {
        // connections opened in advance belong to no request
        let _ = HAS_CONNECTED.try_with(|it| it.set(true));
        self.0.call(target)
    }
}

#[cfg(test)]
mod tests;
