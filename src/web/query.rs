//! Query parameters.

use actix_web::{HttpMessage, HttpRequest, web};

use crate::api::ApiError;

/// Reads the query parameters, without those that a provider has read as credentials.
pub(crate) fn query_pairs(request: &HttpRequest) -> Result<Vec<(String, String)>, ApiError> {
    let mut pairs = all_query_pairs(request)?;
    if let Some(Credentials(names)) = request.extensions().get() {
        pairs.retain(|(name, _)| !names.contains(name));
    }
    Ok(pairs)
}

/// Names of the query parameters that a provider has read; hidden from handlers.
#[derive(Debug, Default)]
pub(crate) struct Credentials(pub(crate) Vec<String>);

/// Reads all query parameters.
pub(crate) fn all_query_pairs(request: &HttpRequest) -> Result<Vec<(String, String)>, ApiError> {
    web::Query::<Vec<(String, String)>>::from_query(request.query_string())
        .map(web::Query::into_inner)
        .map_err(|error| ApiError::InvalidRequest(format!("the query cannot be read: {error}")))
}

/// Reads the values of a submitted form.
pub(crate) fn pairs_of(form: &[u8]) -> Result<Vec<(String, String)>, ApiError> {
    let text = std::str::from_utf8(form).map_err(|_| ApiError::BodyBroken("is no form"))?;
    web::Query::<Vec<(String, String)>>::from_query(text)
        .map(web::Query::into_inner)
        .map_err(|_| ApiError::BodyBroken("is no form"))
}
