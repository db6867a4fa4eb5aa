//! Reads of executions, answered by their actors or from their rows.

use std::sync::Arc;

use tokio::sync::{Semaphore, oneshot};

use crate::commands::{Answer, ExecutionCommand};
use crate::domain::ids::ExecutionId;
use crate::execution::{answer_from_rows, restore};
use crate::requests::{Target, Unavailable, is_refused_as};
use crate::runtime::Runtime;

/// Executions that are read at once without their supervisors. Each is in memory meanwhile.
const READ_AT_ONCE: usize = 256;

const BUSY: Unavailable = Unavailable::Busy { execution: None };
const MOVED: Unavailable = Unavailable::Moved { execution: None };

/// Bounds the executions that are read at once without their supervisors.
#[derive(Debug, Clone)]
pub(super) struct RowReads(Arc<Semaphore>);

impl Default for RowReads {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(READ_AT_ONCE)))
    }
}

impl Runtime {
    /// Reads an execution. The rows have everything that was acknowledged, so they answer for one
    /// that this process does not serve.
    pub(super) async fn read<T, E: From<Unavailable> + PartialEq>(
        &self,
        target: &Target,
        command: impl Fn(Answer<T, E>) -> ExecutionCommand,
    ) -> Result<T, E> {
        if !self.serves(target) {
            return self.read_rows(&target.execution_id, command).await;
        }
        let answer = self.ask_unless_ended(target, &command).await;
        if is_refused_as(&answer, MOVED) {
            // another process has taken it over since
            return self.read_rows(&target.execution_id, command).await;
        }
        answer
    }

    /// Asks an execution, wherever it runs. If it has ended, its rows answer for an actor that is
    /// too busy or elsewhere.
    pub(super) async fn ask_unless_ended<T, E: From<Unavailable> + PartialEq>(
        &self,
        target: &Target,
        command: impl Fn(Answer<T, E>) -> ExecutionCommand,
    ) -> Result<T, E> {
        let id = &target.execution_id;
        if !self.serves(target) && self.ended(target).await.is_some() {
            return self.read_rows(id, command).await;
        }
        let answer = self.ask(id, &command).await;
        let may_be_read = is_refused_as(&answer, BUSY) || is_refused_as(&answer, MOVED);
        if may_be_read && self.ended(target).await.is_some() {
            return self.read_rows(id, command).await;
        }
        answer
    }

    /// Returns true if this process serves the execution, and may believe it.
    fn serves(&self, target: &Target) -> bool {
        let ownership = &self.shared.ownership;
        ownership.serves(&target.execution_id) && ownership.is_believed()
    }

    /// Answers a command that only reads.
    pub(super) async fn read_rows<T, E: From<Unavailable>>(
        &self,
        id: &ExecutionId,
        command: impl FnOnce(Answer<T, E>) -> ExecutionCommand,
    ) -> Result<T, E> {
        let Ok(_permit) = self.row_reads.0.try_acquire() else {
            return Err(BUSY.into());
        };
        let (answer, reply) = oneshot::channel();
        let command = command(answer);
        match restore(&self.shared, id).await {
            Ok(Some(restored)) => {
                if let Some(command) = answer_from_rows(&self.shared, &restored, command) {
                    command.refuse(MOVED);
                }
            }
            Ok(None) => command.not_found(),
            Err(why) => command.refuse(why),
        }
        reply.await.unwrap_or_else(|_| Err(Unavailable::ActorLost.into()))
    }
}

#[cfg(test)]
mod tests {
    use futures_util::future::join_all;
    use serde_json::json;

    use super::*;
    use crate::domain::definition::{Body, Mapping, StepDefinition, StepKind, WorkflowDefinition};
    use crate::limits::RuntimeLimits;
    use crate::requests::DescribeError;
    use crate::testkit::{World, registry_of, start, target};

    #[actix::test]
    async fn as_many_are_read_at_once_as_there_is_room_for() {
        let one = StepKind::Then { body: Body::Map(Mapping(json!(1))) };
        let definition = WorkflowDefinition::new("w", vec![StepDefinition::new("one", one)]);
        let world = World::launch(registry_of([definition]), RuntimeLimits::default()).await;
        let (runtime, target) = (&world.runtime, target("w", "e"));
        runtime.execute(start("w", "e", json!({}))).await.unwrap();
        let refusals = async || {
            // more than wait for one execution to be loaded
            let reads = join_all((0..140).map(|_| runtime.describe(&target))).await;
            reads.into_iter().filter_map(Result::err).collect::<Vec<_>>()
        };
        let others =
            runtime.row_reads.0.try_acquire_many(u32::try_from(READ_AT_ONCE).unwrap()).unwrap();
        let refused = refusals().await;
        assert!(refused.contains(&DescribeError::Unavailable(BUSY)), "{refused:?}");
        drop(others);
        assert_eq!(refusals().await, []);
    }
}
