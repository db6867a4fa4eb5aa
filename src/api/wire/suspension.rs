//! Suspensions on the wire.

use greenroom_actors::domain::fact::{Others, Suspension};
use serde::Serialize;
use serde_json::Value;
use serde_with::skip_serializing_none;
use utoipa::ToSchema;

use crate::api::wire::Iso;
use crate::api::wire::execution::PrincipalView;

/// Suspensions that an execution waits for.
#[skip_serializing_none]
#[derive(Debug, Default, Serialize, ToSchema)]
#[schema(as = Suspensions)]
#[serde(rename_all = "camelCase")]
pub struct SuspensionsView<'a> {
    pub suspension: Option<SuspensionView<'a>>,
    /// All suspensions that the execution waits for, the first one is `suspension`. If there are
    /// too many, those that have waited longest.
    pub suspensions: Option<Vec<SuspensionView<'a>>>,
    /// Number of omitted suspensions, if any; the state shows all of them.
    pub suspensions_omitted: Option<usize>,
}

impl<'a> SuspensionsView<'a> {
    /// Shows the first suspension and the others.
    pub fn of(
        first: Option<&'a Suspension>,
        others: Option<&'a Others>,
        view: fn(&'a Suspension) -> SuspensionView<'a>,
    ) -> Self {
        let Some(first) = first else { return Self::default() };
        let more = others.map_or(&[][..], |others| &others.suspensions);
        Self {
            suspension: Some(view(first)),
            suspensions: Some(std::iter::once(first).chain(more).map(view).collect()),
            suspensions_omitted: others.map(|it| it.omitted).filter(|omitted| *omitted > 0),
        }
    }

    /// Shows as many of these suspensions as an announcement has.
    pub(super) fn among(
        all: &'a [Suspension],
        view: fn(&'a Suspension) -> SuspensionView<'a>,
    ) -> Self {
        let Some((first, others)) = all.split_first() else { return Self::default() };
        let (shown, omitted) = others.split_at(Others::announced(others));
        Self {
            suspension: Some(view(first)),
            suspensions: Some(std::iter::once(first).chain(shown).map(view).collect()),
            suspensions_omitted: Some(omitted.len()).filter(|omitted| *omitted > 0),
        }
    }
}

/// Suspension of an execution. Results and events name the index of the step `suspendedStepIndex`,
/// states name it `stepIndex`.
#[skip_serializing_none]
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Suspension)]
#[serde(rename_all = "camelCase")]
pub struct SuspensionView<'a> {
    /// Unique id, for `options.suspensionId` of a resume. Absent in records of older versions.
    pub id: Option<&'a str>,
    pub suspended_at: Iso,
    pub reason: &'a str,
    pub suspended_step_index: Option<usize>,
    pub step_index: Option<usize>,
    pub step_id: &'a str,
    pub path: &'a str,
    pub payload: Option<&'a Value>,
    /// True if there is a payload that is not shown here: lists omit those of more than about 8 KiB.
    pub payload_omitted: Option<bool>,
    pub deadline: Option<Iso>,
    /// User who paused the execution.
    pub suspended_by: Option<PrincipalView<'a>>,
    /// True if a caller paused the execution; absent if a step waits.
    pub pause: Option<bool>,
}

impl<'a> SuspensionView<'a> {
    /// Shows a suspension as in results and events.
    pub fn in_result(suspension: &'a Suspension) -> Self {
        let index = Some(suspension.step_index);
        Self { suspended_step_index: index, step_index: None, ..Self::in_state(suspension) }
    }

    /// Omits the payload.
    #[must_use]
    pub fn without_payload(self) -> Self {
        let payload_omitted = self.payload.map(|_| true).or(self.payload_omitted);
        Self { payload: None, payload_omitted, ..self }
    }

    /// Shows a suspension as in the state.
    pub fn in_state(suspension: &'a Suspension) -> Self {
        Self {
            id: suspension.id.as_deref(),
            suspended_by: suspension.by.as_deref().map(PrincipalView::of),
            suspended_at: Iso(suspension.suspended_at),
            reason: &suspension.reason,
            suspended_step_index: None,
            step_index: Some(suspension.step_index),
            step_id: &suspension.step_id,
            path: &suspension.path,
            payload: suspension.payload.as_deref(),
            payload_omitted: suspension.payload_omitted.then_some(true),
            deadline: suspension.deadline.map(Iso),
            pause: suspension.is_pause().then_some(true),
        }
    }
}
