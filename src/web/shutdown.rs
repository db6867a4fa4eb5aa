//! Signal that the server is about to stop, for connections that would otherwise never end.

use std::future::{Ready, ready};

use actix::fut::wrap_future;
use actix::{Actor, ActorFutureExt as _, AsyncContext};
use actix_web::dev::Payload;
use actix_web::{FromRequest, HttpRequest, web};
use tokio::sync::watch;

use crate::api::ApiError;

/// Reason for clients whose streams end at a stop.
pub(crate) const SHUTTING_DOWN: &str = "the server is shutting down";

/// Signal that the server stops, for handlers of added routes with long-running answers. An answer
/// that ends when the signal fires ends cleanly, and the stop does not wait for it. It fires once
/// all work of the runtime has been answered. Cheap to clone; all clones share the signal.
///
/// ```
/// use std::time::Duration;
///
/// use futures_util::stream;
/// use greenroom::Greenroom;
/// use greenroom::actix_web::{HttpResponse, Responder, web};
/// use greenroom::routes::Shutdown;
///
/// /// Sends a line every second until the server stops.
/// async fn ticks(shutdown: Shutdown) -> impl Responder {
///     let ticks = stream::unfold(shutdown, |shutdown| async move {
///         tokio::select! {
///             () = shutdown.fired() => None,
///             () = tokio::time::sleep(Duration::from_secs(1)) => {
///                 Some((Ok::<_, std::io::Error>(web::Bytes::from("tick\n")), shutdown))
///             }
///         }
///     });
///     HttpResponse::Ok().content_type("text/plain").streaming(ticks)
/// }
///
/// let server = Greenroom::new().routes(|routes| {
///     routes.get("/ticks", ticks).streaming().public();
/// });
/// # drop(server);
/// ```
#[derive(Debug, Clone)]
pub struct Shutdown(watch::Sender<bool>);

impl Shutdown {
    /// Returns a signal that has not fired.
    pub(crate) fn new() -> Self {
        Self(watch::Sender::new(false))
    }

    /// Fires the signal: event streams end, WebSockets close with 1001 (going away).
    pub(crate) fn fire(&self) {
        self.0.send_replace(true);
    }

    /// Returns whether the signal has fired.
    pub fn is_fired(&self) -> bool {
        *self.0.borrow()
    }

    /// Resolves when the signal fires.
    pub async fn fired(&self) {
        let mut signal = self.0.subscribe();
        // The sender lives in `self`: waiting cannot fail before the signal fires.
        let _ = signal.wait_for(|is_fired| *is_fired).await;
    }

    /// Calls a function of an actor when the signal fires.
    pub(crate) fn notify<A>(&self, ctx: &mut A::Context, act: fn(&mut A, &mut A::Context))
    where
        A: Actor,
        A::Context: AsyncContext<A>,
    {
        let shutdown = self.clone();
        let fired = wrap_future::<_, A>(async move { shutdown.fired().await });
        ctx.spawn(fired.map(move |(), actor, ctx| act(actor, ctx)));
    }
}

impl FromRequest for Shutdown {
    type Error = ApiError;
    type Future = Ready<Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let own = request.app_data::<web::Data<Self>>();
        ready(Ok(own.map(|own| Self::clone(own)).unwrap_or_default()))
    }
}

impl Default for Shutdown {
    fn default() -> Self {
        Self::new()
    }
}
