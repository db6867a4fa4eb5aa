//! Handler of the caller's own permissions.

use crate::api::ApiError;
use crate::api::catalogue::Method;
use crate::api::query::PermissionQuery;
use crate::api::wire::caller::{CallerView, PermissionView};
use crate::web::call::{Answer, Call};
use crate::web::respond;

/// `GET /whoami`.
pub(crate) async fn show(call: Call) -> Answer {
    let PermissionQuery(requests) = PermissionQuery::parse(&call.pairs()?)?;
    let permission = |(method, path): (Method, String)| {
        let checked = call.check_request(method, &path);
        PermissionView::of(format!("{} {path}", method.as_str()), checked)
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
            None => Err(ApiError::PathNotFound {
                method: method.as_str().to_owned(),
                path: path.to_owned(),
            }),
        }
    }
}
