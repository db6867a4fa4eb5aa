//! What the registered claims must be. Their signature is good by now: a claim that is odd was
//! signed so, and is refused rather than guessed at.

use std::time::Duration;

use greenroom_actors::domain::time::Timestamp;
use serde_json::{Map, Value};

use crate::auth::AuthError;

/// How far clocks may differ at most: an expired token is a revoked one.
pub const LEEWAY_MAX: Duration = Duration::from_secs(5);

/// The last second of the year 9999: beyond it there is no date that others can read.
const SECONDS_MAX: f64 = 253_402_300_799.0;

/// What is asked of the claims.
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
            return Err(format!("leeway is {leeway:?}; it may be {LEEWAY_MAX:?} at most"));
        }
        let leeway_ms = u64::try_from(leeway.as_millis()).unwrap_or(0);
        Ok(Self { issuer, audience, leeway_ms, require_exp })
    }

    /// Checks claims and returns when the token ends.
    pub(super) fn check(
        &self,
        claims: &Map<String, Value>,
        now: Timestamp,
    ) -> Result<Option<Timestamp>, AuthError> {
        let ends_at = time(claims, "exp", "invalid claim exp")?;
        let begins_at = time(claims, "nbf", "invalid claim nbf")?;
        time(claims, "iat", "invalid claim iat")?;
        let issuer = issuer(claims)?;
        let audience = audience(claims)?;

        if self.require_exp && ends_at.is_none() {
            return Err(AuthError::invalid("missing claim exp"));
        }
        if begins_at.is_some_and(|begin| begin > now.plus_ms(self.leeway_ms)) {
            return Err(AuthError::invalid("jwt not active"));
        }
        // It is good before its end, not at it.
        if ends_at.is_some_and(|end| end.plus_ms(self.leeway_ms) <= now) {
            return Err(AuthError::Expired);
        }
        let is_ours = |accepted: &[String], name: &str| accepted.iter().any(|it| it == name);
        if !self.issuer.is_empty() && !issuer.is_some_and(|name| is_ours(&self.issuer, name)) {
            return Err(AuthError::invalid("invalid issuer"));
        }
        if !self.audience.is_empty() && !audience.iter().any(|name| is_ours(&self.audience, name)) {
            return Err(AuthError::invalid("invalid audience"));
        }
        Ok(ends_at)
    }
}

/// Seconds since 1970, with or without a fraction.
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

fn issuer(claims: &Map<String, Value>) -> Result<Option<&str>, AuthError> {
    match claims.get("iss") {
        None => Ok(None),
        Some(Value::String(issuer)) => Ok(Some(issuer)),
        Some(_) => Err(AuthError::invalid("invalid claim iss")),
    }
}

/// One audience, or several.
fn audience(claims: &Map<String, Value>) -> Result<Vec<&str>, AuthError> {
    let names: Option<Vec<&str>> = match claims.get("aud") {
        None => Some(Vec::new()),
        Some(Value::String(audience)) => Some(vec![audience]),
        Some(Value::Array(several)) => several.iter().map(Value::as_str).collect(),
        Some(_) => None,
    };
    names.ok_or_else(|| AuthError::invalid("invalid claim aud"))
}
