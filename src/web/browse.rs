//! The pages to browse and try the API. All files come from this process; the browser contacts this
//! server only.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use actix_web::http::header::{CONTENT_SECURITY_POLICY, HeaderValue, LOCATION};
use actix_web::web::{Bytes, Data};
use actix_web::{HttpRequest, HttpResponse};
use utoipa_swagger_ui::{Config, serve};

use crate::api::ApiError;
use crate::threads;
use crate::web::ids;
use crate::web::settings::Settings;
use crate::web::static_file::StaticFile;

/// Path of the pages, for the log. Their links are relative, so that a proxy may add a prefix.
const UI: &str = "/ui";

/// Allows only our own scripts and styles; the scripts set styles of single elements.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; \
     img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; \
     frame-ancestors 'none'",
);

const PAGE: &str = include_str!("browse/ui.html");
const STYLE: &str = include_str!("browse/ui.css");
const SCRIPT: &str = include_str!("browse/ui.js");

/// Files of Swagger UI that the page loads.
const FILES: [&str; 4] =
    ["favicon-16x16.png", "favicon-32x32.png", "swagger-ui-bundle.js", "swagger-ui.css"];

/// The files, prepared at the first request.
#[derive(Debug, Default)]
pub(crate) struct Browser {
    page: OnceLock<StaticFile>,
    files: OnceLock<BTreeMap<&'static str, StaticFile>>,
}

/// `GET /ui`. With a slash at the end, the relative links of the page would be wrong.
pub(crate) async fn page(
    request: HttpRequest,
    settings: Data<Settings>,
    browser: Data<Browser>,
) -> HttpResponse {
    if request.path().ends_with('/') {
        let answer = HttpResponse::PermanentRedirect().insert_header((LOCATION, "../ui")).finish();
        return std::future::ready(answer).await;
    }
    let file = browser.page.get_or_init(|| {
        StaticFile::of(Bytes::from_static(PAGE.as_bytes()), "text/html; charset=utf-8")
    });
    let mut answer = file.answer(&request, &settings);
    answer.headers_mut().insert(CONTENT_SECURITY_POLICY, POLICY);
    std::future::ready(answer).await
}

/// `GET /ui/:file`.
pub(crate) async fn file(
    request: HttpRequest,
    settings: Data<Settings>,
    browser: Data<Browser>,
) -> Result<HttpResponse, ApiError> {
    let name = ids::file(&request)?;
    if browser.files.get().is_none() {
        let own = browser.clone();
        // Compressing them takes a moment. Without a free thread it is done below.
        let made = threads::aside(move || own.files.get_or_init(files).len());
        if made.await.is_err() {
            log::warn!("no background thread for the files of {UI}; compressing them on a worker");
        }
    }
    let files = browser.files.get_or_init(files);
    let file = files.get(&*name).ok_or_else(|| ids::path_not_found(&request))?;
    Ok(file.answer(&request, &settings))
}

/// Returns the files of the page by name.
fn files() -> BTreeMap<&'static str, StaticFile> {
    let config = Arc::new(Config::new(["doc"]));
    let mut files = BTreeMap::new();
    for name in FILES {
        match serve(name, Arc::clone(&config)) {
            Ok(Some(file)) => {
                let bytes = match file.bytes {
                    Cow::Borrowed(bytes) => Bytes::from_static(bytes),
                    Cow::Owned(bytes) => Bytes::from(bytes),
                };
                files.insert(name, StaticFile::of(bytes, with_charset(file.content_type)));
            }
            Ok(None) => log::error!("the file {name} of {UI} is missing"),
            Err(error) => log::error!("the file {name} of {UI} cannot be read: {error}"),
        }
    }
    let style = Bytes::from_static(STYLE.as_bytes());
    files.insert("ui.css", StaticFile::of(style, "text/css; charset=utf-8"));
    let script = Bytes::from_static(SCRIPT.as_bytes());
    files.insert("ui.js", StaticFile::of(script, "text/javascript; charset=utf-8"));
    files
}

fn with_charset(content_type: String) -> String {
    if content_type.starts_with("text/") && !content_type.contains("charset") {
        return content_type + "; charset=utf-8";
    }
    content_type
}
