//! What stands before every handler once there is somebody who checks tokens: who calls, and
//! whether this route is for them. It works on the route that was matched, never on the text of
//! the path, so that no way of writing an address leads around it; and before the body.

use std::sync::Arc;

use actix_web::body::{BoxBody, MessageBody};
use actix_web::dev::{Payload, ServiceRequest, ServiceResponse};
use actix_web::http::header::{HeaderMap, UPGRADE};
use actix_web::middleware::Next;
use actix_web::{Error, FromRequest, HttpMessage, HttpRequest, ResponseError};

use crate::api::ApiError;
use crate::api::access::{AccessPolicy, Gate};
use crate::api::caller::Caller;
use crate::api::catalogue::{Access, Answer, Route, RouteName};
use crate::api::query::value_of;
use crate::auth::{AuthError, Providers, RequestHead, User};
use crate::web::query::{Credentials, all_query_pairs};
use crate::web::scope::scope_of_user;

/// Who checks callers, and what for. Without providers nobody does.
#[derive(Debug, Clone, Default)]
pub(crate) struct Auth {
    pub(crate) providers: Providers,
    pub(crate) policy: AccessPolicy,
}

/// The gate of one route.
#[derive(Debug)]
pub(crate) struct Gatekeeper {
    auth: Arc<Auth>,
    gate: Gate,
    /// Whether what asks for a WebSocket here can get one.
    opens_sockets: bool,
}

impl Gatekeeper {
    /// `None` when nobody is to be checked.
    pub(crate) fn of(auth: &Arc<Auth>, route: &Route) -> Option<Arc<Self>> {
        if auth.providers.is_empty() || route.access == Access::Open {
            return None;
        }
        let opens_sockets =
            route.answer == Answer::WebSocket || matches!(route.name, RouteName::Custom(_));
        let gate = auth.policy.gate(route);
        Some(Arc::new(Self { auth: Arc::clone(auth), gate, opens_sockets }))
    }

    async fn admit(&self, request: &HttpRequest) -> Result<Caller, ApiError> {
        let path = request.uri().path();
        let needs_token = self.gate.needs_token(path);
        let user = match self
            .auth
            .providers
            .identify(&Head { request, opens_sockets: self.opens_sockets })
            .await
        {
            Ok(user) => user,
            Err(refusal) if needs_token => return Err(refusal.into()),
            // Where no token is needed, a bad one is as good as none.
            Err(_) => None,
        };
        match &user {
            None if needs_token => return Err(ApiError::Unauthenticated),
            Some(user) if needs_token => {
                if let Some(roles) = self.gate.missing_roles(path, user) {
                    return Err(ApiError::RoleMissing(roles.join(", ")));
                }
            }
            Some(_) | None => {}
        }
        let owners = self.auth.policy.owner_roles.clone();
        Ok(Caller::checked(user.map(Arc::new), owners))
    }
}

/// Lets a request through to its handler, or answers it.
pub(crate) async fn guard<B: MessageBody + 'static>(
    keeper: Arc<Gatekeeper>,
    request: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    match keeper.admit(request.request()).await {
        Ok(caller) => {
            let scope = caller.user().and_then(User::id).map(scope_of_user);
            request.extensions_mut().insert(caller);
            let answer = next.call(request);
            let answer = match scope {
                Some(scope) => scope.during(answer).await,
                None => answer.await,
            };
            Ok(answer?.map_into_boxed_body())
        }
        Err(refusal) => Ok(request.into_response(refusal.error_response())),
    }
}

impl From<AuthError> for ApiError {
    fn from(error: AuthError) -> Self {
        match error {
            AuthError::Expired => Self::TokenExpired,
            AuthError::Foreign => Self::TokenInvalid("not recognized".into()),
            AuthError::Malformed(reason) => Self::TokenInvalid(reason.into()),
            AuthError::Invalid(reason) => Self::TokenInvalid(reason),
            AuthError::Unavailable(reason) => {
                log::debug!("tokens cannot be checked: {reason}");
                Self::TokenUnchecked
            }
        }
    }
}

/// What providers see of a request.
struct Head<'r> {
    request: &'r HttpRequest,
    opens_sockets: bool,
}

impl RequestHead for Head<'_> {
    fn header(&self, name: &str) -> Option<&str> {
        RequestHead::header(self.request, name)
    }

    fn query(&self, name: &str) -> Option<String> {
        let mut extensions = self.request.extensions_mut();
        let mut looked_at = extensions.remove::<Credentials>().unwrap_or_default();
        looked_at.0.push(name.to_owned());
        extensions.insert(looked_at);
        drop(extensions);
        RequestHead::query(self.request, name)
    }

    fn is_upgrade(&self) -> bool {
        self.opens_sockets && RequestHead::is_upgrade(self.request)
    }
}

/// For handlers of custom routes, which may want the token as it came.
impl RequestHead for HttpRequest {
    fn header(&self, name: &str) -> Option<&str> {
        let mut values = self.headers().get_all(name);
        let value = values.next()?.to_str().ok()?;
        // Of two, the wrong one might count elsewhere.
        values.next().is_none().then_some(value)
    }

    fn query(&self, name: &str) -> Option<String> {
        value_of(&all_query_pairs(self).ok()?, name).map(str::to_owned)
    }

    fn is_upgrade(&self) -> bool {
        is_upgrade(self.headers())
    }
}

/// Whether a request asks for a WebSocket.
pub(crate) fn is_upgrade(headers: &HeaderMap) -> bool {
    let protocol = headers.get(UPGRADE);
    protocol.is_some_and(|protocol| protocol.as_bytes().eq_ignore_ascii_case(b"websocket"))
}

/// Who asks. For handlers of custom routes as well: without authentication, nobody in particular.
impl FromRequest for Caller {
    type Error = ApiError;
    type Future = std::future::Ready<Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let caller = request.extensions().get::<Self>().cloned();
        std::future::ready(Ok(caller.unwrap_or_else(Self::unchecked)))
    }
}

/// The user of a token, for handlers of custom routes; refused without one.
#[derive(Debug, Clone)]
pub struct Authenticated(pub User);

impl FromRequest for Authenticated {
    type Error = ApiError;
    type Future = std::future::Ready<Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let caller = request.extensions().get::<Caller>().cloned().unwrap_or_default();
        let user = caller.user().cloned().map(Self);
        std::future::ready(user.ok_or(ApiError::Unauthenticated))
    }
}
