//! A request for a token, and the answer to it (RFC 6749, sections 2.3.1 and 4.4).

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use greenroom_actors::domain::failure::shortened;
use greenroom_actors::domain::foreign;
use serde_json::Value;
use url::form_urlencoded::{Serializer, byte_serialize};

use super::fetch::Answer;
use crate::adapters::mcp::settings::SecretIn;
use crate::adapters::tools::secrets::Known;

/// Largest token, in bytes.
const TOKEN_BYTES_MAX: usize = 16 << 10;
/// Longest code of a refusal, and longest description of it, in bytes.
const CODE_BYTES_MAX: usize = 100;
const DESCRIPTION_BYTES_MAX: usize = 200;
/// Longest time for which a token counts as fresh, whatever the answer says.
const LIFETIME_MAX: Duration = Duration::from_secs(365 * 24 * 60 * 60);
/// Shortest one, so that no token is fetched for each request.
const LIFETIME_MIN: Duration = Duration::from_secs(1);

/// Credentials of this process.
pub(super) struct Credentials<'c> {
    pub(super) id: &'c str,
    pub(super) secret: &'c str,
}

impl Credentials<'_> {
    /// Returns the header `Authorization` without its scheme.
    pub(super) fn basic(&self) -> String {
        let encoded = |text: &str| byte_serialize(text.as_bytes()).collect::<String>();
        STANDARD.encode(format!("{}:{}", encoded(self.id), encoded(self.secret)))
    }

    /// Returns the body of the request.
    pub(super) fn form(&self, secret_in: SecretIn, scopes: &[String], resource: &str) -> String {
        let mut form = Serializer::new(String::new());
        form.append_pair("grant_type", "client_credentials");
        if !scopes.is_empty() {
            form.append_pair("scope", &scopes.join(" "));
        }
        form.append_pair("resource", resource);
        if secret_in == SecretIn::Body {
            form.append_pair("client_id", self.id).append_pair("client_secret", self.secret);
        }
        form.finish()
    }
}

/// A token with the time for which it is good, if the answer says so.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Given {
    pub(super) token: String,
    pub(super) lifetime: Option<Duration>,
}

/// Reads the answer. The error says why it has no token, without these secrets.
pub(super) fn token_of(answer: &Answer, secrets: &Known) -> Result<Given, String> {
    let read: Option<Value> = foreign::from_slice(&answer.body).ok();
    if answer.status != 200 {
        return Err(refusal(answer.status, read.as_ref(), secrets));
    }
    let Some(read) = read else { return Err("its answer is not JSON".to_owned()) };
    // some answer a refusal with status 200
    if read.get("error").is_some_and(|error| !error.is_null()) {
        return Err(refusal(answer.status, Some(&read), secrets));
    }
    let Some(token) = read["access_token"].as_str() else {
        return Err("its answer has no `access_token`".to_owned());
    };
    let is_plain = !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic());
    if !is_plain || token.len() > TOKEN_BYTES_MAX {
        return Err("its token contains characters that are not allowed in a header".to_owned());
    }
    let is_bearer = |kind: &str| kind.eq_ignore_ascii_case("bearer");
    if read.get("token_type").is_some_and(|kind| !kind.as_str().is_some_and(is_bearer)) {
        return Err("its token is not of the type Bearer".to_owned());
    }
    Ok(Given { token: token.to_owned(), lifetime: lifetime(&read["expires_in"]) })
}

/// Returns a lifetime in seconds, which some write as a string.
fn lifetime(written: &Value) -> Option<Duration> {
    let seconds = match written {
        Value::String(text) => text.parse().ok()?,
        number => number.as_f64()?,
    };
    let seconds = seconds.clamp(0.0, LIFETIME_MAX.as_secs_f64());
    Some(Duration::try_from_secs_f64(seconds).ok()?.max(LIFETIME_MIN))
}

/// Returns what a refusal says: its code and the begin of its description, never all of it.
fn refusal(status: u16, read: Option<&Value>, secrets: &Known) -> String {
    let text = |member: &str, max: usize| {
        let text = secrets.removed_from(read?.get(member)?.as_str()?.to_owned());
        let plain: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        Some(shortened(plain.trim(), max).to_owned()).filter(|text| !text.is_empty())
    };
    let Some(code) = text("error", CODE_BYTES_MAX) else {
        return match status {
            300..400 => {
                format!("it answered with a redirect (status {status}), which is not followed")
            }
            _ => format!("it answered with status {status}"),
        };
    };
    match text("error_description", DESCRIPTION_BYTES_MAX) {
        Some(description) => format!("it answered {code} (status {status}): {description}"),
        None => format!("it answered {code} (status {status})"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const OURS: Credentials<'_> = Credentials { id: "a b", secret: "s:&\u{e4}" };

    #[test]
    fn credentials_are_encoded() {
        assert_eq!(OURS.basic(), STANDARD.encode("a+b:s%3A%26%C3%A4"));
        let scopes = ["x".to_owned(), "y".to_owned()];
        let begin = "grant_type=client_credentials";
        for (secret_in, scopes, expected) in [
            (SecretIn::Header, &scopes[..0], "&resource=https%3A%2F%2Fa"),
            (SecretIn::Header, &scopes[..], "&scope=x+y&resource=https%3A%2F%2Fa"),
            (
                SecretIn::Body,
                &scopes[..1],
                "&scope=x&resource=https%3A%2F%2Fa&client_id=a+b&client_secret=s%3A%26%C3%A4",
            ),
        ] {
            let form = OURS.form(secret_in, scopes, "https://a");
            assert_eq!(form, format!("{begin}{expected}"));
        }
    }

    #[test]
    fn answers_have_a_token_or_a_reason() {
        let secrets = Known::of(["k3y-of-it"]);
        let given = |lifetime: Option<u64>| {
            Ok(Given { token: "t".to_owned(), lifetime: lifetime.map(Duration::from_secs) })
        };
        let refused = |why: &str| Err(why.to_owned());
        let token = |more: Value| {
            let mut answer = json!({ "access_token": "t", "token_type": "Bearer" });
            answer.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            answer.to_string()
        };
        let long = "x".repeat(TOKEN_BYTES_MAX + 1);
        for (status, body, expected) in [
            (200, token(json!({})), given(None)),
            (200, token(json!({ "expires_in": 60, "token_type": "bearer" })), given(Some(60))),
            (200, token(json!({ "expires_in": "60" })), given(Some(60))),
            (200, token(json!({ "expires_in": 0 })), given(Some(1))),
            (200, token(json!({ "expires_in": -5 })), given(Some(1))),
            (200, token(json!({ "expires_in": 1e300 })), given(Some(LIFETIME_MAX.as_secs()))),
            (200, token(json!({ "expires_in": "NaN" })), given(None)),
            (200, token(json!({ "expires_in": null })), given(None)),
            (200, r#"{"access_token":"t"}"#.to_owned(), given(None)),
            (200, "<html>".to_owned(), refused("its answer is not JSON")),
            (200, "{}".to_owned(), refused("its answer has no `access_token`")),
            (200, "[]".to_owned(), refused("its answer has no `access_token`")),
            (
                200,
                token(json!({ "token_type": "DPoP" })),
                refused("its token is not of the type Bearer"),
            ),
            (
                200,
                token(json!({ "access_token": "a\nb" })),
                refused("its token contains characters that are not allowed in a header"),
            ),
            (
                200,
                token(json!({ "access_token": long })),
                refused("its token contains characters that are not allowed in a header"),
            ),
            (
                401,
                r#"{"error":"invalid_client"}"#.to_owned(),
                refused("it answered invalid_client (status 401)"),
            ),
            (
                200,
                r#"{"error":"bad_verification_code"}"#.to_owned(),
                refused("it answered bad_verification_code (status 200)"),
            ),
            (
                400,
                r#"{"error":"invalid_scope","error_description":"no\nk3y-of-it "}"#.to_owned(),
                refused("it answered invalid_scope (status 400): no [secret]"),
            ),
            (500, "k3y-of-it".to_owned(), refused("it answered with status 500")),
            (
                302,
                String::new(),
                refused("it answered with a redirect (status 302), which is not followed"),
            ),
        ] {
            let answer = Answer { status, body: body.clone().into_bytes() };
            assert_eq!(token_of(&answer, &secrets), expected, "{status} {body}");
        }
        let described = json!({ "error": "e".repeat(300), "error_description": "d".repeat(300) });
        let answer = Answer { status: 400, body: described.to_string().into_bytes() };
        assert!(token_of(&answer, &secrets).unwrap_err().len() < 350);
    }
}
