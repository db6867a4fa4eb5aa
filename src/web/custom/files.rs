//! Files served by routes of the configuration: a single file, or a folder and nothing outside it.

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

/// File served for a folder.
const INDEX: &str = "index.html";
/// Modification times before 1970, or more than 300 years later, do not fit into a header and are
/// left out.
const YEARS: Duration = Duration::from_secs(300 * 365 * 24 * 3600);

/// Serves one file, with the content type of its name.
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

/// Serves the files of a folder, for a route whose path has this many segments before its `*`.
pub(crate) fn folder(root: PathBuf, segments: usize) -> CustomHandler {
    let root: Arc<Path> = root.into();
    CustomHandler::of(move |request: HttpRequest| {
        let requested = RequestedPath::parse(request.uri().path(), segments);
        let root = Arc::clone(&root);
        async move {
            let found = match requested {
                Some(requested) => in_background(move || requested.find(&root)).await,
                None => Err(io::ErrorKind::NotFound.into()),
            };
            answer(&request, found)
        }
    })
}

/// Path of a request below a folder.
#[derive(Debug, PartialEq, Eq)]
struct RequestedPath {
    path: PathBuf,
    /// True if the path ends with `/`.
    is_folder: bool,
}

enum Found {
    File(Box<NamedFile>),
    /// Redirected to the address with `/` at its end, because links of its page are relative to
    /// that.
    Folder,
}

impl RequestedPath {
    /// Parses the encoded segments. `None` if one is hidden, empty, `..`, or contains a slash.
    fn parse(path: &str, segments: usize) -> Option<Self> {
        let mut requested = Self { path: PathBuf::new(), is_folder: false };
        let mut tail = path.split('/').skip(segments + 1).peekable();
        while let Some(raw) = tail.next() {
            if raw.is_empty() && tail.peek().is_none() {
                requested.is_folder = true;
                break;
            }
            let name = decode(raw).filter(|name| !name.starts_with('.'))?;
            requested.path.push(&*name);
        }
        Some(requested)
    }

    /// Finds it on disk. Symbolic links are checked by their target.
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

/// Returns the canonical path if it is inside the folder and not hidden.
fn inside(root: &Path, path: &Path) -> io::Result<PathBuf> {
    let found = path.canonicalize()?;
    let is_shown = found
        .strip_prefix(root)
        .is_ok_and(|rest| rest.iter().all(|name| !name.as_encoded_bytes().starts_with(b".")));
    if is_shown { Ok(found) } else { Err(io::ErrorKind::NotFound.into()) }
}

/// Opens a regular file. Reading anything else, such as a pipe, might never end.
fn open(found: &Path, named: &Path) -> io::Result<Found> {
    if !found.is_file() {
        return Err(io::ErrorKind::NotFound.into());
    }
    let file = NamedFile::from_file(File::open(found)?, named)?;
    let since = file.modified().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    let is_representable = since.is_some_and(|since| since < YEARS);
    let file = file.use_etag(is_representable).use_last_modified(is_representable);
    let file = file.prefer_utf8(true);
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
            // A name that is too long, a cycle of links, a file in the place of a folder.
            if error.kind() != io::ErrorKind::NotFound {
                log::warn!("cannot serve {path}: {error}");
            }
            let method = request.method().to_string();
            Err(ApiError::PathNotFound { method, path: path.to_owned() })
        }
    }
}

/// Replaces the body for HEAD by its length. actix-web would read the whole file for nothing, even
/// after the client has disconnected.
fn without_body(response: HttpResponse) -> HttpResponse {
    response.map_body(|_, body| match body.size() {
        BodySize::Sized(length) => {
            BoxBody::new(SizedStream::new(length, stream::empty::<io::Result<Bytes>>()))
        }
        BodySize::None | BodySize::Stream => body,
    })
}

/// Adds the envelope to refusals of actix-files, which have no body.
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
