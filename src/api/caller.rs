//! The caller of a request.

use std::sync::Arc;

use greenroom_actors::requests::{Answerer, Principal};
use greenroom_actors::visibility::Visibility;
use serde_json::{Map, Value};

use crate::api::error::ApiError;
use crate::api::ids::{check_id, wrong_with};
use crate::api::query::{Pairs, value_of};
use crate::auth::User;

/// Caller of a request, as authenticated by the gate.
#[derive(Debug, Clone, Default)]
pub struct Caller {
    mode: AuthMode,
    user: Option<Arc<User>>,
}

/// Authentication of the server.
#[derive(Debug, Clone, Default)]
enum AuthMode {
    /// No authentication: a user id in the request is believed.
    #[default]
    Off,
    /// Only a valid token identifies a user; user ids in the request are ignored.
    Checked,
    /// As `Checked`, and data is visible only to its user and to these roles.
    Owned(Arc<[String]>),
}

impl Caller {
    /// Creates the caller of a server without authentication.
    pub fn unchecked() -> Self {
        Self::default()
    }

    /// Creates a caller with a valid token, or without one. `owners`: the roles that see the data
    /// of others, if data is private to its users.
    pub fn checked(user: Option<Arc<User>>, owners: Option<Arc<[String]>>) -> Self {
        Self { mode: owners.map_or(AuthMode::Checked, AuthMode::Owned), user }
    }

    /// Returns the user of the valid token.
    pub fn user(&self) -> Option<&User> {
        self.user.as_deref()
    }

    /// Returns the user id for new work: that of the token, or without authentication the named
    /// one.
    pub fn user_id(&self, named: Option<String>) -> Option<String> {
        if self.is_auth_off() { named } else { self.own_id().map(str::to_owned) }
    }

    /// Returns the principal that is recorded for a request: the user of the token, else the named
    /// one as a claim.
    pub fn principal(&self, named: Option<&str>) -> Result<Option<Principal>, ApiError> {
        named.map_or(Ok(()), |named| check_id("options.userId", named))?;
        let verified = self.own_id().map(Principal::verified);
        Ok(verified.or_else(|| named.map(Principal::claimed)))
    }

    /// Returns who answers an ask: the user of the token with its roles, or without authentication
    /// the named one.
    pub fn answerer(&self, named: Option<&str>) -> Answerer {
        let named = named.filter(|_| self.is_auth_off());
        let user = self.own_id().or(named).map(Arc::from);
        let roles = self.user().map(User::roles).unwrap_or_default();
        Answerer { user, roles: roles.iter().map(|role| Arc::from(role.as_str())).collect() }
    }

    /// Returns true if user ids in requests are believed; otherwise they are only validated.
    pub fn is_auth_off(&self) -> bool {
        matches!(self.mode, AuthMode::Off)
    }

    /// Sets `user` of an operation context to the user of the token; removes what the request says about
    /// the user and the conversation, which the runtime adds.
    pub fn sign(&self, context: &mut Map<String, Value>) {
        if self.is_auth_off() {
            return;
        }
        for name in ["user", "userId", "conversationId"] {
            context.shift_remove(name);
        }
        if let Some(user) = &self.user {
            context.insert("user".to_owned(), Value::Object(user.profile().clone()));
        }
    }

    /// Returns the user whose stored data a request is about, as [`Self::subject_id`]. The body
    /// overrides the query. An invalid id is refused for every caller.
    pub fn user_of(
        &self,
        pairs: &Pairs,
        in_body: Option<&str>,
    ) -> Result<Option<String>, ApiError> {
        let name = "userId";
        let in_query = value_of(pairs, name);
        in_body.map_or(Ok(()), |named| check_id(name, named))?;
        in_query.map_or(Ok(()), |named| check_in_query(name, named))?;
        Ok(self.subject_id(in_body.or(in_query)))
    }

    /// Returns the user whose data is accessed: the named one if the caller may name any user, else
    /// the caller.
    pub fn subject_id(&self, named: Option<&str>) -> Option<String> {
        let named = named.filter(|_| self.may_name_any_user());
        named.or_else(|| self.own_id()).map(str::to_owned)
    }

    /// Returns the conversation for new work: `None` for a caller that sees nothing, since such
    /// callers would share their conversations.
    pub fn conversation(&self, named: Option<String>) -> Option<String> {
        named.filter(|_| !self.sees_nothing())
    }

    /// Returns true if the caller may access the data of any user, or of all.
    pub fn may_name_any_user(&self) -> bool {
        self.is_auth_off() || self.oversees()
    }

    /// Returns the part of the data that the caller sees.
    pub fn visibility(&self) -> Visibility {
        match (&self.mode, self.user()) {
            (AuthMode::Off | AuthMode::Checked, _) => Visibility::Everything,
            (AuthMode::Owned(roles), Some(user)) if user.has_one_of(roles) => {
                Visibility::Everything
            }
            (AuthMode::Owned(_), user) => {
                user.and_then(User::id).map_or(Visibility::Nothing, |id| Visibility::Of(id.into()))
            }
        }
    }

    /// Returns true if the caller sees the data of this user.
    pub fn sees(&self, owner: Option<&str>) -> bool {
        self.visibility().allows(owner)
    }

    /// Returns true if the caller sees no data, not even its own.
    pub fn sees_nothing(&self) -> bool {
        self.visibility() == Visibility::Nothing
    }

    /// Returns true if the caller may erase the stored data of a user: its own, or any if it sees
    /// everything.
    pub fn may_erase(&self, user_id: &str) -> bool {
        self.own_id() == Some(user_id) || self.may_name_any_user()
    }

    /// Returns true if data is private to its users and the caller sees that of others.
    fn oversees(&self) -> bool {
        matches!(self.mode, AuthMode::Owned(_)) && self.visibility() == Visibility::Everything
    }

    fn own_id(&self) -> Option<&str> {
        self.user().and_then(User::id)
    }
}

fn check_in_query(name: &str, id: &str) -> Result<(), ApiError> {
    let refusal = |what| Err(ApiError::InvalidQuery { name: name.to_owned(), what });
    wrong_with(id).map_or(Ok(()), refusal)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn user(id: &str, role: &str) -> Option<Arc<User>> {
        let profile = json!({ "id": id, "roles": [role] });
        Some(Arc::new(User::new(profile.as_object().cloned().unwrap()).unwrap()))
    }

    fn owned(user: Option<Arc<User>>) -> Caller {
        Caller::checked(user, Some(Arc::from(["admin".to_owned()])))
    }

    #[test]
    fn without_authentication_the_request_names_the_user() {
        let caller = Caller::unchecked();
        let query = [("userId".to_owned(), "ann".to_owned())];
        let empty = [("userId".to_owned(), String::new())];
        assert_eq!(caller.user_of(&query, Some("ben")), Ok(Some("ben".to_owned())));
        assert_eq!(caller.user_of(&query, None), Ok(Some("ann".to_owned())));
        assert_eq!(caller.user_of(&[], None), Ok(None));
        let rows: [(&Pairs, Option<&str>, &str); 3] = [
            (&empty, None, "Invalid query parameter userId: must be 1 to 200"),
            (&query, Some(""), "Invalid request body: userId: must be 1 to 200"),
            (&query, Some("a/b"), "Invalid request body: userId: must not contain /"),
        ];
        for (pairs, in_body, start) in rows {
            let text = caller.user_of(pairs, in_body).unwrap_err().to_string();
            assert!(text.starts_with(start), "{text}");
        }
    }

    #[test]
    fn with_authentication_only_the_token_names_the_user() {
        let named = [("userId".to_owned(), "ann".to_owned())];
        let body = json!({
            "user": { "id": "ann" }, "userId": "ann", "conversationId": "c", "tone": "kind"
        });
        let rows = [
            (Caller::checked(user("ben", "admin"), None), Some("ben"), Some("ben")),
            (Caller::checked(None, None), None, None),
            (owned(user("ben", "staff")), Some("ben"), Some("ben")),
            // An administrator works under its own id and may access the data of others.
            (owned(user("eve", "admin")), Some("eve"), Some("ann")),
        ];
        for (caller, works_as, subject_id) in rows {
            assert_eq!(caller.user_id(Some("ann".to_owned())).as_deref(), works_as);
            assert_eq!(caller.user_of(&named, None).unwrap().as_deref(), subject_id);
            let mut context = body.as_object().cloned().unwrap();
            caller.sign(&mut context);
            let shown = works_as.map(|id| json!(id));
            assert_eq!(context.get("user").map(|user| user["id"].clone()), shown);
            assert_eq!((context.get("userId"), &context["tone"]), (None, &json!("kind")));
            assert_eq!(context.get("conversationId"), None);
        }
    }

    #[test]
    fn an_invalid_user_id_is_refused_for_every_caller() {
        let callers = [
            Caller::unchecked(),
            Caller::checked(user("ben", "admin"), None),
            Caller::checked(None, None),
            owned(user("eve", "admin")),
        ];
        let pairs = |id: &str| [("userId".to_owned(), id.to_owned())];
        let what = "userId: must not contain / and must not be . or ..";
        for caller in callers {
            let refused =
                |pairs: &Pairs, in_body| caller.user_of(pairs, in_body).unwrap_err().to_string();
            let in_query = format!("Invalid query parameter {what}");
            assert_eq!(refused(&pairs("a/b"), None), in_query);
            assert_eq!(refused(&pairs("a/b"), Some("ann")), in_query);
            let in_body = format!("Invalid request body: {what}");
            assert_eq!(refused(&pairs("ann"), Some("a/b")), in_body);
        }
    }

    #[test]
    fn private_data_is_visible_to_its_user_and_to_owner_roles() {
        let rows = [
            (Caller::unchecked(), [true, true, true]),
            (Caller::checked(None, None), [true, true, true]),
            (owned(None), [false, false, false]),
            (owned(user("ann", "staff")), [true, false, false]),
            (owned(user("eve", "admin")), [true, true, true]),
        ];
        for (caller, expected) in rows {
            let seen = [Some("ann"), Some("ben"), None].map(|owner| caller.sees(owner));
            assert_eq!(seen, expected, "{caller:?}");
        }
    }

    #[test]
    fn callers_that_see_everything_may_name_any_user() {
        let rows = [
            (Caller::unchecked(), None, Some("ann")),
            (Caller::checked(None, None), None, None),
            (Caller::checked(user("ben", "admin"), None), Some("ben"), Some("ben")),
            (owned(None), None, None),
            (owned(user("ben", "staff")), Some("ben"), Some("ben")),
            (owned(user("eve", "admin")), Some("eve"), Some("ann")),
        ];
        for (caller, by_default, subject_id) in rows {
            assert_eq!(caller.subject_id(None).as_deref(), by_default, "{caller:?}");
            assert_eq!(caller.subject_id(Some("ann")).as_deref(), subject_id, "{caller:?}");
        }
    }

    #[test]
    fn a_caller_that_sees_nothing_has_no_conversation() {
        let rows = [
            (Caller::unchecked(), true),
            (Caller::checked(None, None), true),
            (owned(None), false),
            (owned(user("ann", "staff")), true),
            (owned(user("eve", "admin")), true),
        ];
        for (caller, has_one) in rows {
            let conversation = caller.conversation(Some("c".to_owned()));
            assert_eq!(conversation.is_some(), has_one, "{caller:?}");
        }
    }
}
