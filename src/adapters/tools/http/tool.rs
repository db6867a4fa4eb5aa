//! Tools that are HTTP calls.

use std::sync::Arc;

use futures_util::future::FutureExt as _;
use greenroom_actors::agent::tool::{ToolContext, ToolError, ToolFunction};
use greenroom_actors::domain::call::HttpCall;
use greenroom_actors::domain::failure::AttemptFailure;
use serde_json::Value;

use super::HttpCalls;
use crate::adapters::tools::scope::{origin_of, scope_of};

/// A tool over HTTP, ready to be called. In scope of its templates and expressions: `args`,
/// `context`, `user`.
#[derive(Debug)]
pub struct HttpTool {
    name: String,
    call: HttpCall,
    calls: HttpCalls,
}

impl HttpTool {
    pub fn new(name: impl Into<String>, call: HttpCall, calls: HttpCalls) -> Self {
        Self { name: name.into(), call, calls }
    }

    /// Returns the function that the runtime calls.
    pub fn into_function(self) -> ToolFunction {
        let tool = Arc::new(self);
        Arc::new(move |arguments, context| {
            let tool = Arc::clone(&tool);
            async move { tool.call(arguments, &context).await.map_err(ToolError::Failed) }.boxed()
        })
    }

    /// Makes the call. Its default body are the arguments.
    pub(super) async fn call(
        &self,
        arguments: Value,
        context: &ToolContext,
    ) -> Result<Value, AttemptFailure> {
        let arguments = Arc::new(arguments);
        let request = self.call.request(&scope_of(&arguments, context), &arguments);
        self.calls.call(request?, &origin_of(&self.name, context)).await
    }
}
