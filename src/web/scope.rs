//! Log lines about requests, and the ids attached to log records of a request.

use std::sync::Arc;

use actix_web::Error;
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::Method;
use actix_web::http::header::HeaderValue;
use greenroom_actors::observe::log_record::LogScope;
use log::Level;
use tokio::time::Instant;

use crate::web::respond::X_REQUEST_ID;

/// Returns the ids for log records of a request.
pub(crate) fn scope_of(request_id: &HeaderValue) -> Arc<LogScope> {
    let request_id = request_id.to_str().ok().map(Arc::from);
    Arc::new(LogScope { request_id, ..LogScope::default() })
}

/// Returns the current ids with the user's id added.
pub(crate) fn scope_of_user(user_id: &str) -> Arc<LogScope> {
    let around = LogScope::current().unwrap_or_default();
    Arc::new(LogScope { user_id: Some(Arc::from(user_id)), ..(*around).clone() })
}

/// Debug log line about a request and its answer. Shows the route and not the address, which may
/// contain secrets.
pub(crate) struct RequestLine {
    method: Method,
    begun: Instant,
}

impl RequestLine {
    /// Returns `None` if debug logging is off.
    pub(crate) fn begin(request: &ServiceRequest) -> Option<Self> {
        log::log_enabled!(Level::Debug)
            .then(|| Self { method: request.method().clone(), begun: Instant::now() })
    }

    pub(crate) fn end<B>(self, answer: &Result<ServiceResponse<B>, Error>) {
        let (status, route) = match answer {
            Ok(response) => (response.status(), response.request().match_pattern()),
            Err(error) => (error.as_response_error().status_code(), None),
        };
        let (method, route) = (self.method, route.as_deref().unwrap_or("-"));
        let duration_ms = self.begun.elapsed().as_secs_f64() * 1000.0;
        let write = || log::debug!(duration_ms; "{method} {route}: {}", status.as_u16());
        let id = answer.as_ref().ok().and_then(|response| response.headers().get(X_REQUEST_ID));
        match id {
            Some(id) => scope_of(id).within(write),
            None => write(),
        }
    }
}
