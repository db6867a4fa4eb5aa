//! Parents and children: separate executions that report to each other.

use std::sync::Arc;
use std::time::Duration;

use actix::{AsyncContext, Context};
use tokio::sync::oneshot;

use crate::commands::{ExecutionCommand, StartAnswer, StartCommand};
use crate::domain::effort::{Budget, within};
use crate::domain::fact::{Parent, Recorded, Start};
use crate::domain::failure::{AttemptFailure, ErrorKind};
use crate::domain::footprint;
use crate::domain::ids::{ExecutionId, StepPath};
use crate::domain::machine::{
    ChildCall, ChildReport, ChildStatus, Command, Decision, Machine, Spent, StepResult, Touched,
};
use crate::domain::plan::Plan;
use crate::domain::schema::SchemaViolation;
use crate::domain::state::Outcome;
use crate::execution::ExecutionActor;
use crate::execution::deciding::lane_of;
use crate::execution::record::{AppendExtras, concerns_parent};
use crate::observe::trace::execution::attempt_span;
use crate::ports::store::{Status, TimerChange, TimerKey};
use crate::registry::Missing;
use crate::requests::{DescribeError, StartError};
use crate::shard::evaluation::Cancel;

/// Delay before querying a child again that could not be reached.
const RETRY_CHILD_AFTER: Duration = Duration::from_secs(1);

/// Returns the status of an execution, as reported to its parent.
pub(crate) fn report_of(machine: &Machine) -> ChildReport {
    let state = machine.state();
    let status = match (&state.end, state.announced) {
        (Some(end), _) => match &end.outcome {
            Outcome::Completed { result } => ChildStatus::Completed {
                result: Arc::clone(result),
                compensable: state.is_reversible(machine.plan()),
                skipped: state
                    .compensating
                    .as_ref()
                    .is_some_and(|it| it.skipped().next().is_some()),
            },
            Outcome::Failed { error, class, .. } => {
                ChildStatus::Failed { error: Arc::clone(error), class: *class }
            }
            Outcome::Cancelled { reason } => {
                let (reason, compensates) = (Arc::clone(reason), end.compensates);
                ChildStatus::Cancelled { reason, compensates }
            }
        },
        (None, Status::Suspended) => {
            let shown = state.announced_suspension.as_deref();
            ChildStatus::Suspended {
                id: shown.and_then(|it| it.id.clone()).unwrap_or_default(),
                reason: shown.map_or_else(|| "Suspended".into(), |it| Arc::clone(&it.reason)),
                payload: shown.and_then(|it| it.payload.clone()),
                deadline: shown.and_then(|it| it.deadline),
            }
        }
        (None, Status::Running | Status::Completed | Status::Error | Status::Cancelled) => {
            ChildStatus::Running
        }
    };
    let (child, parent) = (state.id.clone(), state.start.parent.clone());
    let abandoned = machine.abandoned_children();
    let began = state.created_at;
    ChildReport { child, parent, began, seq: state.last_seq(), status, abandoned }
}

impl ExecutionActor {
    /// Reports the durable status to the parent, unless memory is ahead of the journal.
    pub(super) fn report_to_parent(&mut self, facts: &[Recorded]) {
        let Some(life) = &mut self.life else { return };
        let Some(parent) = &life.header.parent else { return };
        life.parent_report_due |= facts.iter().any(|recorded| concerns_parent(&recorded.fact));
        if life.parent_report_due && life.pending.is_empty() {
            life.parent_report_due = false;
            let report = report_of(&life.machine);
            let path = Arc::clone(&parent.path);
            self.shared.deliver(
                parent.execution.clone(),
                ExecutionCommand::ChildReported { path, report },
            );
        }
    }

    /// Handles a child's report; disarming the reminder goes into the commit of the fact.
    pub(super) fn on_child_report(
        &mut self,
        path: StepPath,
        report: ChildReport,
        ctx: &mut Context<Self>,
    ) {
        let child = report.child.clone();
        let reported = Arc::clone(&path);
        let command = Command::ChildReported { path, report };
        self.decide(command, ctx, move |actor, decision, ctx| {
            if let Ok(Decision::Recorded(batch)) = decision {
                let execution = actor.id.clone();
                let key = TimerKey::AskChild(child);
                let timers = vec![TimerChange::Disarm { execution, key }];
                actor.record(batch, AppendExtras { idempotency: None, timers }, ctx);
                actor.start_bodies_in(&Touched::at(&reported), ctx);
                actor.continue_run(ctx);
            }
        });
    }

    /// Queries a child after a reminder: its report did not arrive, or was not recorded.
    pub(super) fn ask_child(&mut self, child: ExecutionId, ctx: &mut Context<Self>) {
        let Some(path) = self.path_of_child(&child) else {
            self.forget_timer(TimerKey::AskChild(child));
            return;
        };
        let (answer, reply) = oneshot::channel();
        self.shared.deliver(child.clone(), ExecutionCommand::Report { answer });
        self.background_query(reply, ctx, move |actor, report, ctx| match report {
            Ok(Ok(report)) => actor.on_child_report(path, report, ctx),
            Ok(Err(DescribeError::NotFound)) => actor.forget_timer(TimerKey::AskChild(child)),
            // The timer stays armed and fires again.
            Ok(Err(DescribeError::Unavailable(_))) | Err(_) => {}
        });
    }

    fn path_of_child(&self, child: &ExecutionId) -> Option<StepPath> {
        let life = self.life.as_ref()?;
        let mut found = None;
        life.machine.state().each_node(life.machine.plan(), &mut |_, path, _, node| {
            let is_it = node.child.as_ref().is_some_and(|known| known.id == *child);
            if is_it && node.is_live() {
                found = Some(Arc::from(path));
            }
        });
        found
    }

    /// Queries a child that an earlier actor recorded, and may have started.
    pub(super) fn query_child(
        &mut self,
        path: &StepPath,
        attempt: u32,
        call: ChildCall,
        ctx: &mut Context<Self>,
    ) {
        let (answer, reply) = oneshot::channel();
        self.shared.deliver(call.child.clone(), ExecutionCommand::Report { answer });
        let path = Arc::clone(path);
        self.background_query(reply, ctx, move |actor, report, ctx| match report {
            Ok(Ok(report)) => actor.take_report(&path, attempt, report, ctx),
            Ok(Err(DescribeError::NotFound)) => actor.start_child(&path, attempt, &call, ctx),
            Ok(Err(DescribeError::Unavailable(_))) | Err(_) => {
                actor.retry_child_later(&path, attempt, ctx);
            }
        });
    }

    pub(super) fn retry_child_later(
        &mut self,
        path: &StepPath,
        attempt: u32,
        ctx: &mut Context<Self>,
    ) {
        self.untrack_child(path, attempt, ctx);
        // Busy or ending: queried again soon, and in any case after a restart.
        ctx.run_later(RETRY_CHILD_AFTER, |actor, ctx| actor.start_bodies(ctx));
    }

    /// Starts a child whose start is recorded, unless its attempt has ended in the meantime.
    pub(super) fn start_child(
        &mut self,
        path: &StepPath,
        attempt: u32,
        call: &ChildCall,
        ctx: &mut Context<Self>,
    ) {
        if call.earlier.is_empty() {
            self.start_now(path, attempt, call, ctx);
        } else {
            self.start_after_earlier(path, attempt, call, ctx);
        }
    }

    pub(super) fn start_now(
        &mut self,
        path: &StepPath,
        attempt: u32,
        call: &ChildCall,
        ctx: &mut Context<Self>,
    ) {
        if let Some(reversed) = &call.reversed {
            self.start_reversal(path, attempt, call, reversed, ctx);
            return;
        }
        let registry = self.shared.registry();
        let Some(plan) = registry.workflows.get(&*call.workflow) else {
            // Removed since the step began; the child starts once it is configured again.
            self.untrack_child(path, attempt, ctx);
            match self.shared.note_missing(Missing::Workflow(Arc::clone(&call.workflow))) {
                Some(missing) => log::warn!("execution {}: {missing}", self.id),
                None => self.start_bodies(ctx),
            }
            return;
        };
        let Some(schema) = plan.input_schema.clone() else {
            self.start_checked_child(path, attempt, call, &Arc::clone(plan), ctx);
            return;
        };
        let (checked, effort) = within(&Budget::turn(), || schema.check(&call.input));
        if !effort.is_exceeded {
            self.child_checked(path, attempt, call, &Arc::clone(plan), checked, ctx);
            return;
        }
        let Some(life) = &self.life else { return };
        let lane = lane_of(&life.machine);
        let (shared, input) = (Arc::clone(&self.shared), Arc::clone(&call.input));
        let check = async move {
            let checked = shared.evaluations.evaluate(lane, Cancel::default(), move |budget| {
                within(budget, || schema.check(&input)).0
            });
            checked.await
        };
        let (path, call, plan) = (Arc::clone(path), call.clone(), Arc::clone(plan));
        self.background_query(check, ctx, move |actor, checked, ctx| match checked {
            Some(checked) => actor.child_checked(&path, attempt, &call, &plan, checked, ctx),
            None => actor.retry_child_later(&path, attempt, ctx),
        });
    }

    fn child_checked(
        &mut self,
        path: &StepPath,
        attempt: u32,
        call: &ChildCall,
        plan: &Arc<Plan>,
        checked: Result<(), SchemaViolation>,
        ctx: &mut Context<Self>,
    ) {
        match checked {
            Ok(()) => self.start_checked_child(path, attempt, call, plan, ctx),
            Err(violation) => {
                let failure = AttemptFailure::not_valid("input", &violation);
                self.fail_attempt(path, attempt, failure, ctx);
            }
        }
    }

    fn start_checked_child(
        &mut self,
        path: &StepPath,
        attempt: u32,
        call: &ChildCall,
        plan: &Arc<Plan>,
        ctx: &mut Context<Self>,
    ) {
        if !self.is_current(path, attempt) {
            return;
        }
        match self.child_start(path, call, plan) {
            Ok(start) => self.send_start(path, attempt, call, (plan, start), ctx),
            Err(error) => self.fail_attempt(path, attempt, error, ctx),
        }
    }

    /// Sends the start of a child, and takes its report.
    pub(super) fn send_start(
        &mut self,
        path: &StepPath,
        attempt: u32,
        call: &ChildCall,
        (plan, start): (&Arc<Plan>, Box<Start>),
        ctx: &mut Context<Self>,
    ) {
        let reply = self.deliver_start(call.child.clone(), plan, start);
        let path = Arc::clone(path);
        self.background_query(reply, ctx, move |actor, report, ctx| match report {
            Ok(Ok(report)) => actor.take_report(&path, attempt, report, ctx),
            Ok(Err(StartError::Unavailable(_))) | Err(_) => {
                actor.retry_child_later(&path, attempt, ctx);
            }
            Ok(Err(error)) => {
                let failure = AttemptFailure::new(ErrorKind::Workflow, error.to_string());
                actor.fail_attempt(&path, attempt, failure, ctx);
            }
        });
    }

    /// Sends the start of an execution that belongs to the family of this one.
    pub(super) fn deliver_start(
        &self,
        id: ExecutionId,
        plan: &Arc<Plan>,
        start: Box<Start>,
    ) -> oneshot::Receiver<Result<ChildReport, StartError>> {
        let (answer, reply) = oneshot::channel();
        // Claimed above the limit: this one is in memory.
        let claim = self.shared.memory.claim_anyway(footprint::of_start(&start));
        let answer = StartAnswer::Parent(answer);
        let start = StartCommand::internal(Arc::clone(plan), start, claim, answer);
        self.shared.deliver(id, ExecutionCommand::Start(Box::new(start)));
        reply
    }

    pub(super) fn child_start(
        &self,
        path: &StepPath,
        call: &ChildCall,
        plan: &Arc<Plan>,
    ) -> Result<Box<Start>, AttemptFailure> {
        let ending = || AttemptFailure::new(ErrorKind::Internal, "the execution is ending");
        let life = self.life.as_ref().ok_or_else(ending)?;
        let own = &life.machine.state().start;
        let depth_max = self.shared.limits.child_depth_max;
        if own.depth >= depth_max {
            let message = format!("workflows are nested deeper than {depth_max}");
            return Err(AttemptFailure::new(ErrorKind::Limit, message));
        }
        let attempt = life.machine.node(path).map_or(1, |(_, node)| node.attempt);
        let span = attempt_span(&own.trace, &self.id, path, attempt);
        Ok(Box::new(Start {
            workflow_id: Arc::clone(&call.workflow),
            definition_hash: Arc::clone(&plan.hash),
            input: Arc::clone(&call.input),
            user_id: own.user_id.clone(),
            conversation_id: own.conversation_id.clone(),
            context: Arc::clone(&own.context),
            depth: own.depth + 1,
            parent: Some(Parent { execution: self.id.clone(), path: Arc::clone(path) }),
            trace: own.trace.below(span),
            replayed: None,
            reversal: None,
        }))
    }

    pub(super) fn fail_attempt(
        &mut self,
        path: &StepPath,
        attempt: u32,
        failure: AttemptFailure,
        ctx: &mut Context<Self>,
    ) {
        let result = StepResult::Failed(failure);
        let path = Arc::clone(path);
        self.decide_and_record(
            Command::StepFinished { path, attempt, result, spent: Spent::default() },
            ctx,
        );
    }
}
