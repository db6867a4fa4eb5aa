//! The API document, and the pages to browse and try it. Everything comes from this process: a
//! browser asks no other host.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};

use actix_web::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, ETAG, HeaderValue, IF_NONE_MATCH, LOCATION,
};
use actix_web::web::{Bytes, Data};
use actix_web::{HttpRequest, HttpResponse};
use greenroom_actors::Runtime;
use greenroom_actors::registry::Registry;
use sha2::{Digest, Sha256};
use utoipa_swagger_ui::{Config, serve};

use crate::api::ApiError;
use crate::api::openapi::{Source, document as written};
use crate::auth::ApiKeyProvider;
use crate::threads;
use crate::web::settings::Settings;
use crate::web::{compress, ids};

/// Where the pages are. Their links are relative, so that a proxy may put a path in front.
pub(crate) const UI: &str = "/ui";

/// Scripts and styles are files of ours; styles of single elements are set by the scripts.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; \
     img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; \
     frame-ancestors 'none'",
);

const PAGE: &str = include_str!("docs/ui.html");
const STYLE: &str = include_str!("docs/ui.css");
const SCRIPT: &str = include_str!("docs/ui.js");

/// What the page asks for, of the files that there are.
const FILES: [&str; 4] =
    ["favicon-16x16.png", "favicon-32x32.png", "swagger-ui-bundle.js", "swagger-ui.css"];

/// What is written once and then sent as it is.
#[derive(Debug, Default)]
pub(crate) struct Docs {
    /// Of the newest registry that somebody asked under.
    document: RwLock<Option<Document>>,
    /// Held by who writes it: nobody waits for that but who needs it.
    writing: Mutex<()>,
    page: OnceLock<File>,
    files: OnceLock<BTreeMap<&'static str, File>>,
}

#[derive(Debug, Clone)]
struct Document {
    /// What it describes. Its address alone says whether it is the one in use.
    registry: Arc<Registry>,
    file: File,
}

#[derive(Debug, Clone)]
struct File {
    bytes: Bytes,
    /// The same in gzip, where that is smaller.
    gzip: Option<Bytes>,
    content_type: Cow<'static, str>,
    etag: String,
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

/// Writes the document where it keeps nobody waiting: with thousands of workflows it takes long.
async fn document_off_thread(
    runtime: &Data<Runtime>,
    settings: &Data<Settings>,
    docs: &Data<Docs>,
) -> Document {
    let registry = runtime.registry();
    if let Some(known) = docs.known(&registry) {
        return known;
    }
    let (asked, own, shared) = (settings.clone(), docs.clone(), Arc::clone(&registry));
    let writing = threads::aside(move || document_of(&asked, &own, &shared));
    // Where there is no thread for it, it is written when it is needed.
    writing.await.unwrap_or_else(|_| {
        log::warn!("no thread writes the API document");
        document_of(settings, docs, &registry)
    })
}

/// `GET /ui`. With a slash at the end, the page would look for its files in the wrong place.
pub(crate) async fn page(
    request: HttpRequest,
    settings: Data<Settings>,
    docs: Data<Docs>,
) -> HttpResponse {
    if request.path().ends_with('/') {
        let answer = HttpResponse::PermanentRedirect().insert_header((LOCATION, "../ui")).finish();
        return std::future::ready(answer).await;
    }
    let file = docs
        .page
        .get_or_init(|| File::of(Bytes::from_static(PAGE.as_bytes()), "text/html; charset=utf-8"));
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
        let asked = docs.clone();
        // Compressing them takes a moment. Where there is no thread for it, it is done below.
        let made = threads::aside(move || asked.files.get_or_init(files).len());
        if made.await.is_err() {
            log::warn!("no thread prepares the files of {UI}");
        }
    }
    let files = docs.files.get_or_init(files);
    let file = files.get(&*name).ok_or_else(|| ids::path_not_found(&request))?;
    Ok(file.answer(&request, &settings))
}

impl Docs {
    /// The document of this registry, if it has been written.
    fn known(&self, registry: &Arc<Registry>) -> Option<Document> {
        let document = self.document.read().unwrap_or_else(PoisonError::into_inner);
        document.as_ref().filter(|known| Arc::ptr_eq(&known.registry, registry)).cloned()
    }
}

/// Whoever asks while it is written waits for it.
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
    let file = File::of(Bytes::from(document.to_string()), "application/json");
    let document = Document { registry: Arc::clone(registry), file };
    let mut kept = docs.document.write().unwrap_or_else(PoisonError::into_inner);
    kept.insert(document).clone()
}

/// The files of the page.
fn files() -> BTreeMap<&'static str, File> {
    let config = Arc::new(Config::new(["doc"]));
    let mut files = BTreeMap::new();
    for name in FILES {
        match serve(name, Arc::clone(&config)) {
            Ok(Some(file)) => {
                let bytes = match file.bytes {
                    Cow::Borrowed(bytes) => Bytes::from_static(bytes),
                    Cow::Owned(bytes) => Bytes::from(bytes),
                };
                files.insert(name, File::of(bytes, with_charset(file.content_type)));
            }
            Ok(None) => log::error!("the file {name} of {UI} is missing"),
            Err(error) => log::error!("the file {name} of {UI} cannot be read: {error}"),
        }
    }
    let style = Bytes::from_static(STYLE.as_bytes());
    files.insert("ui.css", File::of(style, "text/css; charset=utf-8"));
    let script = Bytes::from_static(SCRIPT.as_bytes());
    files.insert("ui.js", File::of(script, "text/javascript; charset=utf-8"));
    files
}

fn with_charset(content_type: String) -> String {
    if content_type.starts_with("text/") && !content_type.contains("charset") {
        return content_type + "; charset=utf-8";
    }
    content_type
}

impl File {
    fn of(bytes: Bytes, content_type: impl Into<Cow<'static, str>>) -> Self {
        let digest = Sha256::digest(&bytes);
        let digest: String = digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
        let gzip = (bytes.len() >= compress::BYTES_MIN).then(|| compress::well(&bytes));
        let gzip = gzip.filter(|gzip| gzip.len() < bytes.len());
        Self { bytes, gzip, content_type: content_type.into(), etag: format!("\"{digest}\"") }
    }

    /// The file, or that the client's is still the newest. The forms of a file have one tag: who
    /// has one of them needs no other.
    fn answer(&self, request: &HttpRequest, settings: &Settings) -> HttpResponse {
        let known = request.headers().get_all(IF_NONE_MATCH).filter_map(|it| it.to_str().ok());
        let mut tags = known.flat_map(|tags| tags.split(','));
        let is_known = tags.any(|tag| {
            let tag = tag.trim();
            tag == "*" || tag.strip_prefix("W/").unwrap_or(tag) == self.etag
        });
        let mut answer = if is_known { HttpResponse::NotModified() } else { HttpResponse::Ok() };
        // What it is may change with the configuration: clients ask each time.
        answer.insert_header((ETAG, self.etag.as_str())).insert_header((CACHE_CONTROL, "no-cache"));
        if is_known {
            return answer.finish();
        }
        answer.content_type(&*self.content_type);
        let takes_gzip = settings.config.compression && compress::is_asked_for(request.headers());
        let Some(gzip) = self.gzip.as_ref().filter(|_| takes_gzip) else {
            return answer.body(self.bytes.clone());
        };
        // Weak: other bytes of the same.
        let mut answer =
            answer.insert_header((ETAG, format!("W/{}", self.etag))).body(gzip.clone());
        compress::mark(answer.headers_mut());
        answer
    }
}
