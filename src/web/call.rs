//! Arguments that most handlers take.

use std::future::{Ready, ready};
use std::sync::Arc;
use std::time::Duration;

use actix_web::dev::Payload;
use actix_web::web::Data;
use actix_web::{Error, FromRequest, HttpRequest, HttpResponse};
use greenroom_actors::Runtime;
use greenroom_actors::ports::clock::{Clock as _, SystemClock};
use greenroom_actors::requests::Permissions;

use crate::api::ApiError;
use crate::api::caller::Caller;
use crate::api::catalogue::RouteName;
use crate::api::ids::encode;
use crate::auth::User;
use crate::web::local_only::is_operator;
use crate::web::query::query_pairs;
use crate::web::settings::Settings;

/// Answer of a handler.
pub(crate) type Answer = Result<HttpResponse, ApiError>;

/// A request with its caller, the runtime and the settings. Everything that can be refused is read by the handler
/// itself, in the order of ADR 027.
pub(crate) struct Call {
    pub(crate) request: HttpRequest,
    pub(crate) caller: Caller,
    pub(crate) runtime: Data<Runtime>,
    pub(crate) settings: Data<Settings>,
}

impl Call {
    /// Reads the query parameters.
    pub(crate) fn pairs(&self) -> Result<Vec<(String, String)>, ApiError> {
        query_pairs(&self.request)
    }

    /// Returns the time until the caller's token expires, if it does. Streams that follow something
    /// endless end then.
    pub(crate) fn token_left(&self) -> Option<Duration> {
        let expires_at = self.caller.user().and_then(User::expires_at)?;
        Some(Duration::from_millis(expires_at.ms_since(SystemClock.now())))
    }

    /// Refuses a caller who may not use another route, which does the like to the same data. `ids`
    /// are the parameters of its path.
    pub(crate) fn check_like(&self, name: RouteName, ids: &[(&str, &str)]) -> Result<(), ApiError> {
        let binding = &self.settings.config.binding;
        let route = binding.catalogue.rows().iter().find(|row| row.name == name);
        let Some(route) = route else { return Ok(()) };
        let path = ids.iter().fold(route.path.to_string(), |path, (name, id)| {
            path.replacen(name, &encode(id).to_string(), 1)
        });
        binding.auth.check_like(route, &path, &self.caller)
    }

    /// Returns the requests that the rules of access let the caller make, for answers that do the same.
    /// The holder of a link is a caller without a token.
    pub(crate) fn permissions(&self) -> Permissions {
        let binding = &self.settings.config.binding;
        let (auth, catalogue) = (Arc::clone(&binding.auth), Arc::clone(&binding.catalogue));
        let (caller, is_operator) = (self.caller.clone(), is_operator(&self.request));
        Permissions::of(move |request| {
            auth.check_rules(&catalogue, request, (caller.user(), is_operator))
        })
    }
}

impl FromRequest for Call {
    type Error = Error;
    type Future = Ready<Result<Self, Error>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let caller = Caller::from_request(request, payload).into_inner();
        let runtime = Data::from_request(request, payload).into_inner();
        let settings = Data::from_request(request, payload).into_inner();
        ready(caller.map_err(Error::from).and_then(|caller| {
            let (request, runtime, settings) = (request.clone(), runtime?, settings?);
            Ok(Self { request, caller, runtime, settings })
        }))
    }
}
