//! Files of the configuration's routes: a single one, or all of a folder and nothing beside it.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use actix_files::NamedFile;
use actix_web::body::{BodySize, BoxBody, MessageBody as _, SizedStream};
use actix_web::http::header::{CONTENT_RANGE, LOCATION};
use actix_web::http::{Method, StatusCode};
use actix_web::web::Bytes;
use actix_web::{HttpRequest, HttpResponse, ResponseError};
use futures_util::stream;

use crate::api::ApiError;
use crate::api::ids::decode;
use crate::threads;
use crate::web::custom::handler::CustomHandler;

/// What is shown for a folder.
const INDEX: &str = "index.html";
/// Times of files that have no place in a header are not told: before 1970, and 300 years later.
const YEARS: Duration = Duration::from_secs(300 * 365 * 24 * 3600);

/// Shows one file, under its own name's type.
pub(crate) fn file(path: PathBuf) -> CustomHandler {
    let path: Arc<Path> = path.into();
    CustomHandler::of(move |request: HttpRequest| {
        let path = Arc::clone(&path);
        async move {
            let opened = in_background(move || {
                let found = path.canonicalize()?;
                open(&found, &path)
            });
            answer(&request, opened.await)
        }
    })
}

/// Shows the files of a folder, for a route whose path has this many segments before its `*`.
pub(crate) fn folder(root: PathBuf, segments: usize) -> CustomHandler {
    let root: Arc<Path> = root.into();
    CustomHandler::of(move |request: HttpRequest| {
        let (root, asked) = (Arc::clone(&root), Asked::of(request.uri().path(), segments));
        async move {
            let found = match asked {
                Some(asked) => in_background(move || asked.find(&root)).await,
                None => Err(io::ErrorKind::NotFound.into()),
            };
            answer(&request, found)
        }
    })
}

/// What a path asks of a folder.
#[derive(Debug, PartialEq, Eq)]
struct Asked {
    path: PathBuf,
    /// Whether the path ends with `/`, as that of a folder does.
    is_folder: bool,
}

enum Found {
    File(Box<NamedFile>),
    /// Links in its page count from the address with a `/` at the end.
    Folder,
}

impl Asked {
    /// Reads the segments as they came. `None` for what is nothing to show: hidden names, names
    /// with slashes in them, empty ones, the two dots.
    fn of(path: &str, segments: usize) -> Option<Self> {
        let mut asked = Self { path: PathBuf::new(), is_folder: false };
        let mut tail = path.split('/').skip(segments + 1).peekable();
        while let Some(raw) = tail.next() {
            if raw.is_empty() && tail.peek().is_none() {
                asked.is_folder = true;
                break;
            }
            let name = decode(raw).filter(|name| !name.starts_with('.'))?;
            asked.path.push(&*name);
        }
        Some(asked)
    }

    /// Finds it on the disk. Where links lead counts, not what they are called.
    fn find(&self, root: &Path) -> io::Result<Found> {
        // A folder may be replaced while the server runs.
        let root = root.canonicalize()?;
        let named = root.join(&self.path);
        let found = inside(&root, &named)?;
        match (found.is_dir(), self.is_folder) {
            (true, true) => {
                let index = named.join(INDEX);
                open(&inside(&root, &index)?, &index)
            }
            (true, false) => Ok(Found::Folder),
            (false, false) => open(&found, &named),
            (false, true) => Err(io::ErrorKind::NotFound.into()),
        }
    }
}

/// The place that a path leads to, when that is in the folder and not hidden there.
fn inside(root: &Path, path: &Path) -> io::Result<PathBuf> {
    let found = path.canonicalize()?;
    let is_shown = found
        .strip_prefix(root)
        .is_ok_and(|rest| rest.iter().all(|name| !name.as_encoded_bytes().starts_with(b".")));
    if is_shown { Ok(found) } else { Err(io::ErrorKind::NotFound.into()) }
}

/// Opens a file; what else there is on a disk might never answer.
fn open(found: &Path, named: &Path) -> io::Result<Found> {
    if !found.is_file() {
        return Err(io::ErrorKind::NotFound.into());
    }
    let file = NamedFile::from_file(File::open(found)?, named)?;
    let since = file.modified().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    let is_told = since.is_some_and(|since| since < YEARS);
    let file = file.use_etag(is_told).use_last_modified(is_told).prefer_utf8(true);
    Ok(Found::File(Box::new(file)))
}

async fn in_background<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    threads::aside(work).await.flatten()
}

fn answer(request: &HttpRequest, found: io::Result<Found>) -> Result<HttpResponse, ApiError> {
    let path = request.uri().path();
    match found {
        Ok(Found::File(file)) => {
            let response = enveloped(file.into_response(request));
            Ok(if request.method() == Method::HEAD { without_body(response) } else { response })
        }
        Ok(Found::Folder) => {
            let place = format!("{path}/");
            Ok(HttpResponse::PermanentRedirect().insert_header((LOCATION, place)).finish())
        }
        Err(error) => {
            // A name that is too long, a link without an end, a file in the place of a folder.
            if error.kind() != io::ErrorKind::NotFound {
                log::warn!("{path} cannot be shown: {error}");
            }
            let method = request.method().to_string();
            Err(ApiError::PathNotFound { method, path: path.to_owned() })
        }
    }
}

/// What is answered to HEAD: the length alone. The framework would read the file to its end, for
/// nobody, and go on with that when the client has left.
fn without_body(response: HttpResponse) -> HttpResponse {
    response.map_body(|_, body| match body.size() {
        BodySize::Sized(length) => {
            BoxBody::new(SizedStream::new(length, stream::empty::<io::Result<Bytes>>()))
        }
        BodySize::None | BodySize::Stream => body,
    })
}

/// Refusals of the crate have no body of their own.
fn enveloped(response: HttpResponse) -> HttpResponse {
    let status = response.status();
    let text = match status {
        StatusCode::RANGE_NOT_SATISFIABLE => "The file has no such part",
        StatusCode::PRECONDITION_FAILED => "The file has changed",
        StatusCode::BAD_REQUEST => "The range cannot be read",
        _ => return response,
    };
    let refusal = ApiError::ByHandler { status: status.as_u16(), text: text.to_owned() };
    let mut answer = refusal.error_response();
    if let Some(range) = response.headers().get(CONTENT_RANGE) {
        answer.headers_mut().insert(CONTENT_RANGE, range.clone());
    }
    answer
}
