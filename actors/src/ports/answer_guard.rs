//! Port to a program's own check of answers, before they are accepted.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use serde_json::Value;
use tokio::time::timeout;

use crate::domain::ids::ExecutionId;
use crate::domain::principal::Principal;
use crate::ports::store::{Ask, AskSubject};
use crate::requests::{ResumeExecution, Target};

/// Time after which a check counts as a refusal.
pub const CHECK_TIMEOUT: Duration = Duration::from_secs(10);

/// An answer that was given and is not accepted yet.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct GivenAnswer {
    /// The user or service that gives it; `None`: the program itself, or a request without a name.
    pub by: Option<Principal>,
    pub data: Arc<Value>,
    /// The ask that it answers. `None`: a resume, which names an execution.
    pub ask: Option<Ask>,
    /// The workflow that waits; `None`: an agent that no step has asked.
    pub workflow_id: Option<Arc<str>>,
    /// The execution that waits.
    pub execution_id: Option<ExecutionId>,
    /// Path of the step that waits; of a resume, the id or path in the request, if it has one.
    pub step: Option<Arc<str>>,
}

impl GivenAnswer {
    /// Returns the answer to an ask.
    pub(crate) fn to_ask(ask: &Ask, by: Option<&Principal>, data: &Value) -> Self {
        let step = match &ask.subject {
            AskSubject::Step(step) => Some(step),
            AskSubject::Call(call) => call.step.as_ref(),
        };
        Self {
            by: by.cloned(),
            data: Arc::new(data.clone()),
            ask: Some(ask.clone()),
            workflow_id: step.map(|step| Arc::clone(&step.workflow_id)),
            execution_id: step.map(|step| step.execution_id.clone()),
            step: step.map(|step| Arc::clone(&step.path)),
        }
    }

    /// Returns the answer in a resume.
    pub(crate) fn in_resume(target: &Target, resume: &ResumeExecution) -> Self {
        Self {
            by: resume.by.clone(),
            data: Arc::new(resume.data.clone()),
            ask: None,
            workflow_id: Some(target.workflow_id.as_str().into()),
            execution_id: Some(target.execution_id.clone()),
            step: resume.step_id.as_deref().map(Arc::from),
        }
    }
}

/// A program's own check of answers.
pub trait AnswerGuard: Send + Sync {
    /// Lets an answer pass, or returns the reason of its refusal, for the one who gave it.
    fn check(&self, answer: GivenAnswer) -> BoxFuture<'static, Result<(), String>>;
}

impl<F, R> AnswerGuard for F
where
    F: Fn(GivenAnswer) -> R + Send + Sync,
    R: Future<Output = Result<(), String>> + Send + 'static,
{
    fn check(&self, answer: GivenAnswer) -> BoxFuture<'static, Result<(), String>> {
        self(answer).boxed()
    }
}

/// Asks a guard. One that panics or takes too long refuses.
pub(crate) async fn checked(guard: &dyn AnswerGuard, answer: GivenAnswer) -> Result<(), String> {
    let checking = AssertUnwindSafe(async move { guard.check(answer).await }).catch_unwind();
    match timeout(CHECK_TIMEOUT, checking).await {
        Ok(Ok(decided)) => decided,
        Ok(Err(_)) => {
            log::error!("the check of an answer panicked: the answer is refused");
            Err("it could not be checked; the log of the server has the reason".to_owned())
        }
        Err(_) => {
            let limit = CHECK_TIMEOUT.as_secs();
            log::error!("the check of an answer took longer than {limit} s: the answer is refused");
            Err(format!("it could not be checked within {limit} s; try again"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::ids::ExecutionId;
    use crate::visibility::Visibility;

    fn given() -> GivenAnswer {
        let target = Target {
            workflow_id: "w".to_owned(),
            execution_id: ExecutionId::parse("e").unwrap(),
            visibility: Visibility::Everything,
        };
        GivenAnswer::in_resume(&target, &ResumeExecution::default())
    }

    #[tokio::test(start_paused = true)]
    async fn a_guard_that_panics_or_hangs_refuses() {
        type Check = fn(GivenAnswer) -> BoxFuture<'static, Result<(), String>>;
        let rows: [(Check, Result<(), &str>); 5] = [
            (|_| async { Ok(()) }.boxed(), Ok(())),
            (|_| async { Err("not on Sundays".to_owned()) }.boxed(), Err("not on Sundays")),
            (
                |_| std::future::pending().boxed(),
                Err("it could not be checked within 10 s; try again"),
            ),
            (
                |_| async { panic!("later") }.boxed(),
                Err("it could not be checked; the log of the server has the reason"),
            ),
            (
                |_| panic!("at once"),
                Err("it could not be checked; the log of the server has the reason"),
            ),
        ];
        for (check, expected) in rows {
            assert_eq!(checked(&check, given()).await, expected.map_err(str::to_owned));
        }
    }
}
