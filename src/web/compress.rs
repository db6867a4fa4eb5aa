//! Gzip for complete JSON answers and pages, if the client accepts it. Streams and small answers
//! are not compressed.
//!
//! The size of a compressed answer leaks a little of its content (BREACH). No answer contains a
//! token or a key, so there is no secret of that kind to guess. If an attacker who can choose parts
//! of an answer and watch its size must not guess the rest, `server.compression` turns this off.

use std::io::Write as _;

use actix_web::body::{BodySize, BoxBody, MessageBody as _};
use actix_web::dev::ServiceResponse;
use actix_web::http::header::{
    ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, ETAG, HeaderMap, HeaderValue, VARY,
};
use actix_web::web::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;

/// Smallest answer worth compressing.
pub(crate) const BYTES_MIN: usize = 1024;
/// Largest answer that is compressed on the worker's thread.
const HERE_BYTES_MAX: u64 = 64 * 1024;

/// Compressible content types.
const TEXTS: [&str; 5] =
    ["application/json", "application/problem+json", "text/html", "text/css", "text/javascript"];

/// Returns true if the client accepts gzip.
pub(crate) fn is_asked_for(headers: &HeaderMap) -> bool {
    let lines = headers.get_all(ACCEPT_ENCODING).filter_map(|line| line.to_str().ok());
    lines.flat_map(|line| line.split(',')).any(|coding| {
        let mut parts = coding.split(';').map(str::trim);
        let is_gzip = parts.next().is_some_and(|name| {
            name.eq_ignore_ascii_case("gzip") || name.eq_ignore_ascii_case("x-gzip")
        });
        let is_refused = parts
            .filter_map(|part| part.strip_prefix("q=").or_else(|| part.strip_prefix("Q=")))
            .any(|weight| weight.parse().is_ok_and(|weight: f32| weight <= 0.0));
        is_gzip && !is_refused
    })
}

/// Compresses content that is sent many times, at a better level.
pub(crate) fn static_content(bytes: &[u8]) -> Bytes {
    gzip(bytes, Compression::default())
}

fn gzip(bytes: &[u8], level: Compression) -> Bytes {
    let mut encoder = GzEncoder::new(Vec::with_capacity(bytes.len() / 4), level);
    // Writing to memory does not fail.
    let written = encoder.write_all(bytes).and_then(|()| encoder.finish());
    Bytes::from(written.unwrap_or_default())
}

/// Sets the headers of a compressed answer.
pub(crate) fn mark(headers: &mut HeaderMap) {
    headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    headers.append(VARY, HeaderValue::from_static("accept-encoding"));
}

/// Compresses an answer if that is worthwhile.
pub(crate) async fn compressed(response: ServiceResponse<BoxBody>) -> ServiceResponse<BoxBody> {
    let BodySize::Sized(size) = response.response().body().size() else { return response };
    if size < BYTES_MIN as u64 || !shrinks(response.headers()) {
        return response;
    }
    let (request, response) = response.into_parts();
    let (mut response, body) = response.into_parts();
    let body = match body.try_into_bytes() {
        Ok(bytes) => bytes,
        Err(body) => return ServiceResponse::new(request, response.set_body(body)),
    };
    mark(response.headers_mut());
    let body = match size <= HERE_BYTES_MAX {
        true => gzip(&body, Compression::fast()),
        false => gzip_on_thread(body).await,
    };
    ServiceResponse::new(request, response.set_body(BoxBody::new(body)))
}

async fn gzip_on_thread(bytes: Bytes) -> Bytes {
    let shared = bytes.clone();
    let compressing = crate::threads::aside(move || gzip(&shared, Compression::fast()));
    // Without a free thread it is done here.
    compressing.await.unwrap_or_else(|_| gzip(&bytes, Compression::fast()))
}

/// Returns true for compressible types. Answers with an ETag are files, which bring their own
/// encoding, or asks, whose tag would have to be another one.
fn shrinks(headers: &HeaderMap) -> bool {
    if headers.contains_key(CONTENT_ENCODING) || headers.contains_key(ETAG) {
        return false;
    }
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    TEXTS.contains(&kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gzip_is_accepted_by_name_unless_its_weight_is_zero() {
        let rows: [(&[&str], bool); 9] = [
            (&[], false),
            (&[""], false),
            (&["identity"], false),
            (&["br, gzip"], true),
            (&["GZIP;q=0.5"], true),
            (&["gzip;q=0"], false),
            (&["gzip; q=0.000, deflate"], false),
            (&["*"], false),
            (&["br", "x-gzip"], true),
        ];
        for (lines, expected) in rows {
            let mut headers = HeaderMap::new();
            for line in lines {
                headers.append(ACCEPT_ENCODING, HeaderValue::from_static(line));
            }
            assert_eq!(is_asked_for(&headers), expected, "{lines:?}");
        }
    }
}
