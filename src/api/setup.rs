//! Use case of `POST /setup-observability`: stores the keys of the telemetry service for the next
//! start.

use crate::api::error::{ApiError, SystemFailure};
use crate::api::ids::wrong_with_line;
use crate::api::json;
use crate::api::wire::system::{SetupBody, SetupView};
use crate::maintenance::{Maintenance, ServiceKeys};

/// Maximum length of a key, in characters.
pub(crate) const KEY_CHARS_MAX: usize = 4096;

/// Writes the keys of a body into the environment file.
pub async fn keep_keys(maintenance: &Maintenance, body: &[u8]) -> Result<SetupView, ApiError> {
    let keys = read_keys(body)?;
    match maintenance.keep_keys(keys).await {
        Ok(()) => Ok(SetupView { message: "Keys saved; restart the server to use them" }),
        Err(error) => {
            log::error!("failed to write the environment file: {error}");
            Err(SystemFailure::FileNotWritten.into())
        }
    }
}

fn read_keys(body: &[u8]) -> Result<ServiceKeys, ApiError> {
    let SetupBody { public_key, secret_key } = json::parse(body)?;
    Ok(ServiceKeys {
        public: checked("publicKey", public_key)?,
        secret: checked("secretKey", secret_key)?,
    })
}

/// Checks that a key fits into a line of a file and into a header.
fn checked(name: &str, key: Option<String>) -> Result<String, ApiError> {
    let key = key.ok_or_else(|| ApiError::body(name, "missing"))?;
    wrong_with_line(&key, KEY_CHARS_MAX).map_or(Ok(key), |what| Err(ApiError::body(name, what)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn keys_are_stored_unchanged() {
        let long = "k".repeat(KEY_CHARS_MAX);
        for (public, secret) in [("pk_1", "sk_1"), (" p ", "a=b#c \"d\" 'e' $f"), ("é", &long)] {
            let body = json!({ "publicKey": public, "secretKey": secret, "more": 1 });
            let Ok(keys) = read_keys(body.to_string().as_bytes()) else { panic!("{body}") };
            assert_eq!((keys.public.as_str(), keys.secret.as_str()), (public, secret));
        }
    }

    #[test]
    fn an_invalid_key_is_named_but_not_echoed() {
        const WHAT: &str = "must be 1 to 4096 characters, no control characters";
        let long = "k".repeat(KEY_CHARS_MAX + 1);
        let rows = [
            (json!({ "secretKey": "s" }), "publicKey: missing".to_owned()),
            (json!({ "publicKey": "p" }), "secretKey: missing".to_owned()),
            (json!({ "publicKey": "p", "secretKey": null }), "secretKey: missing".to_owned()),
            (json!({ "publicKey": "", "secretKey": "s" }), format!("publicKey: {WHAT}")),
            (json!({ "publicKey": "p", "secretKey": "a\nB=1" }), format!("secretKey: {WHAT}")),
            (json!({ "publicKey": "a\u{0}", "secretKey": "s" }), format!("publicKey: {WHAT}")),
            (json!({ "publicKey": "a\u{7f}", "secretKey": "s" }), format!("publicKey: {WHAT}")),
            (json!({ "publicKey": "a\u{85}", "secretKey": "s" }), format!("publicKey: {WHAT}")),
            (json!({ "publicKey": "p", "secretKey": long }), format!("secretKey: {WHAT}")),
            (
                json!({ "publicKey": true, "secretKey": "s" }),
                "publicKey: invalid type: boolean `true`, expected a string".to_owned(),
            ),
            (json!(["p", "s"]), "invalid type: sequence, expected an object".to_owned()),
        ];
        for (body, what) in rows {
            let refusal = read_keys(body.to_string().as_bytes()).err().map(|it| it.to_string());
            assert_eq!(refusal, Some(format!("Invalid request body: {what}")), "{body}");
        }
    }
}
