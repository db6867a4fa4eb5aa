//! Checks of the registered claims, after the signature was verified.

use std::time::Duration;

use greenroom_actors::domain::time::Timestamp;
use serde_json::{Map, Value};

use crate::auth::AuthError;

/// Upper bound of `leeway`: expired tokens are accepted for that long.
pub const LEEWAY_MAX: Duration = Duration::from_secs(5);

/// Last second of the year 9999, the last that common date formats can represent.
const SECONDS_MAX: f64 = 253_402_300_799.0;

/// Requirements of the claims.
#[derive(Debug)]
pub(super) struct Rules {
    issuer: Vec<String>,
    audience: Vec<String>,
    leeway_ms: u64,
    require_exp: bool,
}

impl Rules {
    pub(super) fn new(
        issuer: Vec<String>,
        audience: Vec<String>,
        leeway: Duration,
        require_exp: bool,
    ) -> Result<Self, String> {
        if leeway > LEEWAY_MAX {
            return Err(format!("leeway is {leeway:?}; the maximum is {LEEWAY_MAX:?}"));
        }
        let leeway_ms = u64::try_from(leeway.as_millis()).unwrap_or(0);
        Ok(Self { issuer, audience, leeway_ms, require_exp })
    }

    /// Checks claims and returns the time when the token expires.
    pub(super) fn check(
        &self,
        claims: &Map<String, Value>,
        now: Timestamp,
    ) -> Result<Option<Timestamp>, AuthError> {
        let expires_at = time(claims, "exp", "invalid claim exp")?;
        let active_from = time(claims, "nbf", "invalid claim nbf")?;
        if self.require_exp && expires_at.is_none() {
            return Err(AuthError::invalid("missing claim exp"));
        }
        if active_from.is_some_and(|start| start > now.plus_ms(self.leeway_ms)) {
            return Err(AuthError::invalid("jwt not active"));
        }
        // RFC 7519: not accepted on or after `exp`
        if expires_at.is_some_and(|end| end.plus_ms(self.leeway_ms) <= now) {
            return Err(AuthError::Expired);
        }
        if !self.issuer.is_empty() && !is_accepted(claims.get("iss"), &self.issuer) {
            return Err(AuthError::invalid("invalid issuer"));
        }
        let is_for_us = || match claims.get("aud") {
            Some(Value::Array(several)) => {
                several.iter().all(Value::is_string)
                    && several.iter().any(|name| is_accepted(Some(name), &self.audience))
            }
            audience => is_accepted(audience, &self.audience),
        };
        if !self.audience.is_empty() && !is_for_us() {
            return Err(AuthError::invalid("invalid audience"));
        }
        Ok(expires_at)
    }
}

fn is_accepted(name: Option<&Value>, accepted: &[String]) -> bool {
    name.and_then(Value::as_str).is_some_and(|name| accepted.iter().any(|it| it == name))
}

/// Reads a time in seconds since 1970, with or without a fraction.
fn time(
    claims: &Map<String, Value>,
    name: &str,
    reason: &'static str,
) -> Result<Option<Timestamp>, AuthError> {
    let Some(value) = claims.get(name) else { return Ok(None) };
    let seconds = value.as_f64().filter(|seconds| (0.0..=SECONDS_MAX).contains(seconds));
    let seconds = seconds.ok_or_else(|| AuthError::invalid(reason))?;
    Ok(Some(Timestamp((seconds * 1000.0) as i64)))
}
