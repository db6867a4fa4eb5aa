//! Counts requests by route, and serves the metrics.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Instant;

use actix_web::body::{BoxBody, MessageBody};
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::Method;
use actix_web::middleware::Next;
use actix_web::web::Data;
use actix_web::{Error, HttpRequest, HttpResponse};

use crate::api::ApiError;
use crate::api::catalogue::Catalogue;
use crate::telemetry::metrics::{CONTENT_TYPE, RequestMeter, RequestSeries, UNMATCHED};
use crate::threads;
use crate::web::middleware::around;
use crate::web::settings::Settings;

/// Label of unknown methods.
const OTHER_METHOD: &str = "_OTHER";

/// Counter of one route's requests on one worker's thread. Caches the series used so far.
pub(crate) struct RouteMeter {
    route: String,
    meter: Arc<RequestMeter>,
    known: RefCell<Vec<((&'static str, u16), RequestSeries)>>,
}

impl RouteMeter {
    pub(crate) fn new(route: &str, meter: &Arc<RequestMeter>) -> Self {
        let (route, meter) = (route.to_owned(), Arc::clone(meter));
        Self { route, meter, known: RefCell::default() }
    }

    fn count(&self, method: &'static str, status: u16, began: Instant) {
        let mut known = self.known.borrow_mut();
        let key = (method, status);
        let place = known.iter().position(|(other, _)| *other == key).unwrap_or_else(|| {
            known.push((key, self.meter.series(method, &self.route, status)));
            known.len() - 1
        });
        known[place].1.count(began.elapsed());
    }
}

/// Counts a request. Outermost middleware, around [`around`].
pub(crate) async fn count_requests<B: MessageBody + 'static>(
    request: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    let settings = request.app_data::<Data<Settings>>();
    let Some((settings, metrics)) =
        settings.and_then(|it| Some((it.clone(), it.config.metrics.clone()?)))
    else {
        return around(request, next).await;
    };
    let began = Instant::now();
    let method = name_of(request.method());
    // The request is lost if the handler panics.
    let uri = request.uri().clone();
    let active = metrics.requests().active();
    let answer = around(request, next).await;
    drop(active);
    match &answer {
        Ok(response) => {
            if let Some(route) = response.request().app_data::<RouteMeter>() {
                route.count(method, response.status().as_u16(), began);
            }
        }
        Err(error) => {
            let status = error.as_response_error().status_code().as_u16();
            let route = route_of(&settings.config.binding.catalogue, uri.path());
            metrics.requests().series(method, route, status).count(began.elapsed());
        }
    }
    answer
}

/// Returns the label of a method: its name if the OpenTelemetry conventions list it.
fn name_of(method: &Method) -> &'static str {
    match method.as_str() {
        "GET" => "GET",
        "POST" => "POST",
        "PUT" => "PUT",
        "PATCH" => "PATCH",
        "DELETE" => "DELETE",
        "HEAD" => "HEAD",
        "OPTIONS" => "OPTIONS",
        "CONNECT" => "CONNECT",
        "TRACE" => "TRACE",
        _ => OTHER_METHOD,
    }
}

fn route_of<'a>(catalogue: &'a Catalogue, path: &str) -> &'a str {
    catalogue.of_path(path).map_or(UNMATCHED, |row| &row.path)
}

/// `GET /metrics`. Gathered on a background thread: there may be many series, and file sizes to
/// read.
pub(crate) async fn show(
    request: HttpRequest,
    settings: Data<Settings>,
) -> Result<HttpResponse, ApiError> {
    let Some(metrics) = settings.config.metrics.clone() else {
        let (method, path) = (request.method().to_string(), request.path().to_owned());
        return Err(ApiError::PathNotFound { method, path });
    };
    let stored = metrics.stored().await;
    match threads::aside(move || metrics.text(&stored)).await {
        Ok(Ok(bytes)) => Ok(HttpResponse::Ok().content_type(CONTENT_TYPE).body(bytes)),
        Ok(Err(error)) => Err(unwritten(&error)),
        Err(error) => Err(unwritten(&error)),
    }
}

fn unwritten(error: &dyn std::error::Error) -> ApiError {
    log::error!("cannot encode the metrics: {error}");
    ApiError::Internal
}
