//! Answers to requests whose body is left unread.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use actix_web::body::{BodySize, BoxBody, MessageBody};
use actix_web::dev::ServiceResponse;
use actix_web::http::ConnectionType;
use actix_web::web::Bytes;
use actix_web::{HttpMessage as _, HttpRequest};
use greenroom_actors::observe::disconnect::Disconnect;
use tokio::sync::oneshot;

use crate::web::peer::Peer;

/// Time from the end of an answer to the close of its connection.
const GRACE: Duration = Duration::from_secs(1);

/// Body of an answer, which reports its end.
struct Last {
    body: BoxBody,
    /// Dropped with the body.
    _end: oneshot::Sender<()>,
}

impl MessageBody for Last {
    type Error = <BoxBody as MessageBody>::Error;

    fn size(&self) -> BodySize {
        self.body.size()
    }

    fn poll_next(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, Self::Error>>> {
        Pin::new(&mut self.body).poll_next(context)
    }
}

/// Marks a request whose body is left unread.
struct Unread;

/// Notes that the body of a request is left unread. actix-web would receive a chunked one for as long as
/// the client sends.
pub(super) fn leave_body(request: &HttpRequest) {
    request.extensions_mut().insert(Unread);
}

/// Has the connection closed once the answer to a request whose body is left unread has had time to be
/// sent.
pub(super) fn last(response: ServiceResponse<BoxBody>) -> ServiceResponse<BoxBody> {
    if !response.request().extensions().contains::<Unread>() {
        return response;
    }
    let disconnect = Peer::disconnect_of(response.request());
    response.map_body(|head, body| {
        head.set_connection_type(ConnectionType::Close);
        last_of(disconnect, body)
    })
}

fn last_of(disconnect: Disconnect, body: BoxBody) -> BoxBody {
    let (end, ended) = oneshot::channel::<()>();
    actix_web::rt::spawn(async move {
        // an error: the body was dropped, which is its end
        let _ = ended.await;
        tokio::time::sleep(GRACE).await;
        disconnect();
    });
    Last { body, _end: end }.boxed()
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use actix_web::body::{BodyStream, to_bytes};
    use futures_util::stream;

    use super::*;

    #[actix_web::test]
    async fn a_connection_is_closed_after_the_end_of_its_answer() {
        tokio::time::pause();
        let is_closed = Arc::new(AtomicBool::new(false));
        let closes = Arc::clone(&is_closed);
        let disconnect: Disconnect = Arc::new(move || closes.store(true, Ordering::SeqCst));
        let slow = stream::unfold(0, async |pieces| {
            tokio::time::sleep(GRACE).await;
            (pieces < 5).then(|| (Ok::<_, Infallible>(Bytes::from_static(b"x")), pieces + 1))
        });
        let body = last_of(disconnect, BodyStream::new(Box::pin(slow)).boxed());
        assert_eq!(to_bytes(body).await.unwrap(), "xxxxx");
        assert!(!is_closed.load(Ordering::SeqCst), "it may still be on its way");
        tokio::time::sleep(2 * GRACE).await;
        assert!(is_closed.load(Ordering::SeqCst));
    }
}
