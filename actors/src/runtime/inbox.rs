//! Asks: what waits for a person, and the answers.

use std::sync::Arc;

use serde_json::Value;

use crate::commands::ExecutionCommand;
use crate::domain::fact::{Fact, Recorded};
use crate::domain::ids::ExecutionId;
use crate::domain::machine::Resume;
use crate::domain::nesting::check_depth;
use crate::domain::plan::Step;
use crate::domain::question::Question;
use crate::domain::time::Timestamp;
use crate::ports::store::{
    ASK_PREFIX, Ask, AskCursor, AskFilter, AskKind, AskPage, AskState, AskSubject, AskedStep,
    ReadError, Row,
};
use crate::requests::{
    AnswerAsk, Answered, AskAccess, AskDetail, AskError, DescribeError, IdempotencyKey,
    ResumeError, Target, Unavailable,
};
use crate::runtime::Runtime;
use crate::visibility::Visibility;

/// Facts that are read at once in the search for those about an ask.
const FACTS_PAGE: usize = 500;

/// Content of the facts about an ask.
#[derive(Default)]
struct Recollection {
    payload: Option<Arc<Value>>,
    /// Question of a tool.
    question: Option<Arc<Question>>,
    answer: Option<Answered>,
}

impl Runtime {
    /// Returns asks: open ones by deadline, closed ones with the last closed first. The time of the
    /// filter is now.
    pub async fn inbox(
        &self,
        filter: &AskFilter,
        after: Option<AskCursor>,
        limit: usize,
    ) -> Result<AskPage, Unavailable> {
        let now = self.shared.clock.now();
        let filter = AskFilter { now, ..filter.clone() };
        let mut page = self.shared.store.asks(&filter, after, limit).await?;
        page.asks.iter_mut().for_each(|ask| forget_ended_claim(ask, now));
        Ok(page)
    }

    /// Returns true while asks are missing that older versions did not record. Executions whose
    /// records cannot be read do not count: their asks cannot be answered.
    pub async fn is_inbox_incomplete(&self) -> Result<bool, Unavailable> {
        let unreadable = &self.shared.unreadable_asks;
        let limit = unreadable.count() + 1;
        let missing = self.shared.store.executions_without_asks(Row::MIN, limit).await?;
        Ok(missing.iter().any(|(_, id)| !unreadable.contains(id)))
    }

    /// Finds an ask that is visible to a caller.
    pub async fn find_ask(&self, id: &str, visibility: &Visibility) -> Result<Ask, AskError> {
        let found = self.shared.store.ask(id).await?;
        let seen = found.filter(|ask| visibility.allows(ask.user_id.as_deref()));
        let mut ask = seen.ok_or(AskError::NotFound)?;
        forget_ended_claim(&mut ask, self.shared.clock.now());
        Ok(ask)
    }

    /// Returns what a person needs to answer an ask, and the answer once there is one.
    pub async fn describe_ask(&self, ask: Ask) -> Result<AskDetail, AskError> {
        let AskSubject::Step(step) = &ask.subject else {
            return self.describe_call_ask(ask).await;
        };
        let (target, path) = (target_of(step), Arc::clone(&step.path));
        let state = self.describe(&target).await?;
        let plan = self.shared.plan(&state.header.definition_hash).await?;
        let step = plan.step_at(&path);
        if ask.kind == AskKind::Function && step.is_some_and(Step::calls_tool) {
            let Recollection { payload, question, answer } =
                self.recollect(&ask, &target.execution_id).await?;
            let question = question.as_deref().cloned().unwrap_or_default();
            let Question { schema, can_decline, memo: _ } = question;
            return Ok(AskDetail { ask, payload, schema, arguments: None, can_decline, answer });
        }
        let id = suspension_of(&ask);
        let waiting = state.suspensions.into_iter().find(|it| it.id.as_deref() == Some(id));
        let Recollection { payload, answer, .. } = match waiting {
            Some(waiting) => Recollection { payload: waiting.payload, ..Recollection::default() },
            None => self.recollect(&ask, &target.execution_id).await?,
        };
        let schema = step.and_then(|step| step.resume_schema.as_ref());
        let schema = schema.map(|schema| schema.source().clone());
        Ok(AskDetail { ask, payload, schema, arguments: None, can_decline: false, answer })
    }

    /// Answers an ask; resolves once the answer is durable. The first answer wins. With a known
    /// idempotency key, returns the ask as the first call with it left it.
    pub async fn answer_ask(&self, ask: Ask, answer: AnswerAsk) -> Result<AskDetail, AskError> {
        let AskSubject::Step(step) = &ask.subject else {
            return self.answer_call_ask(ask, answer).await;
        };
        let target = target_of(step);
        let AnswerAsk { data, by, access, idempotency: key } = answer;
        if let Some(key) = &key
            && self.is_known(key).await?
        {
            return self.describe_ask(ask).await;
        }
        if let Some(at) = ask.closed_at {
            return Err(self.closed(&ask, at).await?);
        }
        access.check(&ask, self.shared.clock.now())?;
        check_depth(&data, self.shared.limits.machine.value_depth_max)
            .map_err(|too_deep| AskError::InvalidData(too_deep.to_string()))?;
        let idempotency =
            key.as_ref().map(|key| self.idempotency_record(key, target.execution_id.clone()));
        let resume = Resume {
            step_id: None,
            suspension_id: Some(suspension_of(&ask).to_owned()),
            data: Arc::new(data),
            by: by.map(Arc::new),
            ..Resume::default()
        };
        let subject = Some((&target).into());
        let again = access.clone();
        let command = |answer| ExecutionCommand::PassResume {
            subject,
            resume,
            idempotency,
            access: again,
            answer,
        };
        let taken: Result<u64, ResumeError> = self.change(&target, command).await;
        match taken {
            // From here on a failure says that the answer may be recorded.
            Ok(_) => {
                self.describe_again(&ask).await.map_err(|error| error.about(&target.execution_id))
            }
            Err(ResumeError::Unavailable(why)) => Err(why.into()),
            Err(ResumeError::InvalidData(why)) => Err(AskError::InvalidData(why)),
            Err(ResumeError::NotFound) => Err(AskError::NotFound),
            Err(refusal) => self.refused(&ask, key, &access, refusal).await,
        }
    }

    /// Answers for an ask that has ended or changed before, or whose answer the program refused. Of
    /// two concurrent calls with one key, the other one may have answered.
    async fn refused(
        &self,
        ask: &Ask,
        key: Option<IdempotencyKey>,
        access: &AskAccess,
        refusal: ResumeError,
    ) -> Result<AskDetail, AskError> {
        if let Some(key) = key
            && self.is_known(&key).await?
        {
            return self.describe_again(ask).await;
        }
        match refusal {
            ResumeError::KeyReused => return Err(AskError::KeyReused),
            ResumeError::Refused(why) => return Err(AskError::Refused(why)),
            _ => {}
        }
        let now = self.find_ask(&ask.id, &Visibility::Everything).await?;
        if refusal == ResumeError::NotAssigned && now.closed_at.is_none() {
            // others are asked, or about to answer, since the program's own check began
            let changed = AskError::Changed { revision: now.revision };
            return Err(access.check(&now, self.shared.clock.now()).err().unwrap_or(changed));
        }
        let at = now.closed_at.unwrap_or_else(|| self.shared.clock.now());
        Err(self.closed(&now, at).await?)
    }

    pub(super) async fn describe_again(&self, ask: &Ask) -> Result<AskDetail, AskError> {
        let now = self.find_ask(&ask.id, &Visibility::Everything).await?;
        self.describe_ask(now).await
    }

    /// Returns the refusal of an answer to an ask that is closed. One that a version without asks
    /// has ended may still be stored as open.
    pub(super) async fn closed(&self, ask: &Ask, at: Timestamp) -> Result<AskError, AskError> {
        let (state, by) = match ask.state {
            AskState::Answered => {
                let AskSubject::Step(step) = &ask.subject else {
                    return self.closed_call_ask(ask).await;
                };
                let answer = self.recollect(ask, &step.execution_id).await?.answer;
                (AskState::Answered, answer.and_then(|answer| answer.by))
            }
            AskState::Open => (AskState::Withdrawn, None),
            state @ (AskState::Expired | AskState::Withdrawn) => (state, None),
        };
        Ok(AskError::Closed { state, at, by })
    }

    /// Reads the facts about an ask that is no longer open.
    async fn recollect(
        &self,
        ask: &Ask,
        execution: &ExecutionId,
    ) -> Result<Recollection, AskError> {
        let (id, mut after) = (Some(suspension_of(ask)), 0);
        let mut known = Recollection::default();
        loop {
            let facts = self.shared.store.facts(execution, after, FACTS_PAGE).await?;
            // facts without events at the end have the number of the next event, which is to come
            let reached = facts.last().map_or(after, |last| last.next_seq() - 1);
            for Recorded { fact, by, .. } in facts {
                if let Fact::StepSuspended { id: of, payload, question, .. } = &fact
                    && of.as_deref() == id
                {
                    (known.payload, known.question) = (payload.clone(), question.clone());
                } else if let Fact::StepResumed { id: of, data, .. } = fact
                    && of.as_deref() == id
                {
                    known.answer = Some(Answered { by, data });
                    return Ok(known);
                }
            }
            if reached == after {
                return Ok(known);
            }
            after = reached;
        }
    }
}

fn forget_ended_claim(ask: &mut Ask, now: Timestamp) {
    ask.claim = ask.claim_at(now).cloned();
}

fn target_of(step: &AskedStep) -> Target {
    Target {
        workflow_id: step.workflow_id.to_string(),
        execution_id: step.execution_id.clone(),
        visibility: Visibility::Everything,
    }
}

/// Returns the id of the suspension that an ask is about.
fn suspension_of(ask: &Ask) -> &str {
    ask.id.strip_prefix(ASK_PREFIX).unwrap_or(&ask.id)
}

impl AskError {
    /// Returns the same error about an ask whose answer may be recorded.
    fn about(self, execution: &ExecutionId) -> Self {
        match self {
            Self::Unavailable(why) => why.about(Some(execution.clone())).into(),
            error => error,
        }
    }
}

impl From<ReadError> for AskError {
    fn from(error: ReadError) -> Self {
        Unavailable::from(error).into()
    }
}

impl From<DescribeError> for AskError {
    fn from(error: DescribeError) -> Self {
        match error {
            DescribeError::NotFound => Self::NotFound,
            DescribeError::Unavailable(why) => why.into(),
        }
    }
}
