//! Files that are sent many times, plain or in gzip, with a validator.

use std::borrow::Cow;

use actix_web::http::header::{CACHE_CONTROL, ETAG, IF_NONE_MATCH};
use actix_web::web::Bytes;
use actix_web::{HttpRequest, HttpResponse};
use sha2::{Digest, Sha256};

use crate::web::compress;
use crate::web::settings::Settings;

/// A file in memory.
#[derive(Debug, Clone)]
pub(crate) struct StaticFile {
    bytes: Bytes,
    /// Gzip form, if it is smaller.
    gzip: Option<Bytes>,
    content_type: Cow<'static, str>,
    etag: String,
}

impl StaticFile {
    /// Compresses a file, if that makes it smaller.
    pub(crate) fn of(bytes: Bytes, content_type: impl Into<Cow<'static, str>>) -> Self {
        let gzip = (bytes.len() >= compress::BYTES_MIN).then(|| compress::static_content(&bytes));
        let gzip = gzip.filter(|gzip| gzip.len() < bytes.len());
        let etag = etag_of(&bytes);
        Self { bytes, gzip, content_type: content_type.into(), etag }
    }

    /// Returns a file that is compressed already.
    #[cfg(feature = "ui")]
    pub(crate) fn packed(bytes: Bytes, gzip: &'static [u8], content_type: &'static str) -> Self {
        let etag = etag_of(&bytes);
        let gzip = Some(Bytes::from_static(gzip));
        Self { bytes, gzip, content_type: content_type.into(), etag }
    }

    /// Answers with the file, or 304 if the client's copy is current. The plain and the gzip form
    /// share one tag.
    pub(crate) fn answer(&self, request: &HttpRequest, settings: &Settings) -> HttpResponse {
        let known = request.headers().get_all(IF_NONE_MATCH).filter_map(|it| it.to_str().ok());
        let mut tags = known.flat_map(|tags| tags.split(','));
        let is_known = tags.any(|tag| {
            let tag = tag.trim();
            tag == "*" || tag.strip_prefix("W/").unwrap_or(tag) == self.etag
        });
        let mut answer = if is_known { HttpResponse::NotModified() } else { HttpResponse::Ok() };
        // The content may change with the configuration: clients revalidate each time.
        answer.insert_header((ETAG, self.etag.as_str())).insert_header((CACHE_CONTROL, "no-cache"));
        if is_known {
            return answer.finish();
        }
        answer.content_type(&*self.content_type);
        let takes_gzip = settings.config.compression && compress::is_asked_for(request.headers());
        let Some(gzip) = self.gzip.as_ref().filter(|_| takes_gzip) else {
            return answer.body(self.bytes.clone());
        };
        // Weak: different bytes of the same content.
        let mut answer =
            answer.insert_header((ETAG, format!("W/{}", self.etag))).body(gzip.clone());
        compress::mark(answer.headers_mut());
        answer
    }
}

/// Returns the validator of a content.
fn etag_of(bytes: &Bytes) -> String {
    let digest = Sha256::digest(bytes);
    let digest: String = digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    format!("\"{digest}\"")
}
