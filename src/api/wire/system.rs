//! Updates and the keys of telemetry on the wire.

use semver::Version;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;
use utoipa::ToSchema;

/// Response of `GET /updates`.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Updates)]
#[serde(rename_all = "camelCase")]
pub struct UpdatesView {
    pub has_updates: bool,
    /// All checked packages, with or without a newer version.
    pub updates: Vec<UpdateView>,
    /// Number of packages with a newer version.
    pub count: usize,
    pub message: String,
}

/// Installed and newest version of a package.
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

/// Most significant part of the version that differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum UpdateKind {
    Major,
    Minor,
    Patch,
    /// The installed version is the newest.
    Latest,
}

/// Body of `POST /updates`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InstallBody {
    pub package_name: Option<String>,
}

/// Response of `POST /updates`.
#[skip_serializing_none]
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Installed)]
#[serde(rename_all = "camelCase")]
pub struct InstalledView {
    pub message: String,
    /// Name from the body.
    pub package_name: Option<String>,
}

/// Body of `POST /setup-observability`. No `Debug`: it holds secrets.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SetupBody {
    pub public_key: Option<String>,
    pub secret_key: Option<String>,
}

/// Response of `POST /setup-observability`.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = KeysWritten)]
pub struct SetupView {
    pub message: &'static str,
}
