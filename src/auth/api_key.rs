//! API keys of programs. Only their hashes are known here.

use std::borrow::Cow;
use std::collections::HashMap;

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, ready};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::{ApiKeySettings, AuthError, AuthProvider, RequestHead, User, bearer};

/// Identifies callers by a key in `x-api-key` or a bearer token.
#[derive(Debug)]
pub struct ApiKeyProvider {
    /// By hash, so that the duration of a lookup reveals nothing about other keys.
    users: HashMap<[u8; 32], User>,
}

impl ApiKeyProvider {
    /// Name of the kind in the log.
    pub const KIND: &str = "api-key";

    /// Creates a provider. Returns an error if two keys have the same hash, or if the user id of a
    /// key is invalid.
    pub fn new(keys: Vec<ApiKeySettings>) -> Result<Self, String> {
        let mut users = HashMap::with_capacity(keys.len());
        for key in keys {
            let ApiKeySettings { id, hash, user } = key;
            let own_id = Value::String(id.clone());
            let user = match user.get("id") {
                Some(_) => user,
                None => std::iter::once(("id".to_owned(), own_id)).chain(user).collect(),
            };
            let user =
                User::new(user).ok().filter(|user| user.id().is_some()).ok_or_else(|| {
                    format!(
                        "the id of the user of API key {id:?} must be 1 to 200 characters without /"
                    )
                })?;
            if users.insert(hash, user).is_some() {
                return Err(format!("API key {id:?} has the same hash as another key"));
            }
        }
        Ok(Self { users })
    }
}

impl AuthProvider for ApiKeyProvider {
    fn kind(&self) -> &str {
        Self::KIND
    }

    fn token<'r>(&self, request: &'r dyn RequestHead) -> Option<Cow<'r, str>> {
        let own = request.header("x-api-key").map(str::trim).filter(|key| !key.is_empty());
        own.or_else(|| bearer(request)).map(Cow::Borrowed)
    }

    fn verify<'a>(&'a self, token: &'a str) -> BoxFuture<'a, Result<User, AuthError>> {
        let hash: [u8; 32] = Sha256::digest(token).into();
        ready(self.users.get(&hash).cloned().ok_or(AuthError::Foreign)).boxed()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    struct Head(Vec<(&'static str, &'static str)>);

    impl RequestHead for Head {
        fn header(&self, name: &str) -> Option<&str> {
            self.0.iter().find(|(key, _)| *key == name).map(|(_, value)| *value)
        }

        fn query(&self, _: &str) -> Option<String> {
            Some("of the query".to_owned())
        }

        fn is_upgrade(&self) -> bool {
            false
        }
    }

    fn key(id: &str, key: &str, user: &Value) -> ApiKeySettings {
        ApiKeySettings { user: user.as_object().unwrap().clone(), ..ApiKeySettings::new(id, key) }
    }

    fn verified(provider: &ApiKeyProvider, token: &str) -> Result<User, AuthError> {
        provider.verify(token).now_or_never().unwrap()
    }

    #[test]
    fn a_key_identifies_its_user() {
        let ledger = json!({ "roles": ["writer"], "team": "ledger" });
        let named = json!({ "id": 7, "name": "night job" });
        let keys = vec![key("ledger", "k-1", &ledger), key("night", "k-2", &named)];
        let provider = ApiKeyProvider::new(keys).unwrap();

        let user = verified(&provider, "k-1").unwrap();
        assert_eq!(user.id(), Some("ledger"));
        assert!(user.has_one_of(&["writer".to_owned()]));
        let profile = json!({ "id": "ledger", "roles": ["writer"], "team": "ledger" });
        assert_eq!(Value::Object(user.profile().clone()), profile);
        assert_eq!(user.expires_at(), None);

        let user = verified(&provider, "k-2").unwrap();
        assert_eq!((user.id(), user.profile()["name"].as_str()), (Some("7"), Some("night job")));
    }

    #[test]
    fn unknown_keys_are_foreign() {
        let provider = ApiKeyProvider::new(vec![key("a", "k-1", &json!({}))]).unwrap();
        let hash = hex_of(&Sha256::digest("k-1"));
        for token in ["", "k-", "k-1 ", "K-1", "k-11", "a", "k-1\0", hash.as_str()] {
            assert_eq!(verified(&provider, token), Err(AuthError::Foreign), "{token:?}");
        }
    }

    fn hex_of(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn a_key_is_read_from_its_header_or_a_bearer_token() {
        let provider = ApiKeyProvider::new(Vec::new()).unwrap();
        let rows = [
            (vec![("x-api-key", " k-1 ")], Some("k-1")),
            (vec![("authorization", "Bearer k-2")], Some("k-2")),
            (vec![("authorization", "Bearer k-2"), ("x-api-key", "k-1")], Some("k-1")),
            (vec![("authorization", "Bearer k-2"), ("x-api-key", " ")], Some("k-2")),
            (vec![("cookie", "x-api-key=k-1")], None),
            (vec![], None),
        ];
        for (headers, token) in rows {
            let head = Head(headers.clone());
            assert_eq!(provider.token(&head).as_deref(), token, "{headers:?}");
        }
    }

    #[test]
    fn duplicate_keys_and_invalid_ids_are_refused() {
        let twice = vec![key("a", "k", &json!({})), key("b", "k", &json!({}))];
        let refused = ApiKeyProvider::new(twice).unwrap_err();
        assert_eq!(refused, "API key \"b\" has the same hash as another key");
        for (id, user) in [("a/b", json!({})), ("a", json!({ "id": "" })), ("", json!({}))] {
            let refused = ApiKeyProvider::new(vec![key(id, "k", &user)]).unwrap_err();
            assert!(refused.starts_with("the id of the user of API key"), "{refused}");
        }
        // a user without an id would not be separated from others
        assert!(ApiKeyProvider::new(vec![key("a", "k", &json!({ "id": null }))]).is_err());
    }
}
