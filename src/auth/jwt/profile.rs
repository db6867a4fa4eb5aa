//! Profiles of users from the claims of tokens.

use std::sync::Arc;

use greenroom_actors::domain::expression::{CompiledMapping, Scope};
use serde_json::{Map, Value};

use crate::auth::{AuthError, User};

/// Function of a program that returns a profile for claims.
type MapUser = dyn Fn(&Map<String, Value>) -> Result<Map<String, Value>, AuthError> + Send + Sync;

/// Source of a profile.
pub(super) enum Profile {
    /// The subject as `id`, and the claims `email`, `name` and `roles`.
    Usual,
    /// An expression over `claims` for each key.
    Mapped(Vec<(String, CompiledMapping)>),
    Function(Box<MapUser>),
}

impl Profile {
    /// Returns the user; the subject is the id if the profile has none.
    pub(super) fn user(&self, mut claims: Map<String, Value>) -> Result<User, AuthError> {
        match self {
            Self::Usual => {
                let subject = claims.remove("sub").map(|subject| ("id".to_owned(), subject));
                let known = ["email", "name", "roles"]
                    .into_iter()
                    .filter_map(|name| Some((name.to_owned(), claims.remove(name)?)));
                User::new(subject.into_iter().chain(known).collect())
            }
            Self::Function(map) => User::new(map(&claims)?)?.or_id(claims.get("sub")),
            Self::Mapped(members) => {
                let subject = claims.get("sub").cloned();
                User::new(mapped(members, claims)?)?.or_id(subject.as_ref())
            }
        }
    }
}

fn mapped(
    members: &[(String, CompiledMapping)],
    claims: Map<String, Value>,
) -> Result<Map<String, Value>, AuthError> {
    let scope = Scope::new().with("claims", Arc::new(Value::Object(claims)));
    let mut profile = Map::with_capacity(members.len());
    for (key, mapping) in members {
        match mapping.evaluate(&scope) {
            Ok(value) => {
                profile.insert(key.clone(), value);
            }
            Err(error) if error.is_undefined => {}
            Err(_) => {
                // the error is not logged: it may quote the token
                log::debug!("the expression for {key} of [auth.jwt] user failed for a token");
                return Err(AuthError::invalid("unusable claims"));
            }
        }
    }
    Ok(profile)
}
