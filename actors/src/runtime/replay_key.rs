//! Repeated calls with an idempotency key.

use std::sync::Arc;

use crate::commands::{ExecutionCommand, Subject};
use crate::domain::ids::ExecutionId;
use crate::ports::store::IdempotencyRecord;
use crate::requests::{
    AskError, DescribeError, ExecutionOutcome, IdempotencyKey, ResumeError, StartError, Target,
    Unavailable,
};
use crate::runtime::Runtime;

/// Failure to find the outcome of an earlier call.
enum Earlier {
    Unavailable(Unavailable),
    /// The key was used with another body.
    KeyReused,
    /// The key's execution does not exist, or not for this caller.
    NotFound,
}

impl From<Unavailable> for Earlier {
    fn from(why: Unavailable) -> Self {
        Self::Unavailable(why)
    }
}

impl From<Earlier> for StartError {
    fn from(error: Earlier) -> Self {
        match error {
            Earlier::Unavailable(why) => Self::Unavailable(why),
            Earlier::KeyReused => Self::KeyReused,
            Earlier::NotFound => {
                let reason = Arc::from("the execution of this idempotency key is gone");
                Self::Unavailable(Unavailable::Store { reason, execution: None })
            }
        }
    }
}

impl Runtime {
    pub(super) async fn earlier_start(
        &self,
        key: &IdempotencyKey,
    ) -> Result<Option<ExecutionOutcome>, StartError> {
        // The key's scope includes the user, who owns the execution.
        Ok(self.earlier(key, None).await?)
    }

    /// Returns the execution that the first call with this key started.
    pub(super) async fn started_earlier(
        &self,
        key: &IdempotencyKey,
    ) -> Result<Option<ExecutionId>, StartError> {
        Ok(self.record_of(key).await?.map(|record| record.execution))
    }

    pub(super) async fn earlier_resume(
        &self,
        key: &IdempotencyKey,
        target: &Target,
    ) -> Result<Option<ExecutionOutcome>, ResumeError> {
        self.earlier(key, Some(target.into())).await.map_err(|error| match error {
            Earlier::Unavailable(why) => ResumeError::Unavailable(why),
            Earlier::KeyReused => ResumeError::KeyReused,
            Earlier::NotFound => ResumeError::NotFound,
        })
    }

    /// Returns true if an earlier call with this key was recorded.
    pub(super) async fn is_known(&self, key: &IdempotencyKey) -> Result<bool, AskError> {
        match self.record_of(key).await {
            Ok(known) => Ok(known.is_some()),
            Err(Earlier::Unavailable(why)) => Err(why.into()),
            Err(Earlier::KeyReused | Earlier::NotFound) => Err(AskError::KeyReused),
        }
    }

    /// Returns the outcome of the first call with this key, now or when it is there.
    async fn earlier(
        &self,
        key: &IdempotencyKey,
        subject: Option<Subject>,
    ) -> Result<Option<ExecutionOutcome>, Earlier> {
        let Some(record) = self.record_of(key).await? else { return Ok(None) };
        let after_seq = record.after_seq;
        let command = |answer| ExecutionCommand::AwaitOutcome { subject, after_seq, answer };
        match self.ask(&record.execution, command).await {
            Ok(outcome) => Ok(Some(outcome)),
            Err(DescribeError::NotFound) => Err(Earlier::NotFound),
            Err(DescribeError::Unavailable(why)) => Err(why.into()),
        }
    }

    /// Returns the record of the first call with this key.
    async fn record_of(&self, key: &IdempotencyKey) -> Result<Option<IdempotencyRecord>, Earlier> {
        let now = self.shared.clock.now();
        let known = self.shared.store.idempotency(&key.scope, now).await;
        match known.map_err(Unavailable::from)? {
            Some(record) if record.body_hash != key.body_hash => Err(Earlier::KeyReused),
            known => Ok(known),
        }
    }
}
