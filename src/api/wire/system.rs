//! Updates and the keys of telemetry on the wire.

use semver::Version;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The answer of `GET /updates`.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Updates)]
#[serde(rename_all = "camelCase")]
pub struct UpdatesView {
    pub has_updates: bool,
    /// Every package that is looked for, with and without a newer version.
    pub updates: Vec<UpdateView>,
    /// How many of them have one.
    pub count: usize,
    pub message: String,
}

/// A package, as it is here and as it could be.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Update)]
pub struct UpdateView {
    pub name: &'static str,
    #[schema(value_type = String)]
    pub installed: Version,
    #[schema(value_type = String)]
    pub latest: Version,
    #[serde(rename = "type")]
    pub kind: UpdateKind,
}

/// The first part of a version that is newer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum UpdateKind {
    Major,
    Minor,
    Patch,
    /// None is: the installed version is the newest that is known.
    Latest,
}

/// The body of `POST /updates`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InstallBody {
    pub package_name: Option<String>,
}

/// The answer of `POST /updates`.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Installed)]
#[serde(rename_all = "camelCase")]
pub struct InstalledView {
    pub message: String,
    /// As the body named it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub package_name: Option<String>,
}

/// The body of `POST /setup-observability`. Not to be shown.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SetupBody {
    pub public_key: Option<String>,
    pub secret_key: Option<String>,
}

/// The answer of `POST /setup-observability`.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = KeysWritten)]
pub struct SetupView {
    pub message: &'static str,
}
