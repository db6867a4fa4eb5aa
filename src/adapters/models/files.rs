//! Files in messages.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use greenroom_actors::domain::message::FileSource;
use greenroom_actors::ports::model::{ModelError, ModelErrorKind};

use super::result_files::media_type_of;

/// Characters of base64 whose bytes show the type of a file.
const SHOWING_TYPE: usize = 64;

/// Returns the type and the content of a file, with the bytes of a `data:` URL taken out of it.
///
/// Where the given type is none that a provider knows, it is that of the URL, or the one that the
/// first bytes show.
pub(super) fn typed<'a>(
    media_type: &'a str,
    source: &'a FileSource,
) -> (Cow<'a, str>, Cow<'a, FileSource>) {
    let (told, source) = match source {
        FileSource::Url(url) => match inline(url) {
            Some((told, data)) => (told, Cow::Owned(FileSource::Base64(data.to_owned()))),
            None => ("", Cow::Borrowed(source)),
        },
        FileSource::Base64(_) => ("", Cow::Borrowed(source)),
    };
    let known = [media_type, told].into_iter().find(|it| is_exact(it)).map(Cow::Borrowed);
    let shown = || match &*source {
        FileSource::Base64(data) => shown_type(data).map(Cow::Borrowed),
        FileSource::Url(_) => None,
    };
    let media_type = known.or_else(shown).unwrap_or(Cow::Borrowed(media_type));
    (media_type, source)
}

/// Returns the type and the base64 of a `data:` URL.
fn inline(url: &str) -> Option<(&str, &str)> {
    let (kind, data) = url.strip_prefix("data:")?.split_once(',')?;
    let kind = kind.strip_suffix(";base64")?;
    // without parameters
    Some((kind.split(';').next().unwrap_or_default().trim(), data))
}

fn is_exact(media_type: &str) -> bool {
    !media_type.is_empty()
        && !media_type.ends_with("/*")
        && media_type != "application/octet-stream"
}

fn shown_type(base64: &str) -> Option<&'static str> {
    let first = base64.as_bytes().chunks(SHOWING_TYPE).next()?;
    media_type_of(&STANDARD.decode(first).ok()?)
}

/// Returns a `data:` URL with the bytes.
pub(super) fn data_url(media_type: &str, base64: &str) -> String {
    format!("data:{media_type};base64,{base64}")
}

/// Makes the error for a file that the provider does not take.
pub(super) fn refused_file(provider: &str, media_type: &str, takes: &str) -> ModelError {
    let kind: String = media_type.chars().take(100).collect();
    let message = format!("{provider} takes {takes}, not files of type {kind}");
    ModelError::new(ModelErrorKind::Other, message)
}
