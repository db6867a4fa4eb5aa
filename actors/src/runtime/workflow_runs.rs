//! Workflows run by tools: ordinary executions, cancelled when the call is dropped.

use std::sync::{Arc, Weak};

use actix::Arbiter;
use futures_util::future::{BoxFuture, FutureExt as _};
use tokio::sync::oneshot;

use crate::agent::generation::tools::RunWorkflow;
use crate::agent::tool::IsInterrupted;
use crate::commands::{
    ControlCommand, ExecutionCommand, StartAnswer, StartCommand, StartRefusal, Subject,
};
use crate::domain::ids::ExecutionId;
use crate::requests::{DescribeError, ExecutionOutcome, StartError, StartExecution, Unavailable};
use crate::runtime::requests::{claim_for, plan_of, start_of};
use crate::shared::Shared;
use crate::visibility::Visibility;

/// Runs executions for tools.
pub(super) struct WorkflowRuns {
    /// Weak: `Shared` owns the dependencies of agents, which own this.
    shared: Weak<Shared>,
}

impl WorkflowRuns {
    pub(super) fn new(shared: &Arc<Shared>) -> Self {
        Self { shared: Arc::downgrade(shared) }
    }
}

impl RunWorkflow for WorkflowRuns {
    fn run(
        &self,
        start: StartExecution,
        depth: u32,
        is_interrupted: Option<IsInterrupted>,
    ) -> BoxFuture<'static, Result<ExecutionOutcome, StartError>> {
        let shared = self.shared.upgrade();
        async move { run(shared.ok_or_else(ending)?, start, depth, is_interrupted).await }.boxed()
    }
}

async fn run(
    shared: Arc<Shared>,
    mut request: StartExecution,
    depth: u32,
    is_interrupted: Option<IsInterrupted>,
) -> Result<ExecutionOutcome, StartError> {
    let workflow = request.workflow_id.clone();
    let id = shared.execution_id(request.execution_id.clone());
    let claim = claim_for(&shared, &mut request)?;
    let plan = plan_of(&shared, &mut request).await?;
    let mut start = Box::new(start_of(&plan, request, &id));
    start.depth = depth;
    let (answer, reply) = oneshot::channel();
    let command = StartCommand::internal(plan, start, claim, StartAnswer::OnSettled(answer));
    let mut waiting = CancelOnDrop { shared, id, workflow, is_settled: false, is_interrupted };
    waiting.shared.deliver(waiting.id.clone(), ExecutionCommand::Start(Box::new(command)));
    let outcome = match reply.await {
        Ok(Ok(outcome)) => outcome,
        // A repeated call gets the outcome of the first one.
        Ok(Err(StartRefusal::Error(StartError::Exists(_)))) => waiting.first_outcome().await?,
        Ok(Err(StartRefusal::Error(error))) => return Err(error),
        Ok(Err(StartRefusal::KeyTaken)) => return Err(StartError::KeyReused),
        Err(_) => return Err(waiting.lost().into()),
    };
    waiting.is_settled = true;
    Ok(outcome)
}

fn ending() -> Unavailable {
    Unavailable::Draining { execution: None }
}

/// An execution that is cancelled when its caller is gone, since its result would be unused.
struct CancelOnDrop {
    shared: Arc<Shared>,
    id: ExecutionId,
    workflow: String,
    is_settled: bool,
    /// Of the caller.
    is_interrupted: Option<IsInterrupted>,
}

impl CancelOnDrop {
    async fn first_outcome(&self) -> Result<ExecutionOutcome, StartError> {
        let (answer, reply) = oneshot::channel();
        self.shared.deliver(
            self.id.clone(),
            ExecutionCommand::AwaitOutcome { subject: None, after_seq: 0, answer },
        );
        reply.await.map_err(|_| self.lost())?.map_err(|error| match error {
            DescribeError::Unavailable(why) => why.into(),
            DescribeError::NotFound => Unavailable::ActorLost.into(),
        })
    }

    fn lost(&self) -> Unavailable {
        if self.shared.is_draining() { ending() } else { Unavailable::ActorLost }
    }
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        // The caller waits for it again: in the next process, as after a crash, or in another one.
        let is_left = self.shared.ending.is_cancelled()
            || self.is_interrupted.as_ref().is_some_and(|is_interrupted| is_interrupted());
        if !self.is_settled && !is_left {
            let reason = Some("The call that waited for it was cancelled".to_owned());
            let workflow = std::mem::take(&mut self.workflow);
            let subject = Subject { workflow, visibility: Visibility::Everything };
            // The reply is not needed: the execution may have ended first.
            let (answer, _) = oneshot::channel();
            let command = ControlCommand { subject, reason, by: None, answer };
            let command = ExecutionCommand::Cancel(command);
            let (shared, id) = (Arc::clone(&self.shared), self.id.clone());
            // Waits for room, because the cancel is not repeated. Calls run on arbiters.
            if let Some(arbiter) = Arbiter::try_current() {
                arbiter.spawn(async move { shared.deliver_when_ready(id, command).await });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use serde_json::{Value, json};

    use super::*;
    use crate::domain::definition::WorkflowDefinition;
    use crate::domain::fact::Fact;
    use crate::function::StepFunction;
    use crate::limits::RuntimeLimits;
    use crate::ports::store::Status;
    use crate::testkit::{World, pass, registry_of, start, target};

    fn definition(id: &str, step: &Value) -> WorkflowDefinition {
        let mut definition = json!({ "id": id, "name": id, "purpose": "", "steps": [step] });
        definition["input_schema"] = json!({ "type": "object", "required": ["n"] });
        serde_json::from_value(definition).unwrap()
    }

    /// Launches a world with a workflow `slow`, which takes 100 ms and counts its calls.
    async fn world(calls: &Arc<AtomicUsize>) -> World {
        let calls = Arc::clone(calls);
        let slow: StepFunction = Arc::new(move |context| {
            calls.fetch_add(1, Ordering::SeqCst);
            async move {
                tokio::time::sleep(Duration::from_millis(100)).await;
                Ok(Value::clone(&context.data).into())
            }
            .boxed()
        });
        let step = json!({
            "id": "slow", "name": "slow", "purpose": "",
            "kind": { "then": { "body": { "run": { "function": "slow", "version": null } } } },
            "on_error": "fail"
        });
        let mut registry = registry_of([definition("slow", &step)]);
        registry.functions.insert("slow".to_owned(), slow);
        World::launch(registry, RuntimeLimits::default()).await
    }

    #[actix::test]
    async fn a_repeated_call_runs_the_workflow_once() {
        tokio::time::pause();
        let calls = Arc::default();
        let world = world(&calls).await;
        let workflows = &world.runtime.generations.workflows;
        let run = || workflows.run(start("slow", "g1.c1", json!({ "n": 1 })), 3, None);

        // Concurrently, and after the end.
        let (first, second) = futures_util::future::join(run(), run()).await;
        let third = run().await.unwrap();

        let first = first.unwrap();
        assert_eq!((first.status(), &first), (Status::Completed, &third));
        assert_eq!(first, second.unwrap());
        assert_eq!(first.result(), Some(&json!({ "n": 1 })));
        assert_eq!(calls.load(Ordering::SeqCst), 1);
    }

    #[actix::test]
    async fn depth_user_and_conversation_are_recorded() {
        tokio::time::pause();
        let world = world(&Arc::default()).await;
        let mut request = start("slow", "g1.c1", json!({ "n": 1 }));
        request.user_id = Some("anna".to_owned());
        request.conversation_id = Some("c".to_owned());
        world.runtime.generations.workflows.run(request, 3, None).await.unwrap();

        let id = target("slow", "g1.c1").execution_id;
        let facts = world
            .runtime
            .portion(&id, crate::ports::store::FactCursor::default(), 1)
            .await
            .unwrap()
            .facts;
        let Fact::WorkflowStarted(start) = &facts[0].fact else { panic!("{:?}", facts[0]) };
        assert_eq!(start.depth, 3);
        let context = json!({ "userId": "anna", "conversationId": "c" });
        assert_eq!(*start.context, context);
    }

    #[actix::test]
    async fn a_run_is_cancelled_when_its_caller_is_gone_but_not_at_shutdown() {
        tokio::time::pause();
        let world = world(&Arc::default()).await;
        let statuses = [("dropped", Status::Cancelled), ("left", Status::Completed)];
        for (id, status) in statuses {
            let run = start("slow", id, json!({ "n": 1 }));
            let run = world.runtime.generations.workflows.run(run, 1, None);
            assert!(tokio::time::timeout(Duration::from_millis(50), run).await.is_err());
            pass(Duration::from_millis(100)).await;
            let state = world.runtime.describe(&target("slow", id)).await.unwrap();
            assert_eq!(state.status, status, "{id}");
            world.runtime.shared.ending.cancel();
        }
    }

    #[actix::test]
    async fn a_start_is_refused_with_the_reason() {
        tokio::time::pause();
        let world = world(&Arc::default()).await;
        let rows = [
            ("nowhere", json!({ "n": 1 }), "workflow nowhere not found"),
            ("slow", json!({}), "input validation failed: n: missing"),
        ];
        for (workflow, input, why) in rows {
            let started =
                world.runtime.generations.workflows.run(start(workflow, "x", input), 1, None);
            assert_eq!(started.await.unwrap_err().to_string(), why);
        }
        world.runtime.drain(Duration::from_millis(1)).await;
        let run =
            world.runtime.generations.workflows.run(start("slow", "x", json!({ "n": 1 })), 1, None);
        assert_eq!(run.await.unwrap_err().to_string(), "the server is shutting down");
    }
}
