//! A resume: decided here, or by the child of the suspended step.

use std::sync::Arc;

use actix::Context;
use tokio::sync::oneshot::{self, Sender};

use crate::commands::{Answer, ExecutionCommand, Refuse, ResumeCommand, ResumeRefusal};
use crate::domain::ids::{ExecutionId, StepPath};
use crate::domain::machine::{Command, Decision, OwnCheck, Refusal, Resume};
use crate::execution::ExecutionActor;
use crate::execution::deciding::NotRecorded;
use crate::execution::outcome::{OutcomeAnswer, Ownership};
use crate::execution::record::AppendExtras;
use crate::ports::store::{ASK_PREFIX, IdempotencyRecord};
use crate::requests::{AskAccess, ExecutionOutcome, ResumeError, Unavailable};

/// A resume, and the conditions of the ask that it answers.
pub(super) struct Answering {
    pub(super) resume: Resume,
    /// Looked at again after the program's own check.
    pub(super) access: AskAccess,
}

impl ExecutionActor {
    pub(super) fn resume(&mut self, command: ResumeCommand, ctx: &mut Context<Self>) {
        let ResumeCommand { resume, idempotency, answer, .. } = command;
        let answering = self.answering(resume, AskAccess::default());
        let Some(life) = &self.life else { return };
        if life.keys.know(idempotency.as_ref()) {
            self.answer_when_durable(answer, Err(ResumeRefusal::KeyTaken));
            return;
        }
        if life.deciding.is_full() {
            answer.refuse(Unavailable::Busy { execution: None });
            return;
        }
        self.decide_resume(answering, answer, ctx, |actor, answer, decision, ctx| match decision {
            Ok(Decision::Recorded(batch)) => {
                let before = batch.facts.first().map_or(0, |first| first.seq - 1);
                actor.wait_for_outcome(
                    before,
                    OutcomeAnswer::Resume(answer),
                    Ownership::NextAppend,
                );
                actor.record(batch, with_key(idempotency, before), ctx);
                actor.continue_run(ctx);
            }
            Ok(Decision::Forward { path, child, resume }) => {
                actor.forward_resume(path, child, resume, idempotency, answer, ctx);
            }
            Ok(Decision::Admit { .. } | Decision::Check { .. }) => {
                answer.refuse(Unavailable::ActorLost);
            }
            Err(NotRecorded::Refused(refusal)) => {
                actor.answer_when_durable(answer, Err(resume_error(refusal).into()));
            }
            Err(NotRecorded::NotPassed(why)) => {
                drop(answer.send(Err(ResumeError::from(why).into())));
            }
            Err(NotRecorded::Dropped(why)) => answer.refuse(why),
        });
    }

    /// Takes an answer to an ask, or a resume of the parent's andWorkflow step: answered when the
    /// decision is recorded, which is recorded here only.
    pub(super) fn take_passed_resume(
        &mut self,
        (resume, access): (Resume, AskAccess),
        idempotency: Option<IdempotencyRecord>,
        answer: Answer<u64, ResumeError>,
        ctx: &mut Context<Self>,
    ) {
        let Some(life) = &self.life else { return };
        if life.keys.know(idempotency.as_ref()) {
            self.answer_when_durable(answer, Err(ResumeError::KeyReused));
            return;
        }
        if life.deciding.is_full() {
            answer.refuse(Unavailable::Busy { execution: None });
            return;
        }
        let answering = self.answering(resume, access);
        self.decide_resume(answering, answer, ctx, |actor, answer, decision, ctx| match decision {
            Ok(Decision::Recorded(batch)) => {
                let resumed = batch.facts.first().map_or(0, |recorded| recorded.seq);
                actor.record(batch, AppendExtras { idempotency, timers: Vec::new() }, ctx);
                actor.answer_when_durable(answer, Ok(resumed));
                actor.continue_run(ctx);
            }
            Ok(Decision::Forward { path, child, resume }) => {
                actor.pass_on(path, child, resume, idempotency, answer, ctx);
            }
            Ok(Decision::Admit { .. } | Decision::Check { .. }) => {
                answer.refuse(Unavailable::ActorLost);
            }
            Err(NotRecorded::Refused(refusal)) => {
                actor.answer_when_durable(answer, Err(resume_error(refusal)));
            }
            Err(NotRecorded::NotPassed(why)) => drop(answer.send(Err(why.into()))),
            Err(NotRecorded::Dropped(why)) => answer.refuse(why),
        });
    }

    /// Returns a resume with what has to be looked at before it is decided. The wait for the asks of
    /// a generation has no answer: each ask had its own.
    fn answering(&self, resume: Resume, access: AskAccess) -> Answering {
        let is_checked = self.shared.checks_answers() && !resume.is_of_generation;
        let own_check = if is_checked { OwnCheck::Needed } else { OwnCheck::NotNeeded };
        Answering { resume: Resume { own_check, ..resume }, access }
    }

    /// Decides a resume, if need be with those who are asked now and after the program's own check.
    /// Passes the caller and the decision to `then`.
    pub(super) fn decide_resume<C: Refuse + 'static>(
        &mut self,
        answering: Answering,
        caller: C,
        ctx: &mut Context<Self>,
        then: impl FnOnce(&mut Self, C, Result<Decision, NotRecorded>, &mut Context<Self>) + 'static,
    ) {
        let Answering { resume, access } = answering;
        self.decide(Command::Resume(resume), ctx, |actor, decision, ctx| match decision {
            Ok(Decision::Check { path, suspension_id, resume }) => {
                let answering = Answering { resume, access };
                actor.check_answer((path, &suspension_id), answering, caller, ctx, then);
            }
            Ok(Decision::Admit { suspension_id, opened_with, resume }) => {
                let shared = Arc::clone(&actor.shared);
                let id = format!("{ASK_PREFIX}{suspension_id}");
                let read = async move { shared.store.ask_rules(&id).await };
                actor.query_for(caller, read, ctx, move |actor, caller, found, ctx| match found {
                    Ok(found) => {
                        let rules = found.map(Arc::new).or(opened_with);
                        let rules = Some(rules.unwrap_or_default());
                        let answering = Answering { resume: Resume { rules, ..resume }, access };
                        actor.decide_resume(answering, caller, ctx, then);
                    }
                    Err(error) => caller.refuse(error.into()),
                });
            }
            decided => then(actor, caller, decided, ctx),
        });
    }

    /// Passes a caller's resume to the child of the step, which decides.
    fn forward_resume(
        &mut self,
        path: StepPath,
        child: ExecutionId,
        resume: Resume,
        idempotency: Option<IdempotencyRecord>,
        caller: Sender<Result<ExecutionOutcome, ResumeRefusal>>,
        ctx: &mut Context<Self>,
    ) {
        let Some(life) = &self.life else { return };
        let before = life.machine.state().last_seq();
        let key = idempotency.map(|record| IdempotencyRecord { after_seq: before, ..record });
        let by = resume.by.clone();
        let reply = self.pass_resume(child, resume, key);
        self.query_for(caller, reply, ctx, move |actor, caller, taken, ctx| match taken {
            Ok(Ok(child_seq)) => {
                actor.decide_and_record(Command::ChildTookResume { path, child_seq, by }, ctx);
                // The child may have been faster: then the outcome is already in the journal.
                actor.await_outcome(before, OutcomeAnswer::Resume(caller), ctx);
            }
            Ok(Err(error)) => drop(caller.send(Err(actor.own_refusal(error).into()))),
            Err(_) => caller.refuse(actor.shared.ended_unanswered(&actor.id)),
        });
    }

    fn pass_resume(
        &self,
        child: ExecutionId,
        resume: Resume,
        idempotency: Option<IdempotencyRecord>,
    ) -> oneshot::Receiver<Result<u64, ResumeError>> {
        let (answer, reply) = oneshot::channel();
        let command = ExecutionCommand::pass_resume(None, resume, idempotency, answer);
        self.shared.deliver(child, command);
        reply
    }

    /// Passes a parent's resume to the child of the step, which decides.
    fn pass_on(
        &mut self,
        path: StepPath,
        child: ExecutionId,
        resume: Resume,
        idempotency: Option<IdempotencyRecord>,
        answer: Answer<u64, ResumeError>,
        ctx: &mut Context<Self>,
    ) {
        let Some(life) = &self.life else { return };
        // Its next event will be that it continues.
        let resumed = life.machine.state().next_seq;
        let by = resume.by.clone();
        let reply = self.pass_resume(child, resume, idempotency);
        self.query_for(answer, reply, ctx, move |actor, answer, taken, ctx| match taken {
            Ok(Ok(child_seq)) => {
                actor.decide_and_record(Command::ChildTookResume { path, child_seq, by }, ctx);
                actor.answer_when_durable(answer, Ok(resumed));
            }
            Ok(Err(error)) => drop(answer.send(Err(actor.own_refusal(error)))),
            Err(_) => answer.refuse(actor.shared.ended_unanswered(&actor.id)),
        });
    }

    /// Returns the refusal of a child for this execution's caller, who does not know the child.
    fn own_refusal(&self, error: ResumeError) -> ResumeError {
        match error {
            ResumeError::Unavailable(why) if why.execution().is_some() => {
                why.about(Some(self.id.clone())).into()
            }
            error => error,
        }
    }
}

fn with_key(idempotency: Option<IdempotencyRecord>, after_seq: u64) -> AppendExtras {
    let idempotency = idempotency.map(|record| IdempotencyRecord { after_seq, ..record });
    AppendExtras { idempotency, timers: Vec::new() }
}

fn resume_error(refusal: Refusal) -> ResumeError {
    match refusal {
        Refusal::Already(_) | Refusal::NotSuspended | Refusal::Compensating => {
            ResumeError::NotSuspended
        }
        Refusal::UnknownStep(step) => ResumeError::UnknownStep(step),
        Refusal::StepNotSuspended(step) => ResumeError::StepNotSuspended(step),
        Refusal::Ambiguous { step, paths } => ResumeError::Ambiguous { step, paths },
        Refusal::SeveralWait { paths } => ResumeError::SeveralWait { paths },
        Refusal::SuspensionPassed { id, waiting } => ResumeError::SuspensionPassed { id, waiting },
        Refusal::AsksOpen(path) => ResumeError::AsksOpen(path.to_string()),
        Refusal::NotAssigned => ResumeError::NotAssigned,
        Refusal::InvalidData(detail) => ResumeError::InvalidData(detail),
    }
}

impl From<ResumeRefusal> for ResumeError {
    fn from(refusal: ResumeRefusal) -> Self {
        match refusal {
            ResumeRefusal::Error(error) => error,
            ResumeRefusal::KeyTaken => Self::KeyReused,
        }
    }
}
