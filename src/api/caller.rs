//! Who asks.

use std::sync::Arc;

use greenroom_actors::requests::Principal;
use greenroom_actors::visibility::Visibility;
use serde_json::{Map, Value};

use crate::api::error::ApiError;
use crate::api::ids::{check_id, wrong_with};
use crate::api::query::{Pairs, value_of};
use crate::auth::User;

/// Who asks, as the front door found out.
#[derive(Debug, Clone, Default)]
pub struct Caller {
    door: Door,
    user: Option<Arc<User>>,
}

/// What stands between the world and the service.
#[derive(Debug, Clone, Default)]
enum Door {
    /// Nobody checks anybody: callers are whoever they say.
    #[default]
    Open,
    /// Whoever has no valid token is nobody, whatever the request says.
    Checked,
    /// As checked, and what belongs to a user is seen by that user and by these roles alone.
    Owned(Arc<[String]>),
}

impl Caller {
    /// The caller of a server that checks nobody.
    pub fn unchecked() -> Self {
        Self::default()
    }

    /// A caller with a valid token, or without one. `owners`: the roles that see what belongs to
    /// others, where things belong to their users.
    pub fn checked(user: Option<Arc<User>>, owners: Option<Arc<[String]>>) -> Self {
        Self { door: owners.map_or(Door::Checked, Door::Owned), user }
    }

    /// The user whose token was valid.
    pub fn user(&self) -> Option<&User> {
        self.user.as_deref()
    }

    /// The id that new work is done under, in place of what the request says.
    pub fn user_id(&self, named: Option<String>) -> Option<String> {
        match self.door {
            Door::Open => named,
            Door::Checked | Door::Owned(_) => self.own_id().map(str::to_owned),
        }
    }

    /// Who is on record for what the request does: whoever the token says, else whom the request
    /// names, as its claim.
    pub fn principal(&self, named: Option<&str>) -> Result<Option<Principal>, ApiError> {
        named.map_or(Ok(()), |named| check_id("options.userId", named))?;
        let verified = self.own_id().map(Principal::verified);
        Ok(verified.or_else(|| named.map(Principal::claimed)))
    }

    /// Whether the request's own word counts: else no more than its form is looked at.
    pub fn is_taken_at_its_word(&self) -> bool {
        matches!(self.door, Door::Open)
    }

    /// Puts the user into an operation context, over whatever the request says there.
    pub fn sign(&self, context: &mut Map<String, Value>) {
        if self.is_taken_at_its_word() {
            return;
        }
        context.shift_remove("user");
        context.shift_remove("userId");
        if let Some(user) = &self.user {
            context.insert("user".to_owned(), Value::Object(user.profile().clone()));
        }
    }

    /// The user that a request about kept things is made for. Without authentication, whoever it
    /// names: its body counts more than its address. Those who see everything may name anybody.
    /// What is no id is refused, whoever asks.
    pub fn user_of(
        &self,
        pairs: &Pairs,
        in_body: Option<&str>,
    ) -> Result<Option<String>, ApiError> {
        let name = "userId";
        let in_query = value_of(pairs, name);
        in_body.map_or(Ok(()), |named| check_id(name, named))?;
        in_query.map_or(Ok(()), |named| check_in_query(name, named))?;
        Ok(self.looks_as(in_body.or(in_query)))
    }

    /// The user whose things are looked at: the caller, unless it may name somebody else.
    pub fn looks_as(&self, named: Option<&str>) -> Option<String> {
        let named = named.filter(|_| self.may_name_anybody());
        named.or_else(|| self.own_id()).map(str::to_owned)
    }

    /// The conversation that new work is part of: none for those who could not see it again, since
    /// others like them go on with it.
    pub fn conversation(&self, named: Option<String>) -> Option<String> {
        named.filter(|_| !self.is_blind())
    }

    /// Whether the caller may ask for the things of any user, or of all.
    pub fn may_name_anybody(&self) -> bool {
        self.is_taken_at_its_word() || self.oversees()
    }

    /// Whose things the caller sees.
    pub fn visibility(&self) -> Visibility {
        match (&self.door, self.user()) {
            (Door::Open | Door::Checked, _) => Visibility::Everything,
            (Door::Owned(roles), Some(user)) if user.has_one_of(roles) => Visibility::Everything,
            (Door::Owned(_), user) => {
                user.and_then(User::id).map_or(Visibility::Nothing, |id| Visibility::Of(id.into()))
            }
        }
    }

    /// Whether the caller sees what belongs to this user.
    pub fn sees(&self, owner: Option<&str>) -> bool {
        self.visibility().reaches(owner)
    }

    /// Whether the caller sees nothing, its own work included.
    pub fn is_blind(&self) -> bool {
        self.visibility() == Visibility::Nothing
    }

    /// Whether the caller may erase what is kept of a user: its own, or anybody's for those who
    /// see everything.
    pub fn may_erase(&self, user_id: &str) -> bool {
        self.own_id() == Some(user_id) || self.may_name_anybody()
    }

    /// Whether the caller sees what belongs to others although things belong to their users.
    fn oversees(&self) -> bool {
        matches!(self.door, Door::Owned(_)) && self.visibility() == Visibility::Everything
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
    fn without_authentication_a_user_is_whoever_the_request_names() {
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
    fn with_authentication_the_token_alone_says_who_it_is() {
        let named = [("userId".to_owned(), "ann".to_owned())];
        let body = json!({ "user": { "id": "ann" }, "userId": "ann", "tone": "kind" });
        let rows = [
            (Caller::checked(user("ben", "admin"), None), Some("ben"), Some("ben")),
            (Caller::checked(None, None), None, None),
            (owned(user("ben", "staff")), Some("ben"), Some("ben")),
            // An administrator does its own work, and looks at what is others'.
            (owned(user("eve", "admin")), Some("eve"), Some("ann")),
        ];
        for (caller, works_as, looks_as) in rows {
            assert_eq!(caller.user_id(Some("ann".to_owned())).as_deref(), works_as);
            assert_eq!(caller.user_of(&named, None).unwrap().as_deref(), looks_as);
            let mut context = body.as_object().cloned().unwrap();
            caller.sign(&mut context);
            let shown = works_as.map(|id| json!(id));
            assert_eq!(context.get("user").map(|user| user["id"].clone()), shown);
            assert_eq!((context.get("userId"), &context["tone"]), (None, &json!("kind")));
        }
    }

    #[test]
    fn what_is_no_id_is_refused_whoever_asks() {
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
    fn where_things_belong_to_users_others_do_not_see_them() {
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
    fn those_who_see_everything_name_whom_they_look_at() {
        let rows = [
            (Caller::unchecked(), None, Some("ann")),
            (Caller::checked(None, None), None, None),
            (Caller::checked(user("ben", "admin"), None), Some("ben"), Some("ben")),
            (owned(None), None, None),
            (owned(user("ben", "staff")), Some("ben"), Some("ben")),
            (owned(user("eve", "admin")), Some("eve"), Some("ann")),
        ];
        for (caller, by_default, looks_as) in rows {
            assert_eq!(caller.looks_as(None).as_deref(), by_default, "{caller:?}");
            assert_eq!(caller.looks_as(Some("ann")).as_deref(), looks_as, "{caller:?}");
        }
    }

    #[test]
    fn who_sees_nothing_takes_part_in_no_conversation() {
        let rows = [
            (Caller::unchecked(), true),
            (Caller::checked(None, None), true),
            (owned(None), false),
            (owned(user("ann", "staff")), true),
            (owned(user("eve", "admin")), true),
        ];
        for (caller, takes_part) in rows {
            let conversation = caller.conversation(Some("c".to_owned()));
            assert_eq!(conversation.is_some(), takes_part, "{caller:?}");
        }
    }
}
