//! The caller on the wire.

use greenroom_actors::visibility::Visibility;
use serde::Serialize;
use utoipa::ToSchema;

use crate::api::caller::Caller;
use crate::api::error::ApiError;
use crate::api::wire::Iso;
use crate::auth::User;

/// The caller, and what it may request.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Caller)]
#[serde(rename_all = "camelCase")]
pub struct CallerView<'a> {
    /// True if this server checks tokens.
    pub is_checked: bool,
    /// User of the token; null without one.
    #[schema(required)]
    pub user_id: Option<&'a str>,
    pub roles: &'a [String],
    /// Time when the token expires; null if it does not.
    #[schema(required)]
    pub expires_at: Option<Iso>,
    /// Executions, conversations, generations and traces that the caller sees.
    pub sees: SeenData,
    /// The requests of the question, in its order.
    pub requests: Vec<PermissionView>,
}

/// Part of the data of users.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum SeenData {
    /// That of all users.
    All,
    /// That of the caller.
    Own,
    None,
}

/// Request that the rules of access allow, or refuse.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Permission)]
#[serde(rename_all = "camelCase")]
pub struct PermissionView {
    pub request: String,
    pub is_allowed: bool,
    /// Refusal; null if the request is allowed.
    #[schema(required)]
    pub reason: Option<String>,
}

impl<'a> CallerView<'a> {
    pub fn of(caller: &'a Caller, requests: Vec<PermissionView>) -> Self {
        let user = caller.user();
        Self {
            is_checked: !caller.is_auth_off(),
            user_id: user.and_then(User::id),
            roles: user.map(User::roles).unwrap_or_default(),
            expires_at: user.and_then(User::expires_at).map(Iso),
            sees: match caller.visibility() {
                Visibility::Everything => SeenData::All,
                Visibility::Of(_) => SeenData::Own,
                Visibility::Nothing => SeenData::None,
            },
            requests,
        }
    }
}

impl PermissionView {
    pub fn of(request: String, checked: Result<(), ApiError>) -> Self {
        let reason = checked.err().map(|refusal| refusal.to_string());
        Self { request, is_allowed: reason.is_none(), reason }
    }
}
