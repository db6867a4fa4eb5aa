//! Generations that wait for people or were interrupted: how they are read, changed, continued and
//! ended.
//!
//! Every change is a write that succeeds only if nothing else was written since it was decided, so
//! that of many answers, deadlines and withdrawals, in whatever process, one wins.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Map;

use crate::agent::generation::continuable::{Continuable, Stored};
use crate::agent::generation::continuation::Continuation;
use crate::agent::generation::idle_end::{IdleEnd, conversation_of, end_and_count};
use crate::agent::generation::{
    GenerateError, GenerationHandle, GenerationRequest, GenerationSubscriber, spawn_generation,
};
use crate::commands::ExecutionCommand;
use crate::domain::ids::step_generation_id;
use crate::domain::machine::Resume;
use crate::domain::principal::Principal;
use crate::domain::trace::TraceOrigin;
use crate::execution::{Restored, restore};
use crate::ports::store::{
    AskChange, ContinuationChange, GenerationEntry, GenerationStatus, GenerationWrite, StepOrigin,
};
use crate::requests::{ResumeError, Target, Unavailable};
use crate::runtime::Runtime;
use crate::visibility::Visibility;

/// Attempts to change a generation while others change it too. Each of them makes progress, and a
/// turn has few calls.
pub(super) const ATTEMPTS_MAX: usize = 200;

/// Time limit for a run to leave once it has recorded that it waits.
const LEAVING_MAX: Duration = Duration::from_secs(1);

/// Decision about a generation with a continuation.
pub(super) enum Change<T> {
    /// Nothing is to be changed.
    None(T),
    /// Stores the continuation; the generation can continue if it is ready.
    Put { continuation: Box<Continuation>, asks: Vec<AskChange>, value: T },
}

impl Runtime {
    /// Reads a generation and its continuation; `None` if it has none.
    pub(super) async fn continuable(&self, id: &str) -> Result<Option<Continuable>, Unavailable> {
        match Stored::read(&*self.shared.store, id).await? {
            Some(Stored::Continuable(found)) => Ok(Some(*found)),
            Some(Stored::Alone(_)) | None => Ok(None),
            Some(Stored::Damaged(_, error)) => {
                let what = format!("the continuation of {id}");
                Err(self.shared.corrupt(what, &error.to_string()))
            }
        }
    }

    /// Reads a generation that has a continuation, decides, and writes; again if it was changed
    /// meanwhile. Returns `None` if it has none, and whether it can continue since this change.
    pub(super) async fn change_continuation<T, E: From<Unavailable>>(
        &self,
        id: &str,
        decide: impl AsyncFn(&Continuable) -> Result<Change<T>, E>,
    ) -> Result<Option<(T, bool)>, E> {
        for _ in 0..ATTEMPTS_MAX {
            let Some(found) = self.continuable(id).await? else { return Ok(None) };
            let (continuation, asks, value) = match decide(&found).await? {
                Change::None(value) => return Ok(Some((value, false))),
                Change::Put { continuation, asks, value } => (continuation, asks, value),
            };
            let is_ready = continuation.is_ready();
            if self.put_continuation(found, &continuation, asks).await? {
                return Ok(Some((value, is_ready)));
            }
        }
        Err(Unavailable::Busy { execution: None }.into())
    }

    /// Stores a changed continuation, with what the conversation shows since. Returns false if the
    /// generation was changed meanwhile.
    pub(super) async fn put_continuation(
        &self,
        found: Continuable,
        continuation: &Continuation,
        asks: Vec<AskChange>,
    ) -> Result<bool, Unavailable> {
        let GenerationEntry { mut record, steps } = found.entry;
        record.status = match continuation.is_ready() {
            true => GenerationStatus::Working,
            false => GenerationStatus::Suspended,
        };
        // a chat that is loaded again shows the answers so far
        let messages = conversation_of(steps, continuation, &record.id, self.shared.clock.now());
        let body = serde_json::to_string(continuation).map_err(|error| {
            let what = format!("the continuation of {}", record.id);
            self.shared.corrupt(what, &error.to_string())
        })?;
        let write = GenerationWrite {
            // the entry exists and keeps its row
            row: 0,
            record,
            steps: Vec::new(),
            messages,
            continuation: ContinuationChange::Put { body: Arc::from(body), asks },
        };
        let settled = self.shared.store.settle_generation(found.revision, write).await;
        settled.map_err(Unavailable::from)
    }

    /// Continues a generation that can continue, or what waits for it: the generation whose tool asked
    /// it, or the step. Returns the generation that runs now.
    pub(super) async fn go_on(
        &self,
        id: &str,
        by: Option<&Principal>,
        subscriber: Option<GenerationSubscriber>,
    ) -> Result<Option<(Arc<str>, GenerationHandle)>, Unavailable> {
        let mut id: Arc<str> = Arc::from(id);
        loop {
            let Some(found) = self.continuable(&id).await? else {
                self.end_without_step(&id).await?;
                return Ok(None);
            };
            let Some(parent) = found.continuation.parent.clone() else {
                return self.go_on_with(found, by, subscriber).await;
            };
            if found.entry.record.status != GenerationStatus::Working {
                return Ok(None);
            }
            let child = Arc::clone(&id);
            let noted = self.change_continuation(&parent, async |above: &Continuable| {
                let mut continuation = above.continuation.clone();
                let is_noted = above.entry.record.status == GenerationStatus::Suspended
                    && continuation.child_is_ready(&child);
                Ok::<_, Unavailable>(match is_noted {
                    true => Change::Put {
                        continuation: Box::new(continuation),
                        asks: Vec::new(),
                        value: true,
                    },
                    false => Change::None(above.entry.record.status == GenerationStatus::Working),
                })
            });
            match noted.await? {
                // it waits for others, or runs and has its own answer
                Some((true, false)) | Some((false, _)) => return Ok(None),
                Some((true, true)) => id = parent,
                // no generation waits for the child now
                None => {
                    let why = "the generation that asked has ended";
                    let (from, status) =
                        (Some(GenerationStatus::Working), GenerationStatus::Cancelled);
                    self.end_idle(&id, from, status, None, why).await?;
                    return Ok(None);
                }
            }
        }
    }

    async fn go_on_with(
        &self,
        found: Continuable,
        by: Option<&Principal>,
        subscriber: Option<GenerationSubscriber>,
    ) -> Result<Option<(Arc<str>, GenerationHandle)>, Unavailable> {
        if let Some(origin) = found.entry.record.origin.clone() {
            self.resume_step(&found, &origin, by).await?;
            return Ok(None);
        }
        if found.entry.record.status != GenerationStatus::Working {
            return Ok(None);
        }
        let id: Arc<str> = Arc::from(found.entry.record.id.as_str());
        let agent_id = &found.entry.record.agent_id;
        if let Some(run) = self.generations.live.find(agent_id, &id, &Visibility::Everything) {
            // its asks were answered before it was notified of their record
            let leaving = self.generations.live.left(&id, &run);
            let has_left = tokio::time::timeout(LEAVING_MAX, leaving).await;
            has_left.map_err(|_| Unavailable::Busy { execution: None })?;
            let Some(now) = self.continuable(&id).await? else { return Ok(None) };
            return Box::pin(self.go_on_with(now, by, subscriber)).await;
        }
        // what stays `working` is taken up by the next process
        if self.shared.is_draining() {
            return Ok(None);
        }
        let is_watched = subscriber.is_some();
        let mut handle = self.take_up(&found, subscriber)?;
        if !handle.is_started() {
            let error = match handle.outcome().await.err() {
                // until it is configured again, or there is room
                Some(GenerateError::UnknownAgent(_) | GenerateError::Unavailable(_)) => {
                    return Err(Unavailable::Busy { execution: None });
                }
                error => error.map(|error| error.to_string()),
            };
            let why = error.clone().unwrap_or_default();
            let (from, status) = (Some(GenerationStatus::Working), GenerationStatus::Error);
            self.end_idle(&id, from, status, error, &why).await?;
            return Ok(None);
        }
        if is_watched {
            handle.leave_errors_to_subscribers();
        }
        if !is_watched || found.continuation.is_chat {
            handle.detach();
        }
        Ok(Some((id, handle)))
    }

    fn take_up(
        &self,
        found: &Continuable,
        subscriber: Option<GenerationSubscriber>,
    ) -> Result<GenerationHandle, Unavailable> {
        let record = &found.entry.record;
        let continuation = &found.continuation;
        let request = GenerationRequest {
            agent_id: record.agent_id.clone(),
            input: record.input.clone(),
            user_id: record.user_id.clone(),
            conversation_id: record.conversation_id.clone(),
            context: Map::clone(&continuation.context),
            is_chat: continuation.is_chat,
            trace: TraceOrigin::Within(record.trace.clone()),
            depth: continuation.depth,
            continues: true,
            ..GenerationRequest::default()
        };
        let arbiter = self.arbiters.spread(&record.id).ok_or(Unavailable::ActorLost)?;
        let deps = self.generation_deps();
        Ok(spawn_generation(arbiter, deps, request, record.id.clone(), subscriber))
    }

    /// Resumes the step whose generation can continue; ends the generation if the step has ended or
    /// tries another one. If the step does not wait yet, the generation is to be tried again.
    async fn resume_step(
        &self,
        found: &Continuable,
        origin: &StepOrigin,
        by: Option<&Principal>,
    ) -> Result<(), Unavailable> {
        let Some(restored) = self.step_of(origin, &found.entry.record.id).await? else {
            return self.end_of_step(&found.entry.record.id).await;
        };
        if found.entry.record.status != GenerationStatus::Working {
            return Ok(());
        }
        let not_now = Unavailable::Busy { execution: None };
        let wait = restored.machine.node(&origin.path).and_then(|(_, node)| node.wait());
        let Some(wait) = wait else {
            // it runs and has continued it, is about to suspend, or continues it after a pause
            let is_paused = restored.machine.state().hold.is_some();
            return if found.continuation.is_released && !is_paused {
                Err(not_now)
            } else {
                Ok(())
            };
        };
        let resume = Resume {
            suspension_id: Some(wait.id.to_string()),
            by: by.cloned().map(Arc::new),
            is_of_generation: true,
            ..Resume::default()
        };
        let target = Target {
            workflow_id: restored.header.workflow_id.to_string(),
            execution_id: origin.execution_id.clone(),
            visibility: Visibility::Everything,
        };
        // with a subject, without which a command stays in this process
        let subject = Some((&target).into());
        let command = |answer| ExecutionCommand::pass_resume(subject, resume, None, answer);
        let resumed: Result<u64, ResumeError> = self.change(&target, command).await;
        match resumed {
            Ok(_) => Ok(()),
            Err(ResumeError::Unavailable(why)) => Err(why),
            // it no longer waits: the next look shows why
            Err(_) => Err(not_now),
        }
    }

    /// Returns the execution whose step has or needs this generation; `None` if the step has ended
    /// or tries another one.
    async fn step_of(
        &self,
        origin: &StepOrigin,
        generation: &str,
    ) -> Result<Option<Restored>, Unavailable> {
        let restored = restore(&self.shared, &origin.execution_id).await?;
        Ok(restored.filter(|restored| {
            let machine = &restored.machine;
            let node = machine.node(&origin.path).map(|(_, node)| node);
            machine.state().end.is_none()
                && node.is_some_and(|node| {
                    let current =
                        step_generation_id(&origin.execution_id, &origin.path, node.failures);
                    node.is_live() && current == generation
                })
        }))
    }

    /// Ends a generation without a continuation that was not ended with its step.
    async fn end_without_step(&self, id: &str) -> Result<(), Unavailable> {
        let entry = self.shared.store.generation(id).await?;
        let record = entry.map(|entry| entry.record).filter(|it| !it.status.is_final());
        let origin = record.and_then(|record| record.origin);
        match origin {
            Some(origin) if self.step_of(&origin, id).await?.is_none() => {
                self.end_of_step(id).await
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Ends a generation whose step no longer needs it.
    async fn end_of_step(&self, id: &str) -> Result<(), Unavailable> {
        self.end_idle(id, None, GenerationStatus::Cancelled, None, "the step has ended")
            .await
            .map(drop)
    }

    /// Ends a generation that nothing works on, and those that its tools have asked; withdraws their
    /// asks. Returns false if it has ended or does not have the status `from`.
    pub(super) async fn end_idle(
        &self,
        id: &str,
        from: Option<GenerationStatus>,
        status: GenerationStatus,
        error: Option<String>,
        why: &str,
    ) -> Result<bool, Unavailable> {
        let at = self.shared.clock.now();
        let end = IdleEnd { from, revision: None, status, error, why: why.to_owned(), at };
        end_and_count(&self.generation_deps(), id, end).await
    }
}
