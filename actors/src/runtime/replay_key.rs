//! The second and later calls with an idempotency key.

use std::sync::Arc;

use tokio::sync::oneshot;

use crate::orders::Order;
use crate::ports::store::IdempotencyRecord;
use crate::requests::{DescribeError, IdempotencyKey, Rest, ResumeError, StartError, Unavailable};
use crate::runtime::{Runtime, unreadable};

/// The key is known with another body.
struct KeyReused;

enum Earlier {
    Unavailable(Unavailable),
    KeyReused,
}

impl From<Unavailable> for Earlier {
    fn from(why: Unavailable) -> Self {
        Self::Unavailable(why)
    }
}

impl From<KeyReused> for Earlier {
    fn from(_: KeyReused) -> Self {
        Self::KeyReused
    }
}

impl Runtime {
    pub(super) async fn earlier_start(
        &self,
        key: &IdempotencyKey,
    ) -> Result<Option<Rest>, StartError> {
        self.earlier(key).await.map_err(|error| match error {
            Earlier::Unavailable(why) => StartError::Unavailable(why),
            Earlier::KeyReused => StartError::KeyReused,
        })
    }

    pub(super) async fn earlier_resume(
        &self,
        key: &IdempotencyKey,
    ) -> Result<Option<Rest>, ResumeError> {
        self.earlier(key).await.map_err(|error| match error {
            Earlier::Unavailable(why) => ResumeError::Unavailable(why),
            Earlier::KeyReused => ResumeError::KeyReused,
        })
    }

    /// What the first call with this key got, or will get.
    async fn earlier(&self, key: &IdempotencyKey) -> Result<Option<Rest>, Earlier> {
        let now = self.core.clock.now();
        let known = self.core.store.idempotency(&key.scope, now).await.map_err(unreadable)?;
        let Some(record) = known else { return Ok(None) };
        let record = same_body(record, key)?;
        let (answer, heard) = oneshot::channel();
        let order = Order::AwaitRest { after_seq: record.after_seq, answer };
        self.core.deliver(record.execution.clone(), order);
        match self.hear(&record.execution, heard).await {
            Ok(rest) => Ok(Some(rest)),
            Err(DescribeError::NotFound) => {
                let why = Arc::from("the execution of this idempotency key is gone");
                Err(Unavailable::Store(why).into())
            }
            Err(DescribeError::Unavailable(why)) => Err(why.into()),
        }
    }
}

fn same_body(
    record: IdempotencyRecord,
    key: &IdempotencyKey,
) -> Result<IdempotencyRecord, KeyReused> {
    if record.body_hash == key.body_hash { Ok(record) } else { Err(KeyReused) }
}
