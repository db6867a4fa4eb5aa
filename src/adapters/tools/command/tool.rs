//! Tools that are programs.

use std::sync::Arc;

use futures_util::future::FutureExt as _;
use greenroom_actors::agent::tool::{ToolContext, ToolError, ToolFunction};
use greenroom_actors::domain::call::CommandCall;
use greenroom_actors::domain::failure::AttemptFailure;
use serde_json::Value;

use super::Commands;
use crate::adapters::tools::scope::{origin_of, scope_of};

/// A tool that is a program, ready to be called. In scope of its templates and expressions:
/// `args`, `context`, `user`.
#[derive(Debug)]
pub struct CommandTool {
    name: String,
    call: CommandCall,
    commands: Commands,
}

impl CommandTool {
    pub fn new(name: impl Into<String>, call: CommandCall, commands: Commands) -> Self {
        Self { name: name.into(), call, commands }
    }

    /// Returns the function that the runtime calls.
    pub fn into_function(self) -> ToolFunction {
        let tool = Arc::new(self);
        Arc::new(move |arguments, context| {
            let tool = Arc::clone(&tool);
            async move { tool.call(arguments, &context).await.map_err(ToolError::Failed) }.boxed()
        })
    }

    /// Runs the program. Its default input are the arguments.
    async fn call(&self, arguments: Value, context: &ToolContext) -> Result<Value, AttemptFailure> {
        let arguments = Arc::new(arguments);
        let run = self.call.run(&scope_of(&arguments, context), &arguments);
        self.commands.run(run?, &origin_of(&self.name, context)).await
    }
}
