//! Files in messages.

use greenroom_actors::domain::message::FileSource;
use greenroom_actors::ports::model::{ModelError, ModelErrorKind};

/// Takes the bytes out of a `data:` URL.
pub(super) fn with_base64(source: &FileSource) -> FileSource {
    let FileSource::Url(url) = source else { return source.clone() };
    let data = url.strip_prefix("data:").and_then(|rest| rest.split_once(','));
    match data {
        Some((kind, data)) if kind.ends_with(";base64") => FileSource::Base64(data.to_owned()),
        _ => source.clone(),
    }
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
