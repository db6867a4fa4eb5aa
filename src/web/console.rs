//! The console: its page, which is the same at every path, and the files of the page. Nothing in them
//! depends on what runs here, so that they need no token; what they show comes from the API.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::sync::OnceLock;

use actix_web::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, HeaderValue, REFERRER_POLICY,
};
use actix_web::web::{Bytes, Data};
use actix_web::{HttpRequest, HttpResponse};
use flate2::read::GzDecoder;
use serde_json::json;

use self::files::{ASSETS, PAGE};
use crate::api::ApiError;
use crate::web::html::escape;
use crate::web::ids;
use crate::web::settings::Settings;
use crate::web::static_file::StaticFile;

/// The built files, packed by the build script.
mod files {
    include!(concat!(env!("OUT_DIR"), "/console.rs"));
}

/// Place in the page for what it has to know about this server.
const PLACE: &str = "<meta name=\"greenroom\" content=\"{}\" />";

/// Path of the files.
const FILES: &str = "/console/assets";

/// Allows only files and the API of this server.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; \
     form-action 'none'; frame-ancestors 'none'",
);

/// Names of assets change with their content.
const FOR_EVER: HeaderValue = HeaderValue::from_static("public, max-age=31536000, immutable");

/// Settings of the console.
#[derive(Debug, Clone, Default)]
pub(crate) struct ConsoleSettings {
    /// Shows no actions.
    pub is_read_only: bool,
    /// Name of the environment.
    pub title: String,
    /// Colour of the environment, as `#rrggbb`.
    pub accent: Option<String>,
    /// Address of the page where people get a token.
    pub login_url: Option<String>,
}

/// The files, prepared at the first request.
#[derive(Debug, Default)]
pub(crate) struct Console {
    page: OnceLock<StaticFile>,
    assets: OnceLock<BTreeMap<&'static str, StaticFile>>,
}

/// `GET /console`, and every path under it but those of files, whose paths have no further segments.
pub(crate) async fn page(
    request: HttpRequest,
    settings: Data<Settings>,
    console: Data<Console>,
) -> Result<HttpResponse, ApiError> {
    let path = request.uri().path();
    if path == FILES || path.strip_prefix(FILES).is_some_and(|rest| rest.starts_with('/')) {
        return Err(ids::path_not_found(&request));
    }
    let page = console.page.get_or_init(|| {
        let is_checked = !settings.config.binding.auth.providers.is_empty();
        let page = PAGE.replacen(PLACE, &filled(&settings.config.console, is_checked), 1);
        StaticFile::of(Bytes::from(page), "text/html; charset=utf-8")
    });
    let mut answer = page.answer(&request, &settings);
    answer.headers_mut().insert(CONTENT_SECURITY_POLICY, POLICY);
    // addresses have filters and ids
    answer.headers_mut().insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    Ok(answer)
}

/// `GET /console/assets/:file`.
pub(crate) async fn asset(
    request: HttpRequest,
    settings: Data<Settings>,
    console: Data<Console>,
) -> Result<HttpResponse, ApiError> {
    let name = ids::console_asset(&request)?;
    let assets = console.assets.get_or_init(unpacked);
    let asset = assets.get(&*name).ok_or_else(|| ids::path_not_found(&request))?;
    let mut answer = asset.answer(&request, &settings);
    answer.headers_mut().insert(CACHE_CONTROL, FOR_EVER);
    Ok(answer)
}

/// Returns the element that describes this server to the page.
fn filled(console: &ConsoleSettings, is_checked: bool) -> String {
    let ConsoleSettings { is_read_only, title, accent, login_url } = console;
    let content = json!({
        "title": title,
        "accent": accent,
        "loginUrl": login_url,
        "readOnly": is_read_only,
        "auth": is_checked,
        "version": env!("CARGO_PKG_VERSION"),
    });
    format!("<meta name=\"greenroom\" content=\"{}\" />", escape(&content.to_string()))
}

fn unpacked() -> BTreeMap<&'static str, StaticFile> {
    let files = ASSETS.iter().filter_map(|(name, content_type, packed)| {
        let mut plain = Vec::new();
        if let Err(error) = GzDecoder::new(*packed).read_to_end(&mut plain) {
            log::error!("the file {name} of the console cannot be read: {error}");
            return None;
        }
        Some((*name, StaticFile::packed(Bytes::from(plain), packed, content_type)))
    });
    files.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_a_place_for_what_it_has_to_know() {
        assert_eq!(PAGE.matches(PLACE).count(), 1);
    }

    #[test]
    fn texts_of_the_configuration_stay_texts() {
        let title = "\"><script>alert(1)</script>".to_owned();
        let console = ConsoleSettings { title, ..ConsoleSettings::default() };
        let filled = filled(&console, true);
        assert!(!filled.contains("<script") && filled.matches('"').count() == 4, "{filled}");
    }

    #[test]
    fn all_files_can_be_unpacked() {
        let files = unpacked();
        assert_eq!(files.len(), ASSETS.len());
        assert!(files.keys().any(|name| PAGE.contains(name)));
    }
}
