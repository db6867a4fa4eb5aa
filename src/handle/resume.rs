//! The resume of an execution.

use std::future::IntoFuture;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use greenroom_actors::Runtime;
use greenroom_actors::domain::principal::Principal;
use greenroom_actors::requests::{ExecutionOutcome, ResumeError, ResumeExecution, Target};
use serde_json::Value;

use crate::api::caller::Caller;
use crate::auth::User;

/// A resume that happens when it is awaited.
#[derive(Debug)]
#[must_use = "nothing is resumed until it is awaited"]
pub struct Resume {
    runtime: Runtime,
    target: Target,
    request: ResumeExecution,
    /// Reason why the data cannot be sent.
    refusal: Option<ResumeError>,
}

impl Resume {
    pub(super) fn new(
        runtime: Runtime,
        target: Target,
        step: Option<&str>,
        data: Result<Value, serde_json::Error>,
    ) -> Self {
        let (data, refusal) = match data {
            Ok(data) => (data, None),
            Err(error) => (Value::Null, Some(ResumeError::InvalidData(error.to_string()))),
        };
        let step_id = step.map(str::to_owned);
        let request = ResumeExecution { step_id, data, ..ResumeExecution::default() };
        Self { runtime, target, request, refusal }
    }

    /// Names the suspension that this answers, by the `suspensionId` of the state: the resume is refused
    /// with [`ResumeError::SuspensionPassed`] if the step waits anew by then, so that two clicks are
    /// one answer.
    pub fn suspension(mut self, id: impl Into<String>) -> Self {
        self.request.suspension_id = Some(id.into());
        self
    }

    /// Answers as the caller of a request, as the HTTP API does: the caller has to be among those who
    /// are asked, is who [`StepContext::resumed_by`](crate::step::StepContext) names, and is refused
    /// with [`ResumeError::NotAssigned`] otherwise.
    pub fn caller(mut self, caller: &Caller) -> Self {
        self.request.by = caller.user().and_then(User::id).map(Principal::verified);
        self.request.answerer = Some(caller.answerer(None));
        self
    }
}

impl IntoFuture for Resume {
    type Output = Result<ExecutionOutcome, ResumeError>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        let Self { runtime, target, request, refusal } = self;
        async move {
            match refusal {
                Some(refusal) => Err(refusal),
                None => runtime.resume(&target, request).await,
            }
        }
        .boxed()
    }
}
