//! Bodies of requests about asks.

use serde::Deserialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::api::json::{Closed, Object, present};

/// Body of an answer.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AnswerBody {
    #[serde(default, deserialize_with = "present")]
    pub data: Option<Value>,
    #[serde(default)]
    pub force: bool,
    #[serde(default)]
    pub options: Option<Object<AskOptions>>,
}

impl Closed for AnswerBody {
    const KEYS: &'static [&'static str] = &["data", "force", "options", "options.userId"];
}

/// Body of a claim.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ClaimBody {
    /// Duration, at most `24h`. Default: `30m`.
    #[serde(default, rename = "for")]
    #[schema(example = "30m")]
    pub lasts: Option<String>,
    /// Passes over the claim of another user, for roles in `inbox.force_roles`.
    #[serde(default)]
    pub force: bool,
    #[serde(default)]
    #[schema(value_type = Option<AskOptions>)]
    pub options: Option<Object<AskOptions>>,
}

impl Closed for ClaimBody {
    const KEYS: &'static [&'static str] = &["for", "force", "options", "options.userId"];
}

/// Body of a release.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReleaseBody {
    /// Ends the claim of another user, for roles in `inbox.force_roles`.
    #[serde(default)]
    pub force: bool,
    #[serde(default)]
    #[schema(value_type = Option<AskOptions>)]
    pub options: Option<Object<AskOptions>>,
}

impl Closed for ReleaseBody {
    const KEYS: &'static [&'static str] = &["force", "options", "options.userId"];
}

/// Body of an assignment.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AssignBody {
    /// `user:<id>`, `role:<name>` and `!self`, at most 32. Empty: everyone who sees the ask.
    #[schema(max_items = 32)]
    pub to: Vec<String>,
    /// Assigns what others are asked or have claimed, for roles in `inbox.force_roles`.
    #[serde(default)]
    pub force: bool,
    #[serde(default)]
    #[schema(value_type = Option<AskOptions>)]
    pub options: Option<Object<AskOptions>>,
}

impl Closed for AssignBody {
    const KEYS: &'static [&'static str] = &["to", "force", "options", "options.userId"];
}

/// Body of a request for a link.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LinkBody {
    /// User or role that the holder of the link counts as, `user:<id>` or `role:<name>`: one of those who are
    /// asked.
    pub to: String,
    /// Duration, at most `90d`. Default: `inbox.link_ttl`.
    #[serde(default)]
    #[schema(example = "2h")]
    pub ttl: Option<String>,
    #[serde(default)]
    #[schema(value_type = Option<AskOptions>)]
    pub options: Option<Object<AskOptions>>,
}

impl Closed for LinkBody {
    const KEYS: &'static [&'static str] = &["to", "ttl", "options", "options.userId"];
}

/// `options` of a request about an ask.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AskOptions {
    /// User of the request, if no token names one. Part of the scope of `Idempotency-Key`.
    pub user_id: Option<String>,
}
