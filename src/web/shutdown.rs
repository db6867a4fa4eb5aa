//! The word that the server is about to stop, for connections that would otherwise never end.

use std::future::{Ready, ready};

use actix_web::dev::Payload;
use actix_web::{FromRequest, HttpRequest, web};
use tokio::sync::watch;

use crate::api::ApiError;

/// The word that the server stops, for handlers of routes of one's own whose answers go on for long:
/// an answer that ends when it is said is ended in order, and the stop does not wait for it. It is
/// said when all work of the runtime has been answered. Cheap to clone; all clones are the same word.
///
/// ```
/// use std::time::Duration;
///
/// use futures_util::stream;
/// use greenroom::Greenroom;
/// use greenroom::actix_web::{HttpResponse, Responder, web};
/// use greenroom::routes::Shutdown;
///
/// /// Says every second that it is there, until the server stops.
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
    /// A word that has not been said.
    pub(crate) fn new() -> Self {
        Self(watch::Sender::new(false))
    }

    /// Says it: event streams end, WebSockets close as going away.
    pub(crate) fn fire(&self) {
        self.0.send_replace(true);
    }

    /// Whether it has been said.
    pub fn is_fired(&self) -> bool {
        *self.0.borrow()
    }

    /// Resolves when it is said.
    pub async fn fired(&self) {
        let mut word = self.0.subscribe();
        // The sender lives in `self`: waiting cannot fail before the word is said.
        let _ = word.wait_for(|is_fired| *is_fired).await;
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
