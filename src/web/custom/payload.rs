//! Limits the request bodies of added handlers in size and time, whichever extractor reads them.

use std::cell::{Cell, RefCell};
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use actix_web::body::{BoxBody, MessageBody};
use actix_web::dev::{Payload, ServiceRequest, ServiceResponse};
use actix_web::error::{JsonPayloadError, PayloadError};
use actix_web::http::Method;
use actix_web::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use actix_web::middleware::Next;
use actix_web::web::{Bytes, Data};
use actix_web::{Error, HttpMessage, HttpRequest, ResponseError};
use futures_util::Stream;
use serde_json::error::Category;
use tokio::time::{Sleep, sleep};

use crate::api::ApiError;
use crate::web::body::{Counted, refusal_of};
use crate::web::gate::is_upgrade;
use crate::web::settings::Settings;

/// Limits the body of a request. If reading it fails, our refusal replaces the error that the
/// handler's extractors make of that.
pub(crate) async fn bound<B: MessageBody + 'static>(
    mut request: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    let Some(settings) = request.app_data::<Data<Settings>>().cloned() else {
        log::error!("bug in the server: the application has no settings");
        return Ok(request.into_response(ApiError::Internal.error_response()));
    };
    // After an upgrade the bytes are no body.
    if *request.method() == Method::GET && is_upgrade(request.headers()) {
        return Ok(next.call(request).await?.map_into_boxed_body());
    }
    let bytes_max = settings.config.body_bytes_max;
    let length = request.headers().get(CONTENT_LENGTH).and_then(|value| value.to_str().ok());
    if length.and_then(|length| length.parse().ok()).is_some_and(|length: usize| length > bytes_max)
    {
        return Ok(request.into_response(ApiError::BodyTooLarge { bytes_max }.error_response()));
    }
    let progress = Rc::new(Progress::new(&settings));
    let payload = Bounded {
        payload: request.take_payload(),
        left: bytes_max,
        timer: None,
        progress: Rc::clone(&progress),
        settings,
    };
    request.set_payload(Payload::Stream { payload: Box::pin(payload) });
    request.extensions_mut().insert(Rc::clone(&progress));
    let response = next.call(request).await?;
    // A handler that succeeded with the incomplete body keeps its answer.
    let refusal = progress.refusal.take().filter(|_| response.response().error().is_some());
    Ok(match refusal {
        Some(refusal) => response.into_response(refusal.error_response()),
        None => response.map_into_boxed_body(),
    })
}

/// Returns whether an added handler dropped its request's body before its end; `None` for built-in
/// handlers.
pub(crate) fn is_unread(request: &HttpRequest) -> Option<bool> {
    let extensions = request.extensions();
    extensions.get::<Rc<Progress>>().map(|progress| progress.is_unread.get())
}

/// Returns the refusal of a body that is not JSON, or not of the type that a handler expects.
pub(crate) fn json_refusal(error: JsonPayloadError, request: &HttpRequest) -> Error {
    let refusal = match error {
        JsonPayloadError::Deserialize(error) if error.classify() == Category::Data => {
            ApiError::InvalidBody(error.to_string())
        }
        JsonPayloadError::Deserialize(error) => ApiError::InvalidJson(error.to_string()),
        JsonPayloadError::ContentType => {
            let declared = request.headers().get(CONTENT_TYPE);
            let declared = declared.map(|kind| String::from_utf8_lossy(kind.as_bytes()));
            ApiError::UnsupportedMediaType(declared.map_or_else(|| "none".to_owned(), Into::into))
        }
        JsonPayloadError::Overflow { limit: bytes_max }
        | JsonPayloadError::OverflowKnownLength { limit: bytes_max, .. } => {
            ApiError::BodyTooLarge { bytes_max }
        }
        // `Bounded` knows the cause; its refusal replaces this one.
        _ => ApiError::BodyBroken("cannot be read"),
    };
    refusal.into()
}

/// State of reading a body, kept with its request.
#[derive(Debug)]
struct Progress {
    /// Until the handler has ended: it may hold what it has read.
    counted: RefCell<Counted>,
    refusal: RefCell<Option<ApiError>>,
    is_complete: Cell<bool>,
    is_unread: Cell<bool>,
}

impl Progress {
    fn new(settings: &Settings) -> Self {
        let (is_complete, is_unread) = (Cell::new(false), Cell::new(false));
        let counted = RefCell::new(Counted::new(settings));
        Self { counted, refusal: RefCell::default(), is_complete, is_unread }
    }
}

struct Bounded {
    payload: Payload,
    /// Bytes that may still arrive.
    left: usize,
    /// Started at the first wait: most bodies have already arrived.
    timer: Option<Pin<Box<Sleep>>>,
    progress: Rc<Progress>,
    settings: Data<Settings>,
}

impl Bounded {
    fn accept(&mut self, piece: Bytes) -> Poll<Option<Piece>> {
        let bytes_max = self.settings.config.body_bytes_max;
        let Some(left) = self.left.checked_sub(piece.len()) else {
            return self.refuse(ApiError::BodyTooLarge { bytes_max }, PayloadError::Overflow);
        };
        self.left = left;
        let counting = self.progress.counted.borrow_mut().grow_to(bytes_max - left, &self.settings);
        match counting {
            Ok(()) => Poll::Ready(Some(Ok(piece))),
            Err(refusal) => self.refuse(refusal, PayloadError::Overflow),
        }
    }

    fn refuse(&mut self, refusal: ApiError, error: PayloadError) -> Poll<Option<Piece>> {
        self.progress.refusal.replace(Some(refusal));
        self.progress.is_unread.set(true);
        self.payload = Payload::None;
        Poll::Ready(Some(Err(error)))
    }
}

impl Drop for Bounded {
    fn drop(&mut self) {
        if !self.progress.is_complete.get() {
            self.progress.is_unread.set(true);
        }
    }
}

type Piece = Result<Bytes, PayloadError>;

impl Stream for Bounded {
    type Item = Piece;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Piece>> {
        let this = self.get_mut();
        match Pin::new(&mut this.payload).poll_next(context) {
            Poll::Ready(Some(Ok(piece))) => this.accept(piece),
            Poll::Ready(Some(Err(error))) => {
                let refusal = refusal_of(&error, this.settings.config.body_bytes_max);
                this.refuse(refusal, error)
            }
            Poll::Ready(None) => {
                this.payload = Payload::None;
                this.progress.is_complete.set(true);
                Poll::Ready(None)
            }
            Poll::Pending => {
                let timeout = this.settings.config.body_timeout;
                let timer = this.timer.get_or_insert_with(|| Box::pin(sleep(timeout)));
                match timer.as_mut().poll(context) {
                    Poll::Pending => Poll::Pending,
                    Poll::Ready(()) => {
                        let error = io::Error::from(io::ErrorKind::TimedOut);
                        this.refuse(ApiError::BodyTooSlow, PayloadError::Io(error))
                    }
                }
            }
        }
    }
}
