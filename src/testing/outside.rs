//! Calls that would leave the process of a test: refused by name.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, ready};
use futures_util::stream::{self, BoxStream, StreamExt as _};
use greenroom_actors::agent::tool::{ToolError, ToolFunction};
use greenroom_actors::domain::call::{CommandRun, HttpRequest};
use greenroom_actors::domain::failure::{AttemptFailure, ErrorKind};
use greenroom_actors::ports::external_calls::{CallOrigin, ExternalCalls};
use greenroom_actors::ports::model::{
    LanguageModel, ModelError, ModelErrorKind, ModelEvent, ModelRequest,
};
use serde_json::Value;

/// Calls that would have left the process. Clones share them.
#[derive(Debug, Clone, Default)]
pub(super) struct Outside(Arc<Mutex<BTreeSet<String>>>);

impl Outside {
    /// Returns what would have left the process so far, in words.
    pub(super) fn refused(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    /// Notes something that would leave the process, and returns the refusal.
    fn refuse(&self, refusal: String) -> String {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(refusal.clone());
        refusal
    }

    /// Returns the function of a tool that leaves the process.
    pub(super) fn tool(&self, name: &str) -> ToolFunction {
        let (outside, name) = (self.clone(), name.to_owned());
        Arc::new(move |_, _| {
            let refusal =
                outside.refuse(format!("tool {name} would leave this process: mock tools.{name}"));
            ready(Err(ToolError::new(refusal))).boxed()
        })
    }

    /// Returns the model in place of one of a provider.
    pub(super) fn model(&self, name: &str) -> Arc<dyn LanguageModel> {
        Arc::new(UnmockedModel { outside: self.clone(), name: name.to_owned() })
    }

    fn call<T: Send + 'static>(
        &self,
        action: &str,
        origin: &CallOrigin,
    ) -> BoxFuture<'static, Result<T, AttemptFailure>> {
        let refusal = self.refuse(format!("{} would {action}: mock it", origin.name));
        ready(Err(AttemptFailure::new(ErrorKind::Request, refusal))).boxed()
    }
}

impl ExternalCalls for Outside {
    fn http(
        &self,
        request: HttpRequest,
        origin: CallOrigin,
    ) -> BoxFuture<'static, Result<Value, AttemptFailure>> {
        let host = request.url.host_str().unwrap_or("a server").to_owned();
        self.call(&format!("call {host}"), &origin)
    }

    fn command(
        &self,
        run: CommandRun,
        origin: CallOrigin,
    ) -> BoxFuture<'static, Result<Value, AttemptFailure>> {
        self.call(&format!("run {}", run.program), &origin)
    }
}

/// A model of a provider that a test did not mock.
struct UnmockedModel {
    outside: Outside,
    name: String,
}

impl UnmockedModel {
    fn refuse(&self) -> ModelError {
        let name = &self.name;
        let refusal = self
            .outside
            .refuse(format!("model {name} would call its provider: mock models.{name}"));
        ModelError::new(ModelErrorKind::Other, refusal)
    }
}

impl LanguageModel for UnmockedModel {
    fn name(&self) -> &str {
        &self.name
    }

    fn is_remote(&self) -> bool {
        false
    }

    fn stream(&self, _: ModelRequest) -> BoxStream<'static, Result<ModelEvent, ModelError>> {
        stream::iter([Err(self.refuse())]).boxed()
    }
}
