//! Users, places of tokens, and the order of providers.

mod algorithms;
mod attacks;
mod claims;
mod forge;
mod key_server;
mod key_sets;
mod mutations;
mod users;

use futures_util::FutureExt;
use futures_util::future::ready;
use serde_json::json;

use super::*;

/// A request of headers alone.
struct Head(Vec<(&'static str, &'static str)>);

impl RequestHead for Head {
    fn header(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(key, _)| *key == name).map(|(_, value)| *value)
    }

    fn query(&self, _: &str) -> Option<String> {
        None
    }

    fn is_upgrade(&self) -> bool {
        false
    }
}

fn profile(value: &Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap()
}

#[test]
fn a_user_has_an_id_and_roles() {
    let rows = [
        (json!({ "id": "ann", "roles": ["admin", 5] }), Some("ann"), true),
        (json!({ "id": 42, "roles": "staff admin" }), Some("42"), true),
        (json!({ "id": null, "roles": { "admin": true } }), None, false),
        (json!({ "email": "a@b.example" }), None, false),
    ];
    for (known, id, is_admin) in rows {
        let user = User::new(profile(&known)).unwrap();
        assert_eq!(user.id(), id, "{known}");
        assert_eq!(user.has_one_of(&["admin".to_owned()]), is_admin, "{known}");
    }
    let user = User::new(Map::new()).unwrap().or_id(Some(&json!("sub"))).unwrap();
    assert_eq!(user.id(), Some("sub"));
}

#[test]
fn invalid_ids_are_refused() {
    let long = "x".repeat(201);
    let rows =
        [json!(""), json!("a/b"), json!("a\u{0}"), json!(1.5), json!(true), json!([]), json!(long)];
    for id in rows {
        let refused = User::new(profile(&json!({ "id": id }))).unwrap_err();
        assert_eq!(refused.to_string(), "Invalid token: invalid user id", "{id}");
    }
}

#[test]
fn the_bearer_scheme_is_case_insensitive() {
    let rows = [
        ("Bearer abc", Some("abc")),
        ("bearer abc", Some("abc")),
        ("BEARER  abc ", Some("abc")),
        ("Basic abc", None),
        ("Bearer", None),
        ("Bearer ", None),
        ("", None),
        ("abc", None),
    ];
    for (value, token) in rows {
        assert_eq!(bearer(&Head(vec![("authorization", value)])), token, "{value:?}");
    }
}

#[test]
fn a_cookie_is_found_by_its_name() {
    let head = Head(vec![("cookie", "a=1; session=\"xyz\"; b=; asession=2")]);
    assert_eq!(cookie(&head, "session"), Some("xyz"));
    assert_eq!(cookie(&head, "a"), Some("1"));
    assert_eq!((cookie(&head, "b"), cookie(&head, "c")), (None, None));
}

struct Answers(&'static str, Result<User, AuthError>);

impl AuthProvider for Answers {
    fn kind(&self) -> &str {
        "test"
    }

    fn token<'r>(&self, request: &'r dyn RequestHead) -> Option<Cow<'r, str>> {
        request.header(self.0).map(Cow::Borrowed)
    }

    fn verify<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<User, AuthError>> {
        ready(self.1.clone()).boxed()
    }
}

#[test]
fn the_first_provider_that_knows_a_token_decides() {
    let user = User::new(profile(&json!({ "id": "ann" }))).unwrap();
    let expired = || Err(AuthError::Expired);
    let malformed = || Err(AuthError::Malformed("jwt malformed"));
    let rows = [
        (vec![], Ok(None)),
        (vec![Answers("other", Ok(user.clone()))], Ok(None)),
        (vec![Answers("x", Err(AuthError::Foreign)), Answers("x", Ok(user.clone()))], Ok(Some(()))),
        (
            vec![Answers("x", Err(AuthError::Foreign)), Answers("x", expired())],
            Err("Token expired"),
        ),
        (
            vec![Answers("x", expired()), Answers("x", Err(AuthError::Foreign))],
            Err("Token expired"),
        ),
        (vec![Answers("x", Err(AuthError::Foreign))], Err("Invalid token: not recognized")),
        (vec![Answers("x", malformed())], Err("Invalid token: jwt malformed")),
        (
            vec![Answers("x", malformed()), Answers("x", Err(AuthError::Foreign))],
            Err("Invalid token: not recognized"),
        ),
        (vec![Answers("x", malformed()), Answers("x", expired())], Err("Token expired")),
        (vec![Answers("x", expired()), Answers("x", malformed())], Err("Token expired")),
        (vec![Answers("x", malformed()), Answers("x", Ok(user.clone()))], Ok(Some(()))),
        (vec![Answers("x", expired()), Answers("x", Ok(user))], Ok(Some(()))),
    ];
    for (answers, expected) in rows {
        let mut providers = Providers::default();
        for answer in answers {
            providers.push(Arc::new(answer));
        }
        let found = providers.identify(&Head(vec![("x", "t")])).now_or_never().unwrap();
        let found = found.map(|user| user.map(|_| ())).map_err(|error| error.to_string());
        assert_eq!(found, expected.map_err(str::to_owned));
    }
}
