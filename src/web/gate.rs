//! Authentication and authorization in front of every handler, if providers are configured. It
//! works on the matched route, never on the text of the path, so that no spelling of an address
//! bypasses it; and before the body is read.

use std::sync::Arc;

use actix_web::body::{BoxBody, MessageBody};
use actix_web::dev::{Payload, ServiceRequest, ServiceResponse};
use actix_web::http::header::{HeaderMap, UPGRADE};
use actix_web::middleware::Next;
use actix_web::{Error, FromRequest, HttpMessage, HttpRequest, HttpResponse, ResponseError};

use crate::api::ApiError;
use crate::api::access::{AccessPolicy, Gate};
use crate::api::caller::Caller;
use crate::api::catalogue::{Access, Answer, Catalogue, Class, Method, Route, RouteName};
use crate::api::query::value_of;
use crate::auth::{AuthError, Providers, RequestHead, User};
use crate::web::query::{Credentials, all_query_pairs};
use crate::web::scope::scope_of_user;

/// Providers and rules of access. Without providers, callers are not checked.
#[derive(Debug, Clone, Default)]
pub(crate) struct Auth {
    pub(crate) providers: Providers,
    pub(crate) policy: AccessPolicy,
}

/// Adds to a refusal how clients of the route get a token.
pub(crate) type Challenge = fn(&HttpRequest, &mut HttpResponse);

/// Access check of one route.
#[derive(Debug)]
pub(crate) struct Gatekeeper {
    auth: Arc<Auth>,
    gate: Gate,
    /// True if the route may answer with a WebSocket.
    opens_sockets: bool,
    /// True if the answer is about the token, which is then never ignored.
    is_about_token: bool,
    challenge: Option<Challenge>,
}

impl Gatekeeper {
    /// Returns `None` if callers of this route are not checked.
    pub(crate) fn of(
        auth: &Arc<Auth>,
        route: &Route,
        challenge: Option<Challenge>,
    ) -> Option<Arc<Self>> {
        if auth.providers.is_empty() || route.access == Access::Open {
            return None;
        }
        let opens_sockets =
            route.answer == Answer::WebSocket || matches!(route.name, RouteName::Custom(_));
        let gate = auth.policy.gate(route);
        let is_about_token = route.name == RouteName::WhoAmI;
        let auth = Arc::clone(auth);
        Some(Arc::new(Self { auth, gate, opens_sockets, is_about_token, challenge }))
    }

    async fn admit(&self, request: &HttpRequest) -> Result<Caller, ApiError> {
        let path = request.uri().path();
        let user = match self
            .auth
            .providers
            .identify(&Head { request, opens_sockets: self.opens_sockets })
            .await
        {
            Ok(user) => user,
            Err(refusal) if self.gate.needs_token(path) || self.is_about_token => {
                return Err(refusal.into());
            }
            // If no token is needed, an invalid one counts as none.
            Err(_) => None,
        };
        check(&self.gate, path, user.as_ref())?;
        let owners = self.auth.policy.owner_roles.clone();
        Ok(Caller::checked(user.map(Arc::new), owners))
    }
}

/// Refuses a user who may not use a path of a route.
fn check(gate: &Gate, path: &str, user: Option<&User>) -> Result<(), ApiError> {
    if !gate.needs_token(path) {
        return Ok(());
    }
    let user = user.ok_or(ApiError::Unauthenticated)?;
    match gate.missing_roles(path, user) {
        Some(roles) => Err(ApiError::RoleMissing(roles.join(", "))),
        None => Ok(()),
    }
}

impl Auth {
    /// Refuses a caller who may not use a path of another route, which does the same to the same
    /// data.
    pub(crate) fn check_like(
        &self,
        route: &Route,
        path: &str,
        caller: &Caller,
    ) -> Result<(), ApiError> {
        if self.providers.is_empty() {
            return Ok(());
        }
        check(&self.policy.gate(route), path, caller.user())
    }

    /// Checks what the rules say about a request, `METHOD /path`; the error says what they want. Without a
    /// rule, it is allowed to everyone, or to operators if it changes the installation.
    pub(crate) fn check_rules(
        &self,
        catalogue: &Catalogue,
        request: &str,
        (user, is_operator): (Option<&User>, bool),
    ) -> Result<(), String> {
        let named = request.split_once(' ');
        let named = named.and_then(|(method, path)| Some((Method::parse(method)?, path)));
        let route =
            named.and_then(|(method, path)| Some((catalogue.of_request(method, path)?, path)));
        let Some((route, path)) = route else {
            return Err("a route that this server does not have".to_owned());
        };
        if route.class == Class::System && !is_operator {
            return Err("a token, or a client on the machine of the server".to_owned());
        }
        if self.providers.is_empty() {
            return Ok(());
        }
        match self.policy.gate(route).unmet(path, user) {
            None => Ok(()),
            Some([]) => Err("a token".to_owned()),
            Some([role]) => Err(format!("the role {role}")),
            Some(roles) => Err(format!("one of the roles {}", roles.join(", "))),
        }
    }
}

/// Passes a request on to its handler, or refuses it.
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
        Err(refusal) => {
            let mut response = refusal.error_response();
            if let Some(challenge) = keeper.challenge {
                challenge(request.request(), &mut response);
            }
            Ok(request.into_response(response))
        }
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
                log::debug!("cannot verify a token: {reason}");
                Self::TokenUnchecked
            }
        }
    }
}

/// View of a request for providers. Notes the query parameters that they read.
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
        let mut credentials = extensions.remove::<Credentials>().unwrap_or_default();
        credentials.0.push(name.to_owned());
        extensions.insert(credentials);
        drop(extensions);
        RequestHead::query(self.request, name)
    }

    fn is_upgrade(&self) -> bool {
        self.opens_sockets && RequestHead::is_upgrade(self.request)
    }
}

/// For handlers of added routes that read the token themselves.
impl RequestHead for HttpRequest {
    fn header(&self, name: &str) -> Option<&str> {
        let mut values = self.headers().get_all(name);
        let value = values.next()?.to_str().ok()?;
        // Of two values, another program might use the other one.
        values.next().is_none().then_some(value)
    }

    fn query(&self, name: &str) -> Option<String> {
        value_of(&all_query_pairs(self).ok()?, name).map(str::to_owned)
    }

    fn is_upgrade(&self) -> bool {
        is_upgrade(self.headers())
    }
}

/// Returns true if the request asks for an upgrade to WebSocket.
pub(crate) fn is_upgrade(headers: &HeaderMap) -> bool {
    let protocol = headers.get(UPGRADE);
    protocol.is_some_and(|protocol| protocol.as_bytes().eq_ignore_ascii_case(b"websocket"))
}

/// Extracts the caller, also in handlers of added routes. Without authentication, it has no user.
impl FromRequest for Caller {
    type Error = ApiError;
    type Future = std::future::Ready<Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let caller = request.extensions().get::<Self>().cloned();
        std::future::ready(Ok(caller.unwrap_or_else(Self::unchecked)))
    }
}

/// User of the token, for handlers of added routes. Requests without one are refused.
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
