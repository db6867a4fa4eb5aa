//! Versions of a workflow on the wire.

use greenroom_actors::domain::status::Status;
use greenroom_actors::runtime::{Version, Versions};
use serde::Serialize;
use utoipa::ToSchema;

use crate::api::wire::Iso;
use crate::api::wire::counts::StatusCountsView;
use crate::api::wire::shape::execution_status;

/// Versions of a workflow that its executions began with.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = WorkflowVersions)]
#[serde(rename_all = "camelCase")]
pub struct VersionsView<'a> {
    /// The version of new executions first, then those that were started last.
    pub versions: Vec<VersionView<'a>>,
    /// True if all executions were counted.
    pub is_complete: bool,
    /// Statuses with more executions than are counted; only those that started at this time or
    /// later are.
    pub counted_from: Vec<StatusCountedFromView>,
}

/// Time from which on executions with a status were counted.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = StatusCountedFrom)]
pub struct StatusCountedFromView {
    #[schema(schema_with = execution_status)]
    pub status: &'static str,
    pub from: Iso,
}

/// A version, and its counted executions.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = WorkflowVersion)]
#[serde(rename_all = "camelCase")]
pub struct VersionView<'a> {
    pub definition_hash: &'a str,
    /// True for the version that new executions begin with.
    pub is_current: bool,
    /// First start of a counted execution; null without any.
    #[schema(required)]
    pub first_start_at: Option<Iso>,
    /// Last start of a counted execution; null without any.
    #[schema(required)]
    pub last_start_at: Option<Iso>,
    #[serde(flatten)]
    pub counts: StatusCountsView,
}

impl<'a> VersionsView<'a> {
    pub fn of(versions: &'a Versions) -> Self {
        let counted_from = |(status, from): &(Status, _)| StatusCountedFromView {
            status: status.as_str(),
            from: Iso(*from),
        };
        Self {
            versions: versions.versions.iter().map(VersionView::of).collect(),
            is_complete: versions.counted_from.is_empty(),
            counted_from: versions.counted_from.iter().map(counted_from).collect(),
        }
    }
}

impl<'a> VersionView<'a> {
    fn of(version: &'a Version) -> Self {
        let mut counts = StatusCountsView::default();
        for (status, count) in &version.counts {
            counts.add(*status, *count);
        }
        Self {
            definition_hash: &version.definition_hash,
            is_current: version.is_registered,
            first_start_at: version.started.map(|(first, _)| Iso(first)),
            last_start_at: version.started.map(|(_, last)| Iso(last)),
            counts,
        }
    }
}
