//! The API document.

use std::sync::{Arc, Mutex, PoisonError, RwLock};

use actix_web::web::{Bytes, Data};
use actix_web::{HttpRequest, HttpResponse};
use greenroom_actors::Runtime;
use greenroom_actors::registry::Registry;

use crate::api::openapi::{Source, document as written};
use crate::auth::ApiKeyProvider;
use crate::threads;
use crate::web::settings::Settings;
use crate::web::static_file::StaticFile;

/// The document, which is rendered once and cached.
#[derive(Debug, Default)]
pub(crate) struct Docs {
    /// For the registry of the latest request.
    document: RwLock<Option<Document>>,
    /// Held while the document is rendered, so that it is rendered once. Readers of a cached
    /// document do not wait for it.
    writing: Mutex<()>,
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
