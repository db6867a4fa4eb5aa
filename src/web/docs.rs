//! The API document, and the pages to browse and try it. All files come from this process; the
//! browser contacts this server only.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};

use actix_web::http::header::{CONTENT_SECURITY_POLICY, HeaderValue, LOCATION};
use actix_web::web::{Bytes, Data};
use actix_web::{HttpRequest, HttpResponse};
use greenroom_actors::Runtime;
use greenroom_actors::registry::Registry;
use utoipa_swagger_ui::{Config, serve};

use crate::api::ApiError;
use crate::api::openapi::{Source, document as written};
use crate::auth::ApiKeyProvider;
use crate::threads;
use crate::web::ids;
use crate::web::settings::Settings;
use crate::web::static_file::StaticFile;

/// Path of the pages. Their links are relative, so that a proxy may add a prefix.
pub(crate) const UI: &str = "/ui";

/// Allows only our own scripts and styles; the scripts set styles of single elements.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; \
     img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; \
     frame-ancestors 'none'",
);

const PAGE: &str = include_str!("docs/ui.html");
const STYLE: &str = include_str!("docs/ui.css");
const SCRIPT: &str = include_str!("docs/ui.js");

/// Files of Swagger UI that the page loads.
const FILES: [&str; 4] =
    ["favicon-16x16.png", "favicon-32x32.png", "swagger-ui-bundle.js", "swagger-ui.css"];

/// Documents and files that are rendered once and cached.
#[derive(Debug, Default)]
pub(crate) struct Docs {
    /// For the registry of the latest request.
    document: RwLock<Option<Document>>,
    /// Held while the document is rendered, so that it is rendered once. Readers of a cached
    /// document do not wait for it.
    writing: Mutex<()>,
    page: OnceLock<StaticFile>,
    files: OnceLock<BTreeMap<&'static str, StaticFile>>,
}

#[derive(Debug, Clone)]
struct Document {
    /// Described registry. Compared by address.
    registry: Arc<Registry>,
    file: StaticFile,
}

/// `GET /doc`.
pub(crate) async fn document(
    request: HttpRequest,
    runtime: Data<Runtime>,
    settings: Data<Settings>,
    docs: Data<Docs>,
) -> HttpResponse {
    document_off_thread(&runtime, &settings, &docs).await.file.answer(&request, &settings)
}

/// Renders the document on a background thread: with thousands of workflows it takes long.
async fn document_off_thread(
    runtime: &Data<Runtime>,
    settings: &Data<Settings>,
    docs: &Data<Docs>,
) -> Document {
    let registry = runtime.registry();
    if let Some(known) = docs.known(&registry) {
        return known;
    }
    let (of, own, shared) = (settings.clone(), docs.clone(), Arc::clone(&registry));
    let writing = threads::aside(move || document_of(&of, &own, &shared));
    // Without a free thread it is rendered here.
    writing.await.unwrap_or_else(|_| {
        log::warn!("no background thread for the API document; rendering it on a worker");
        document_of(settings, docs, &registry)
    })
}

/// `GET /ui`. With a slash at the end, the relative links of the page would be wrong.
pub(crate) async fn page(
    request: HttpRequest,
    settings: Data<Settings>,
    docs: Data<Docs>,
) -> HttpResponse {
    if request.path().ends_with('/') {
        let answer = HttpResponse::PermanentRedirect().insert_header((LOCATION, "../ui")).finish();
        return std::future::ready(answer).await;
    }
    let file = docs.page.get_or_init(|| {
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
    docs: Data<Docs>,
) -> Result<HttpResponse, ApiError> {
    let name = ids::file(&request)?;
    if docs.files.get().is_none() {
        let own = docs.clone();
        // Compressing them takes a moment. Without a free thread it is done below.
        let made = threads::aside(move || own.files.get_or_init(files).len());
        if made.await.is_err() {
            log::warn!("no background thread for the files of {UI}; compressing them on a worker");
        }
    }
    let files = docs.files.get_or_init(files);
    let file = files.get(&*name).ok_or_else(|| ids::path_not_found(&request))?;
    Ok(file.answer(&request, &settings))
}

impl Docs {
    /// Returns the cached document of this registry.
    fn known(&self, registry: &Arc<Registry>) -> Option<Document> {
        let document = self.document.read().unwrap_or_else(PoisonError::into_inner);
        document.as_ref().filter(|known| Arc::ptr_eq(&known.registry, registry)).cloned()
    }
}

/// Returns the document; renders it if it is not cached. Concurrent callers wait for the first.
fn document_of(settings: &Settings, docs: &Docs, registry: &Arc<Registry>) -> Document {
    let _writing = docs.writing.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = docs.known(registry) {
        return known;
    }
    let binding = &settings.config.binding;
    let providers = &binding.auth.providers;
    let document = written(Source {
        catalogue: &binding.catalogue,
        policy: (!providers.is_empty()).then_some(&binding.auth.policy),
        takes_api_keys: providers.kinds().any(|kind| kind == ApiKeyProvider::KIND),
        registry,
    });
    let file = StaticFile::of(Bytes::from(document.to_string()), "application/json");
    let document = Document { registry: Arc::clone(registry), file };
    let mut cached = docs.document.write().unwrap_or_else(PoisonError::into_inner);
    cached.insert(document).clone()
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
