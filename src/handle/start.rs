//! The start of an execution.

use std::future::IntoFuture;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use greenroom_actors::Runtime;
use greenroom_actors::domain::slot::chosen_execution_id;
use greenroom_actors::requests::{StartError, StartExecution};
use serde_json::Value;

use super::Run;
use crate::api::caller::Caller;

/// A start that happens when it is awaited.
#[derive(Debug)]
#[must_use = "nothing is started until it is awaited"]
pub struct Start {
    runtime: Runtime,
    request: StartExecution,
    caller: Option<Caller>,
    /// The first reason why it is refused.
    refusal: Option<StartError>,
}

impl Start {
    pub(super) fn new(
        runtime: Runtime,
        workflow: &str,
        input: Result<Value, serde_json::Error>,
    ) -> Self {
        let (input, refusal) = match input {
            Ok(input) => (input, None),
            Err(error) => (Value::Null, Some(StartError::InvalidInput(error.to_string()))),
        };
        Self { runtime, request: StartExecution::new(workflow, input), caller: None, refusal }
    }

    /// Chooses the id: 1 to 128 letters, digits, `.`, `_`, `:` or `-`, and no UUID of version 8, which
    /// are ids of executions that undo what others did. A second start with it is refused with
    /// [`StartError::Exists`], so that something is started once however often it is tried.
    pub fn execution_id(mut self, id: &str) -> Self {
        match chosen_execution_id(id) {
            Ok(id) => self.request.execution_id = Some(id),
            Err(why) => {
                let refusal = StartError::InvalidInput(format!("execution id {id:?} {why}"));
                self.refusal.get_or_insert(refusal);
            }
        }
        self
    }

    /// Names the user that the execution belongs to.
    pub fn user(mut self, id: impl Into<String>) -> Self {
        self.request.user_id = Some(id.into());
        self
    }

    /// Starts it for the caller of a request, as the HTTP API does: it belongs to the user of the
    /// token, whose profile is `user` of the operation context, whatever [`Self::user`] and
    /// [`Self::context`] say. A caller without a token leaves it without a user, so that `!self` in the
    /// `to` of an ask has no effect; on a server without authentication, [`Self::user`] counts.
    pub fn caller(mut self, caller: &Caller) -> Self {
        self.caller = Some(caller.clone());
        self
    }

    /// Names the conversation that its agents continue.
    pub fn conversation(mut self, id: impl Into<String>) -> Self {
        self.request.conversation_id = Some(id.into());
        self
    }

    /// Sets a member of the operation context.
    pub fn context(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.request.context.insert(key.into(), value.into());
        self
    }
}

impl IntoFuture for Start {
    type Output = Result<Run, StartError>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        let Self { runtime, mut request, caller, refusal } = self;
        if let Some(caller) = caller {
            request.user_id = caller.user_id(request.user_id);
            request.conversation_id = caller.conversation(request.conversation_id);
            caller.sign(&mut request.context);
        }
        async move {
            if let Some(refusal) = refusal {
                return Err(refusal);
            }
            let workflow = request.workflow_id.clone();
            let id = runtime.begin(request).await?;
            Ok(Run::new(runtime, &workflow, id))
        }
        .boxed()
    }
}
