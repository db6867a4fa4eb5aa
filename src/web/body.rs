//! The body of a request: limited in size and time, read when the handler asks for it.

use std::future::{Ready, ready};

use actix_web::dev::Payload;
use actix_web::error::PayloadError;
use actix_web::http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HeaderMap};
use actix_web::web::{Bytes, BytesMut, Data};
use actix_web::{FromRequest, HttpRequest};
use futures_util::{FutureExt, StreamExt};

use crate::api::ApiError;
use crate::api::json::is_json;
use crate::web::backlog::{Held, SHARE_MIN};
use crate::web::settings::Settings;

const FORM: &str = "application/x-www-form-urlencoded";

/// A body that has not been read.
pub(crate) struct Body {
    payload: Payload,
    kind: Result<MediaType, ApiError>,
    length: Option<usize>,
    settings: Data<Settings>,
}

/// Declared type of a body.
#[derive(Debug, Clone, PartialEq, Eq)]
enum MediaType {
    /// Declared as JSON, or not declared.
    Json,
    /// Accepted if it parses as JSON. Has the declaration.
    Text(String),
    /// A form of a page without scripts.
    Form,
}

impl FromRequest for Body {
    type Error = ApiError;
    type Future = Ready<Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let Some(settings) = request.app_data::<Data<Settings>>() else {
            log::error!("bug in the server: the application has no settings");
            return ready(Err(ApiError::Internal));
        };
        let kind = kind_of(request.headers());
        let length = request.headers().get(CONTENT_LENGTH);
        let length = length.and_then(|value| value.to_str().ok()?.parse().ok());
        ready(Ok(Self { payload: payload.take(), kind, length, settings: settings.clone() }))
    }
}

impl Body {
    /// Reads the body for a subject. The error of the subject comes first, but only after the body
    /// has been read: actix-web closes a connection whose body was left unread. Handlers that wait
    /// for work drop the body before: its memory counts among that of all bodies.
    pub(crate) async fn read_for<T>(
        self,
        subject: Result<T, ApiError>,
    ) -> Result<(T, Bytes), ApiError> {
        let bytes = self.read().await;
        Ok((subject?, bytes?))
    }

    /// Like [`Body::read_for`], for a subject that is looked up afterwards: errors of the body must
    /// not be reported before that.
    pub(crate) async fn take_for<T>(
        self,
        subject: Result<T, ApiError>,
    ) -> Result<(T, Result<Bytes, ApiError>), ApiError> {
        let bytes = self.read().await;
        Ok((subject?, bytes))
    }

    /// Reads a submitted form.
    pub(crate) async fn read_form(self) -> Result<Bytes, ApiError> {
        match self.kind.clone()? {
            MediaType::Form => self.collect().await,
            MediaType::Json | MediaType::Text(_) => Err(ApiError::FormOnly),
        }
    }

    /// Reads the whole body.
    async fn read(self) -> Result<Bytes, ApiError> {
        let kind = self.kind.clone()?;
        if kind == MediaType::Form {
            return Err(ApiError::UnsupportedMediaType(FORM.to_owned()));
        }
        let bytes = self.collect().await?;
        match kind {
            MediaType::Text(declared) if !bytes.is_empty() && !is_json(&bytes) => {
                Err(ApiError::UnsupportedMediaType(declared))
            }
            MediaType::Text(_) | MediaType::Json | MediaType::Form => Ok(bytes),
        }
    }

    async fn collect(self) -> Result<Bytes, ApiError> {
        let Self { payload, kind: _, length, settings } = self;
        let bytes_max = settings.config.body_bytes_max;
        if length.is_some_and(|length| length > bytes_max) {
            return Err(ApiError::BodyTooLarge { bytes_max });
        }
        let mut reading = Box::pin(collect(payload, &settings));
        // Most bodies have already arrived: no timer for them.
        match reading.as_mut().now_or_never() {
            Some(outcome) => outcome,
            None => tokio::time::timeout(settings.config.body_timeout, reading)
                .await
                .unwrap_or(Err(ApiError::BodyTooSlow)),
        }
    }
}

async fn collect(mut payload: Payload, settings: &Settings) -> Result<Bytes, ApiError> {
    let bytes_max = settings.config.body_bytes_max;
    let mut counted = Counted::new(settings);
    let mut first = Bytes::new();
    let mut whole = BytesMut::new();
    while let Some(chunk) = payload.next().await {
        let chunk = chunk.map_err(|error| refusal_of(&error, bytes_max))?;
        let length = first.len() + whole.len() + chunk.len();
        if length > bytes_max {
            return Err(ApiError::BodyTooLarge { bytes_max });
        }
        counted.grow_to(length, settings)?;
        if first.is_empty() && whole.is_empty() {
            first = chunk;
            continue;
        }
        if whole.is_empty() {
            whole.extend_from_slice(&std::mem::take(&mut first));
        }
        whole.extend_from_slice(&chunk);
        // The buffer grows ahead of its content.
        counted.grow_to(whole.capacity(), settings)?;
    }
    let body = if whole.is_empty() { first } else { whole.freeze() };
    Ok(counted.keep_with(body))
}

/// Counts the memory of one body among that of all.
#[derive(Debug)]
pub(crate) struct Counted(Held);

/// A body that counts until its last slice is dropped.
struct CountedBody {
    bytes: Bytes,
    _held: Held,
}

impl Counted {
    pub(crate) fn new(settings: &Settings) -> Self {
        Self(settings.bodies.nothing())
    }

    /// Counts a body of this size, or refuses it. Small bodies always fit: the buffers of their
    /// connections have the same size.
    pub(crate) fn grow_to(&mut self, bytes: usize, settings: &Settings) -> Result<(), ApiError> {
        if self.0.try_grow_to(bytes.saturating_sub(SHARE_MIN)) {
            Ok(())
        } else {
            Err(settings.bodies.refusal(settings.requests()))
        }
    }

    fn keep_with(self, bytes: Bytes) -> Bytes {
        let Self(held) = self;
        if held.bytes() == 0 {
            return bytes;
        }
        Bytes::from_owner(CountedBody { bytes, _held: held })
    }
}

impl AsRef<[u8]> for CountedBody {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

pub(crate) fn refusal_of(error: &PayloadError, bytes_max: usize) -> ApiError {
    match error {
        PayloadError::Overflow => ApiError::BodyTooLarge { bytes_max },
        PayloadError::Incomplete(_) => ApiError::BodyBroken("ends before it is complete"),
        _ => ApiError::BodyBroken("cannot be read"),
    }
}

/// Returns the declared type; refuses types and encodings that are not supported.
fn kind_of(headers: &HeaderMap) -> Result<MediaType, ApiError> {
    let text = |name| {
        let value = headers.get(name)?;
        Some(String::from_utf8_lossy(value.as_bytes()))
    };
    match text(CONTENT_ENCODING) {
        Some(coding) if !coding.trim().eq_ignore_ascii_case("identity") => {
            return Err(ApiError::UnsupportedEncoding(coding.into_owned()));
        }
        Some(_) | None => {}
    }
    let kind = text(CONTENT_TYPE).map_or(Ok(MediaType::Json), |declared| media_type(&declared));
    kind.map_err(ApiError::UnsupportedMediaType)
}

/// Decides once, by the declared type.
fn media_type(declared: &str) -> Result<MediaType, String> {
    let mut parts = declared.split(';').map(str::trim);
    let essence = parts.next().unwrap_or_default().to_ascii_lowercase();
    let charset = parts.find_map(|part| {
        let (name, value) = part.split_once('=')?;
        name.eq_ignore_ascii_case("charset").then(|| value.trim_matches('"').to_ascii_lowercase())
    });
    if charset.is_some_and(|charset| !matches!(charset.as_str(), "utf-8" | "utf8" | "us-ascii")) {
        return Err(declared.to_owned());
    }
    match essence.as_str() {
        FORM => Ok(MediaType::Form),
        "application/json" | "" => Ok(MediaType::Json),
        other if other.starts_with("application/") && other.ends_with("+json") => {
            Ok(MediaType::Json)
        }
        other if other.starts_with("text/") => Ok(MediaType::Text(declared.to_owned())),
        _ => Err(declared.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use actix_web::test::{TestRequest, call_service, init_service, read_body};
    use actix_web::{App, web};

    use super::*;
    use crate::web::settings::WebConfig;
    use crate::web::shutdown::Shutdown;

    async fn echo(body: Body) -> Result<Bytes, ApiError> {
        body.read().await
    }

    /// Sends a body to an echo handler; returns the status and the body of the answer.
    async fn check(request: TestRequest) -> (u16, String) {
        let config = WebConfig { body_bytes_max: 20, ..WebConfig::default() };
        let settings = Data::new(Settings::of(config, Shutdown::new()));
        answer(settings, request).await
    }

    async fn answer(settings: Data<Settings>, request: TestRequest) -> (u16, String) {
        let app = App::new().app_data(settings).route("/", web::post().to(echo));
        let app = init_service(app).await;
        let response =
            call_service(&app, request.method(actix_web::http::Method::POST).to_request()).await;
        let status = response.status().as_u16();
        (status, String::from_utf8(read_body(response).await.to_vec()).unwrap())
    }

    fn typed(kind: &str, body: &'static str) -> TestRequest {
        TestRequest::default().insert_header((CONTENT_TYPE, kind.to_owned())).set_payload(body)
    }

    #[actix_web::test]
    async fn the_declared_content_type_decides() {
        let untyped = TestRequest::default().set_payload("{\"a\":1}");
        assert_eq!(check(untyped).await, (200, "{\"a\":1}".to_owned()));
        let rows = [
            ("application/json", "{}", 200),
            ("application/json; charset=UTF-8", "{}", 200),
            ("application/ld+json", "{}", 200),
            ("text/plain", "{}", 200),
            ("text/plain", "hello", 415),
            ("application/json; charset=utf-16", "{}", 415),
            ("application/x-www-form-urlencoded", "{}", 415),
            ("multipart/form-data", "{}", 415),
        ];
        for (kind, body, status) in rows {
            assert_eq!(check(typed(kind, body)).await.0, status, "{kind} with {body}");
        }
    }

    #[actix_web::test]
    async fn a_refused_type_is_named_as_it_was_sent() {
        for kind in ["text/xml", "text/plain; charset=utf-8", "image/png"] {
            let (_, answer) = check(typed(kind, "<a/>")).await;
            let text = format!("Content type {kind} is not supported, send application/json");
            assert!(answer.contains(&text), "{answer}");
        }
    }

    #[actix_web::test]
    async fn encoded_bodies_are_refused() {
        for (coding, status) in [("identity", 200), ("Identity ", 200), ("gzip", 415), ("", 415)] {
            let coded = typed("application/json", "{}");
            let coded = coded.insert_header((CONTENT_ENCODING, coding));
            assert_eq!(check(coded).await.0, status, "{coding:?}");
        }
    }

    #[actix_web::test]
    async fn a_body_that_is_too_large_is_refused() {
        let (status, answer) =
            check(typed("application/json", "{\"a\":\"0123456789abcdef\"}")).await;
        assert_eq!(status, 413);
        assert_eq!(
            answer,
            "{\"success\":false,\"error\":\"Request body is larger than 20 bytes\"}"
        );
    }

    #[actix_web::test]
    async fn the_bodies_of_all_requests_are_limited_together() {
        let config = WebConfig { requests_bytes_max: 100_000, ..WebConfig::default() };
        let settings = Data::new(Settings::of(config, Shutdown::new()));
        let send = |length: usize| {
            let body = TestRequest::default().set_payload("1".repeat(length));
            answer(settings.clone(), body)
        };
        assert_eq!(send(200_000).await.0, 200, "the only one");
        assert_eq!(settings.bodies.bounds(), (100_000, 0), "nothing is held after the answer");
        let others = settings.bodies.hold(90_000);
        let (status, answer) = send(43_000).await;
        assert_eq!(status, 503);
        assert!(answer.contains("Too much data of request bodies is arriving at once"), "{answer}");
        assert_eq!(send(SHARE_MIN).await.0, 200, "small ones always fit");
        assert_eq!(settings.bodies.bounds().1, 90_000, "a refusal counts nothing");
        drop(others);
        assert_eq!(send(43_000).await.0, 200);
    }

    #[actix_web::test]
    async fn a_body_counts_until_it_is_dropped() {
        let settings = Data::new(Settings::of(WebConfig::default(), Shutdown::new()));
        let mut counted = Counted::new(&settings);
        counted.grow_to(SHARE_MIN + 10, &settings).unwrap();
        let body = counted.keep_with(Bytes::from_static(b"0123"));
        let part = body.slice(1..2);
        drop(body);
        assert_eq!((&part[..], settings.bodies.bounds().1), (&b"1"[..], 10));
        drop(part);
        assert_eq!(settings.bodies.bounds().1, 0);
    }
}
