//! Requests on connections that are kept between them.
//!
//! The other side may close a kept connection at any time, also while the next request is on its
//! way: then there is no answer, and nothing is wrong with the request. It is sent once more, on a
//! new connection, where sending it twice does what sending it once does.

use std::cell::Cell;
use std::fmt;
use std::io;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

use reqwest::{Client, ClientBuilder, IntoUrl, Method, Request, RequestBuilder, Response};
use tower_layer::Layer;
use tower_service::Service;

/// Tells the other side that two requests are one.
const IDEMPOTENCY_KEY: &str = "idempotency-key";

tokio::task_local! {
    /// Whether a connection was made for the request that this task sends.
    static HAS_CONNECTED: Cell<bool>;
}

/// A client that outlives the end of its kept connections. Clones share them.
#[derive(Clone)]
pub(crate) struct HttpClient {
    keeping: Client,
    /// Keeps no connections; made when it is first needed.
    fresh: Arc<OnceLock<Client>>,
    builder: Arc<dyn Fn() -> ClientBuilder + Send + Sync>,
}

impl fmt::Debug for HttpClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("HttpClient").field(&self.keeping).finish()
    }
}

impl HttpClient {
    /// Takes what makes its clients.
    pub(crate) fn new(
        builder: impl Fn() -> ClientBuilder + Send + Sync + 'static,
    ) -> Result<Self, reqwest::Error> {
        let keeping = builder().connector_layer(Noting).build()?;
        Ok(Self { keeping, fresh: Arc::default(), builder: Arc::new(builder) })
    }

    /// A request in the making.
    pub(crate) fn request(&self, method: Method, url: impl IntoUrl) -> RequestBuilder {
        self.keeping.request(method, url)
    }

    /// Sends a request. Where a kept connection ends before its answer begins, the request is sent
    /// once more if its method is idempotent or it carries an `Idempotency-Key`.
    pub(crate) async fn send(&self, request: RequestBuilder) -> Result<Response, reqwest::Error> {
        let request = request.build()?;
        let again = is_repeatable(&request).then(|| request.try_clone()).flatten();
        self.send_or(request, again).await
    }

    /// The same for a request that may come twice for another reason.
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
        let sending = self.keeping.execute(request);
        let noted = async {
            let sent = sending.await;
            (sent, HAS_CONNECTED.with(Cell::get))
        };
        match (HAS_CONNECTED.scope(Cell::new(false), noted).await, again) {
            ((Err(error), false), Some(again)) if is_unanswered(&error) => {
                let host = again.url().host_str().unwrap_or_default();
                log::debug!("{host} has closed a kept connection: the request is sent again");
                self.fresh()?.execute(again).await
            }
            ((sent, _), _) => sent,
        }
    }

    fn fresh(&self) -> Result<&Client, reqwest::Error> {
        match self.fresh.get() {
            Some(client) => Ok(client),
            None => {
                let client = (self.builder)().pool_max_idle_per_host(0).build()?;
                Ok(self.fresh.get_or_init(|| client))
            }
        }
    }
}

fn is_repeatable(request: &Request) -> bool {
    request.method().is_idempotent() || request.headers().contains_key(IDEMPOTENCY_KEY)
}

/// Whether the connection ended before there was the head of an answer. Errors of sending are told
/// here alone: what ends behind the head is told by the answer's body.
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

/// Notes for whom a connection is made.
#[derive(Debug, Clone, Copy)]
struct Noting;

/// A connector that is noted.
#[derive(Debug, Clone)]
struct Noted<S>(S);

impl<S> Layer<S> for Noting {
    type Service = Noted<S>;

    fn layer(&self, connector: S) -> Noted<S> {
        Noted(connector)
    }
}

impl<S: Service<R>, R> Service<R> for Noted<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, target: R) -> S::Future {
        // a connection that is made ahead belongs to no request
        let _ = HAS_CONNECTED.try_with(|it| it.set(true));
        self.0.call(target)
    }
}

#[cfg(test)]
mod tests;
