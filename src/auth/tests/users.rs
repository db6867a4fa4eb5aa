//! Users of tokens.

use greenroom_actors::domain::definition::Mapping;
use greenroom_actors::domain::expression::CompiledMapping;
use serde_json::{Value, json};

use super::forge::{SECRET, hs256, provider, verified};
use crate::auth::{AuthError, JwtProvider, JwtSettings, User};

fn user(provider: &JwtProvider, claims: &Value) -> Result<User, String> {
    verified(provider, &hs256(claims.to_string())).map_err(|error| error.to_string())
}

/// Returns a provider with these expressions for profiles.
fn mapping(members: &Value) -> JwtProvider {
    let members = members.as_object().unwrap().iter().map(|(key, source)| {
        (key.clone(), CompiledMapping::compile(&Mapping(source.clone())).unwrap())
    });
    provider(JwtSettings { user: Some(members.collect()), ..JwtSettings::hs256(SECRET) })
}

#[test]
fn without_a_mapping_the_usual_claims_are_the_user() {
    let provider = provider(JwtSettings::hs256(SECRET));
    let rows = [
        (
            json!({ "sub": "ann", "email": "a@b.example", "name": "Ann", "roles": ["admin"],
                    "tier": "gold", "id": "eve" }),
            json!({ "id": "ann", "email": "a@b.example", "name": "Ann", "roles": ["admin"] }),
            Some("ann"),
        ),
        (json!({ "sub": 42, "name": null }), json!({ "id": 42, "name": null }), Some("42")),
        (json!({ "email": "a@b.example" }), json!({ "email": "a@b.example" }), None),
        (json!({ "sub": null }), json!({ "id": null }), None),
        (json!({}), json!({}), None),
    ];
    for (claims, profile, id) in rows {
        let user = user(&provider, &claims).unwrap();
        assert_eq!(Value::Object(user.profile().clone()), profile, "{claims}");
        assert_eq!(user.id(), id, "{claims}");
    }
    let admin = user(&provider, &json!({ "roles": "staff admin" })).unwrap();
    assert!(admin.has_one_of(&["admin".to_owned()]));
}

#[test]
fn invalid_subjects_are_refused() {
    let provider = provider(JwtSettings::hs256(SECRET));
    let long = "x".repeat(201);
    let invalid = [
        json!(""),
        json!("a/b"),
        json!(".."),
        json!("a\u{0}"),
        json!("a\r\nX-Role: admin"),
        json!({ "$ne": null }),
        json!(["ann"]),
        json!(true),
        json!(1.5),
        json!(long),
    ];
    for subject in invalid {
        let refused = user(&provider, &json!({ "sub": subject })).unwrap_err();
        assert_eq!(refused, "Invalid token: invalid user id", "{subject}");
    }
    for subject in ["' OR 1=1 --", "auth0|5f7c", "ann@example.com", "用户"] {
        assert_eq!(user(&provider, &json!({ "sub": subject })).unwrap().id(), Some(subject));
    }
}

#[test]
fn expressions_set_the_profile_and_undefined_ones_are_omitted() {
    let provider = mapping(&json!({
        "id": "claims.oid",
        "email": "claims.email | lower",
        "roles": "claims.realm_access.roles",
        "tier": "claims['https://id.example/tier'] | default('free')",
        "team": { "name": "claims.team", "lead": "claims.team == 'ledger'" },
    }));
    let claims = json!({
        "sub": "ann", "oid": "o-1", "email": "A@B.example", "team": "ledger",
        "realm_access": { "roles": ["admin", "staff"] }, "https://id.example/tier": "gold",
    });
    let all = user(&provider, &claims).unwrap();
    assert_eq!(
        Value::Object(all.profile().clone()),
        json!({ "id": "o-1", "email": "a@b.example", "roles": ["admin", "staff"], "tier": "gold",
                "team": { "name": "ledger", "lead": true } })
    );
    assert_eq!(all.id(), Some("o-1"));
    assert!(all.has_one_of(&["staff".to_owned()]));

    let bare = user(&provider, &json!({ "sub": "ann" })).unwrap();
    assert_eq!(Value::Object(bare.profile().clone()), json!({ "tier": "free" }));
    // the subject is the user's id even if the profile has none
    assert_eq!(bare.id(), Some("ann"));
}

#[test]
fn claims_that_a_mapping_cannot_use_are_refused() {
    let provider = mapping(&json!({ "id": "claims.sub", "level": "claims.level + 1" }));
    assert_eq!(user(&provider, &json!({ "sub": "a", "level": 1 })).unwrap().profile()["level"], 2);
    let refused = user(&provider, &json!({ "sub": "a", "level": [] })).unwrap_err();
    assert_eq!(refused, "Invalid token: unusable claims");
    let odd_id = user(&provider, &json!({ "sub": "a/b", "level": 1 })).unwrap_err();
    assert_eq!(odd_id, "Invalid token: invalid user id");
}

#[test]
fn a_function_may_make_the_profile() {
    let provider = provider(JwtSettings::hs256(SECRET)).map_user(|claims| {
        match claims.get("suspended").and_then(Value::as_bool) {
            Some(true) => Err(AuthError::invalid("account suspended")),
            _ => Ok(claims.iter().filter(|(key, _)| *key == "org").map(own).collect()),
        }
    });
    let ann = user(&provider, &json!({ "sub": "ann", "org": "ledger" })).unwrap();
    assert_eq!((ann.id(), &ann.profile()["org"]), (Some("ann"), &json!("ledger")));
    assert_eq!(ann.profile().len(), 1);
    let refused = user(&provider, &json!({ "sub": "ann", "suspended": true })).unwrap_err();
    assert_eq!(refused, "Invalid token: account suspended");
}

fn own((key, value): (&String, &Value)) -> (String, Value) {
    (key.clone(), value.clone())
}
