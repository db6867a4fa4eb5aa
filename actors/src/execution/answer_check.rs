//! The program's own check of an answer to an execution, made once everything else allows it and
//! before the answer is decided.

use std::sync::Arc;

use actix::Context;

use crate::commands::Refuse;
use crate::domain::ids::StepPath;
use crate::domain::machine::{Decision, Refusal, Resume};
use crate::execution::ExecutionActor;
use crate::execution::asks::ask_at;
use crate::execution::deciding::NotRecorded;
use crate::execution::resume::Answering;
use crate::ports::answer_guard::GivenAnswer;
use crate::ports::store::{ASK_PREFIX, Ask, AskSubject, AskedStep};
use crate::requests::{AskAccess, Unavailable};
use crate::shared::Shared;

/// An answer that is to be checked.
struct Unchecked {
    /// Identifies the ask of a step; `None`: a pause, which has none.
    ask_id: Option<Arc<str>>,
    /// The ask as the machine knows it, while it is not stored.
    unstored: Option<Ask>,
    given: GivenAnswer,
    access: AskAccess,
}

impl ExecutionActor {
    /// Asks the program about an answer, and decides it if it passes.
    pub(super) fn check_answer<C: Refuse + 'static>(
        &mut self,
        (path, suspension_id): (Option<StepPath>, &str),
        answering: Answering,
        caller: C,
        ctx: &mut Context<Self>,
        then: impl FnOnce(&mut Self, C, Result<Decision, NotRecorded>, &mut Context<Self>) + 'static,
    ) {
        let Answering { resume, access } = &answering;
        let Some(unchecked) = self.unchecked(path, suspension_id, resume, access) else { return };
        let shared = Arc::clone(&self.shared);
        let checking = async move { unchecked.pass(&shared).await };
        self.query_for(caller, checking, ctx, move |actor, caller, passed, ctx| match passed {
            Ok(()) => actor.decide_resume(answering, caller, ctx, then),
            Err(why) => then(actor, caller, Err(why), ctx),
        });
    }

    fn unchecked(
        &self,
        path: Option<StepPath>,
        suspension_id: &str,
        resume: &Resume,
        access: &AskAccess,
    ) -> Option<Unchecked> {
        let life = self.life.as_ref()?;
        let header = &life.header;
        let execution = (Arc::clone(&header.workflow_id), header.id.clone());
        let (by, data) = (resume.by.as_deref(), Arc::clone(&resume.data));
        let ask_id: Option<Arc<str>> =
            path.as_ref().map(|_| Arc::from(format!("{ASK_PREFIX}{suspension_id}")));
        let opened = path.as_ref().and_then(|path| ask_at(&life.machine, path));
        let opened = opened.filter(|ask| Some(&ask.id) == ask_id.as_ref());
        let unstored = opened.map(|opened| {
            let subject = AskSubject::Step(AskedStep {
                execution_id: header.id.clone(),
                workflow_id: Arc::clone(&header.workflow_id),
                path: Arc::clone(&opened.place),
            });
            opened.opened(subject, header.user_id.clone())
        });
        let given = GivenAnswer::unasked(execution, path, by, data);
        Some(Unchecked { ask_id, unstored, given, access: access.clone() })
    }
}

impl Unchecked {
    /// Asks the program, and looks again at who may answer: the check may take its time.
    async fn pass(self, shared: &Shared) -> Result<(), NotRecorded> {
        let Self { ask_id, unstored, given, access } = self;
        let Some(ask_id) = ask_id else {
            return shared.check_answer(given).await.map_err(NotRecorded::NotPassed);
        };
        let stored = async || shared.store.ask(&ask_id).await;
        let unreadable = |error| NotRecorded::Dropped(Unavailable::from(error));
        let ask = stored().await.map_err(unreadable)?.or(unstored);
        let given = match ask {
            Some(ask) => GivenAnswer::to_ask(ask, given.by.as_ref(), given.data),
            None => given,
        };
        shared.check_answer(given).await.map_err(NotRecorded::NotPassed)?;
        let ask = stored().await.map_err(unreadable)?;
        let allowed = ask.is_none_or(|ask| access.check(&ask, shared.clock.now()).is_ok());
        if allowed { Ok(()) } else { Err(NotRecorded::Refused(Refusal::NotAssigned)) }
    }
}
