//! From the claims of a token to what is known of its user.

use std::sync::Arc;

use greenroom_actors::domain::expression::{CompiledProjection, Scope};
use serde_json::{Map, Value};

use crate::auth::{AuthError, User};

/// A program's way from claims to a profile.
type MapUser = dyn Fn(&Map<String, Value>) -> Result<Map<String, Value>, AuthError> + Send + Sync;

/// How a profile is made.
pub(super) enum Profile {
    /// The subject as `id`, and what tokens usually say of people.
    Usual,
    /// Each key by its expression over `claims`.
    Mapped(Vec<(String, CompiledProjection)>),
    Function(Box<MapUser>),
}

impl Profile {
    /// Makes the user; without an `id` in the profile, the subject is the user's id.
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
    members: &[(String, CompiledProjection)],
    claims: Map<String, Value>,
) -> Result<Map<String, Value>, AuthError> {
    let scope = Scope::new().with("claims", Arc::new(Value::Object(claims)));
    let mut profile = Map::with_capacity(members.len());
    for (key, projection) in members {
        match projection.evaluate(&scope) {
            Ok(value) => {
                profile.insert(key.clone(), value);
            }
            Err(error) if error.is_undefined => {}
            Err(_) => {
                // What went wrong may quote what the token says.
                log::debug!("the user's {key} cannot be made from the claims of a token");
                return Err(AuthError::invalid("unusable claims"));
            }
        }
    }
    Ok(profile)
}
