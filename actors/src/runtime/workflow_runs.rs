//! Workflows run by tools: ordinary executions, cancelled when the call is dropped.

use std::sync::{Arc, Weak};

use actix::Arbiter;
use futures_util::future::{BoxFuture, FutureExt as _};
use tokio::sync::oneshot;

use crate::agent::generation::tools::{RunWorkflow, WorkflowCall};
use crate::agent::tool::IsInterrupted;
use crate::commands::{
    ControlCommand, ExecutionCommand, StartAnswer, StartCommand, StartRefusal, Subject,
};
use crate::domain::fact::Start;
use crate::domain::footprint;
use crate::domain::hash::short_hash;
use crate::domain::ids::ExecutionId;
use crate::domain::plan::Plan;
use crate::execution::{Restored, restore};
use crate::requests::{DescribeError, ExecutionOutcome, StartError, Unavailable};
use crate::runtime::requests::{claim_for, plan_of, start_of};
use crate::shard::memory_budget::Claim;
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
    fn run(&self, call: WorkflowCall) -> BoxFuture<'static, Result<ExecutionOutcome, StartError>> {
        let shared = self.shared.upgrade();
        async move { run(shared.ok_or_else(ending)?, call).await }.boxed()
    }
}

async fn run(shared: Arc<Shared>, call: WorkflowCall) -> Result<ExecutionOutcome, StartError> {
    let WorkflowCall { start: mut request, depth, is_shared, is_interrupted } = call;
    let id = shared.execution_id(request.execution_id.clone());
    let claim = claim_for(&shared, &mut request)?;
    let plan = plan_of(&shared, &mut request).await?;
    let start = Start { depth, ..start_of(&plan, request, &id) };
    let call = Arc::new(Call { shared, plan, start, is_shared, is_interrupted });
    if let Some(outcome) = call.run_as(id.clone(), claim).await? {
        return Ok(outcome);
    }
    let other = call.another_id(&id);
    log::warn!("execution {id} is not that of the tool's call: it runs as {other}");
    let claim = call.shared.memory.claim(footprint::of_start(&call.start));
    let claim = claim.ok_or_else(|| call.shared.no_memory())?;
    let outcome = call.run_as(other.clone(), claim).await?;
    outcome.ok_or(StartError::Exists(other))
}

/// A call whose arguments have passed.
struct Call {
    shared: Arc<Shared>,
    plan: Arc<Plan>,
    start: Start,
    is_shared: bool,
    is_interrupted: Option<IsInterrupted>,
}

impl Call {
    /// Starts the execution with this id, and waits for it; `None` if another one has the id.
    async fn run_as(
        self: &Arc<Self>,
        id: ExecutionId,
        claim: Claim,
    ) -> Result<Option<ExecutionOutcome>, StartError> {
        let (answer, reply) = oneshot::channel();
        let (plan, start) = (Arc::clone(&self.plan), Box::new(self.start.clone()));
        let command = StartCommand::internal(plan, start, claim, StartAnswer::OnSettled(answer));
        let mut waiting = CancelOnDrop { call: Arc::clone(self), id, is_settled: false };
        self.shared.deliver(waiting.id.clone(), ExecutionCommand::Start(Box::new(command)));
        let outcome = match reply.await {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(StartRefusal::Error(StartError::Exists(_)))) => {
                // what exists is durable
                let found = restore(&self.shared, &waiting.id).await?;
                if !found.is_some_and(|found| self.has_started(&found)) {
                    waiting.is_settled = true;
                    return Ok(None);
                }
                // a repeated call gets the outcome of the first one
                waiting.first_outcome().await?
            }
            Ok(Err(StartRefusal::Error(error))) => return Err(error),
            Ok(Err(StartRefusal::KeyTaken)) => return Err(StartError::KeyReused),
            Err(_) => return Err(self.lost().into()),
        };
        waiting.is_settled = true;
        Ok(Some(outcome))
    }

    fn has_started(&self, found: &Restored) -> bool {
        let found = &found.machine.state().start;
        match self.is_shared {
            true => found.is_of_shared_call(&self.start),
            false => found.is_of_call(&self.start),
        }
    }

    /// Cancels what the call has started, if that still runs.
    async fn cancel(&self, id: ExecutionId) {
        // the start may not be answered yet, and the id may be that of another execution
        let (answer, durable) = oneshot::channel();
        self.shared.deliver_when_ready(id.clone(), ExecutionCommand::Report { answer }).await;
        drop(durable.await);
        let found = restore(&self.shared, &id).await.unwrap_or_default();
        if found.is_some_and(|found| !self.has_started(&found)) {
            return;
        }
        let reason = Some("The call that waited for it was cancelled".to_owned());
        let visibility = self.start.user_id.clone().map_or(Visibility::Everything, Visibility::Of);
        let subject = Subject { workflow: self.start.workflow_id.to_string(), visibility };
        // The reply is not needed: the execution may have ended first.
        let (answer, _) = oneshot::channel();
        let command = ControlCommand { subject, reason, by: None, answer };
        // Waits for room, because the cancel is not repeated.
        self.shared.deliver_when_ready(id, ExecutionCommand::Cancel(command)).await;
    }

    /// Returns the id that the call uses if another execution has its own; the same each time.
    fn another_id(&self, taken: &ExecutionId) -> ExecutionId {
        let trace = &self.start.trace;
        // has the row of the trace's root, and so differs for another root with the same id
        let root = trace.span(&[&trace.id]).to_string();
        let parts = [taken.as_str(), &root];
        let fingerprint = short_hash(if self.is_shared { &parts[..1] } else { &parts });
        ExecutionId::parse(&format!("{taken}.{fingerprint}"))
            .unwrap_or_else(|_| ExecutionId::trusted(fingerprint))
    }

    fn lost(&self) -> Unavailable {
        if self.shared.is_draining() { ending() } else { Unavailable::ActorLost }
    }
}

fn ending() -> Unavailable {
    Unavailable::Draining { execution: None }
}

/// An execution that is cancelled when its caller is gone, since its result would be unused.
struct CancelOnDrop {
    call: Arc<Call>,
    id: ExecutionId,
    is_settled: bool,
}

impl CancelOnDrop {
    async fn first_outcome(&self) -> Result<ExecutionOutcome, StartError> {
        let (answer, reply) = oneshot::channel();
        self.call.shared.deliver(
            self.id.clone(),
            ExecutionCommand::AwaitOutcome { subject: None, after_seq: 0, answer },
        );
        reply.await.map_err(|_| self.call.lost())?.map_err(|error| match error {
            DescribeError::Unavailable(why) => why.into(),
            DescribeError::NotFound => Unavailable::ActorLost.into(),
        })
    }
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        // The caller waits for it again: in the next process, as after a crash, or in another one.
        let is_interrupted = self.call.is_interrupted.as_ref();
        let is_left = self.call.shared.ending.is_cancelled()
            || is_interrupted.is_some_and(|is_interrupted| is_interrupted());
        if !self.is_settled && !is_left {
            let (call, id) = (Arc::clone(&self.call), self.id.clone());
            // Calls run on arbiters.
            if let Some(arbiter) = Arbiter::try_current() {
                arbiter.spawn(async move { call.cancel(id).await });
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
    use crate::domain::trace::{EntityType, RootRow, Trace, TraceOrigin};
    use crate::function::StepFunction;
    use crate::limits::RuntimeLimits;
    use crate::ports::store::Status;
    use crate::requests::StartExecution;
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

    fn call(start: StartExecution) -> WorkflowCall {
        WorkflowCall { start, depth: 3, is_shared: false, is_interrupted: None }
    }

    #[actix::test]
    async fn a_repeated_call_runs_the_workflow_once() {
        tokio::time::pause();
        let calls = Arc::default();
        let world = world(&calls).await;
        let workflows = &world.runtime.generations.workflows;
        let run = || workflows.run(call(start("slow", "g1.c1", json!({ "n": 1 }))));

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
    async fn a_call_whose_id_is_taken_runs_its_workflow_under_another() {
        tokio::time::pause();
        let calls = Arc::default();
        let world = world(&calls).await;
        let workflows = &world.runtime.generations.workflows;
        let trace = |row| {
            let root: Arc<str> = Arc::from("helper");
            let trace = Trace::of("o-1", EntityType::Agent, &root, TraceOrigin::New);
            TraceOrigin::Within(
                trace.anchored(RootRow::Generation(row)).below("1".repeat(16).parse().unwrap()),
            )
        };
        let request = |n, row| {
            let start = start("slow", "g1.c1", json!({ "n": n }));
            StartExecution { trace: trace(row), ..start }
        };
        let made = |n, row, is_shared| WorkflowCall { is_shared, ..call(request(n, row)) };
        // a caller has chosen the id; a call that is dropped leaves that one alone
        let taken = world.runtime.execute(request(0, 1));
        let dropped = async {
            for (n, waits) in [(8, 0), (9, 10)] {
                pass(Duration::from_millis(10)).await;
                let call = workflows.run(made(n, n, false));
                let waits = Duration::from_millis(waits);
                assert!(tokio::time::timeout(waits, call).await.is_err());
            }
        };
        let (taken, ()) = futures_util::future::join(taken, dropped).await;
        assert_eq!(taken.unwrap().result(), Some(&json!({ "n": 0 })), "was cancelled");

        calls.store(0, Ordering::SeqCst);
        let rows = [
            (1, 1, false, 1, "the caller's is not that of the call"),
            (1, 1, false, 1, "a repeated call finds its own"),
            (2, 2, false, 2, "the root with this id is another one"),
            (3, 4, true, 3, "the caller's is not that of a compensation either"),
            (3, 5, true, 3, "another execution that undoes the same has made the call"),
        ];
        for (n, row, is_shared, runs, why) in rows {
            let outcome = workflows.run(made(n, row, is_shared)).await.unwrap();
            assert_eq!(outcome.result(), Some(&json!({ "n": n })), "{why}");
            assert_ne!(outcome.execution_id.as_str(), "g1.c1", "{why}");
            assert_eq!(calls.load(Ordering::SeqCst), runs, "{why}");
        }
    }

    #[actix::test]
    async fn depth_user_and_conversation_are_recorded() {
        tokio::time::pause();
        let world = world(&Arc::default()).await;
        let mut request = start("slow", "g1.c1", json!({ "n": 1 }));
        request.user_id = Some("anna".to_owned());
        request.conversation_id = Some("c".to_owned());
        world.runtime.generations.workflows.run(call(request)).await.unwrap();

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
            let run = world.runtime.generations.workflows.run(call(run));
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
                world.runtime.generations.workflows.run(call(start(workflow, "x", input)));
            assert_eq!(started.await.unwrap_err().to_string(), why);
        }
        world.runtime.drain(Duration::from_millis(1)).await;
        let run =
            world.runtime.generations.workflows.run(call(start("slow", "x", json!({ "n": 1 }))));
        assert_eq!(run.await.unwrap_err().to_string(), "the server is shutting down");
    }
}
