//! Handler of the caller's own permissions.

use crate::api::ApiError;
use crate::api::catalogue::Method;
use crate::api::query::{PermissionQuery, Question};
use crate::api::wire::caller::{CallerView, PermissionView};
use crate::web::call::{Answer, Call};
use crate::web::respond;

/// `GET /whoami`.
pub(crate) async fn show(call: Call) -> Answer {
    let PermissionQuery(requests) = PermissionQuery::parse(&call.pairs()?)?;
    let permission = |Question { text, method, path }| {
        PermissionView::of(text, call.check_request(method, &path))
    };
    let requests = requests.into_iter().map(permission).collect();
    std::future::ready(Ok(respond::json(CallerView::of(&call.caller, requests)))).await
}

impl Call {
    /// Refuses a request that the rules of access do not allow to the caller.
    fn check_request(&self, method: Method, path: &str) -> Result<(), ApiError> {
        let binding = &self.settings.config.binding;
        let path = path.split(['?', '#']).next().unwrap_or_default();
        match binding.catalogue.of_request(method, path) {
            Some(route) => binding.auth.check_like(route, path, &self.caller),
            None => Err(self.not_served(method, path)),
        }
    }

    fn not_served(&self, method: Method, path: &str) -> ApiError {
        let catalogue = &self.settings.config.binding.catalogue;
        let method = method.as_str().to_owned();
        let other = Method::ALL.into_iter().find_map(|other| catalogue.of_request(other, path));
        match other {
            Some(route) => {
                ApiError::MethodNotAllowed { method, allow: catalogue.allow_of(&route.path) }
            }
            None => ApiError::PathNotFound { method, path: path.to_owned() },
        }
    }
}
