//! Calls of bodies, with all values evaluated.

use std::sync::Arc;

use serde_json::Value;

use crate::call::{CommandRun, HttpRequest};
use crate::expression::{CompiledMapping, Scope};
use crate::failure::AttemptFailure;
use crate::ids::compensated_path;
use crate::machine::place::Site;
use crate::machine::scope::{Named, Outputs};
use crate::machine::{Machine, Moment};
use crate::plan::{Call, Work};
use crate::principal::Principal;
use crate::question::Questions;
use crate::state::Node;

/// A call to make now.
#[derive(Debug, Clone)]
pub struct DueCall {
    pub callee: Callee,
    pub timeout_ms: Option<u64>,
}

/// Target of a call, with its arguments.
#[derive(Debug, Clone)]
pub enum Callee {
    Function(FunctionCall),
    Http(Box<HttpRequest>),
    Command(Box<CommandRun>),
    Tool {
        tool: Arc<str>,
        args: Value,
        questions: Option<Box<Questions>>,
        /// Newer than the questions.
        noted: Option<Arc<Value>>,
    },
}

/// A call of a registered function.
#[derive(Debug, Clone)]
pub struct FunctionCall {
    pub function: Arc<str>,
    pub data: Arc<Value>,
    pub resume: Option<Arc<Value>>,
    /// Principal of the resume; `None` if unknown.
    pub resumed_by: Option<Arc<Principal>>,
    /// Reason of the end of the execution, in a compensation.
    pub error: Option<Arc<Value>>,
    /// Outputs of earlier steps by id, those that are `steps` in expressions.
    pub outputs: Arc<Outputs>,
}

impl Machine {
    /// Returns the call of the step at a path, or the reason why it cannot be made.
    pub fn call(&self, path: &str, moment: &Moment<'_>) -> Option<Result<DueCall, AttemptFailure>> {
        let (step, node) = self.node(path)?;
        let Work::Call(call) = &step.work else { return None };
        let timeout_ms = step.timeout_ms;
        let scope =
            |named: Named| -> Scope { self.scope(path, &node.input, Some(node), named, moment) };
        let given = || self.function_scope(path);
        let callee = callee(call, node, given, scope);
        Some(callee.map(|callee| DueCall { callee, timeout_ms }))
    }

    /// Returns the arguments of the tool that a step calls.
    pub(super) fn arguments(&self, site: &Site<'_>) -> Option<Arc<Value>> {
        match self.call(&site.path(), site.moment)?.ok()?.callee {
            Callee::Tool { args, .. } => Some(Arc::new(args)),
            Callee::Function(_) | Callee::Http(_) | Callee::Command(_) => None,
        }
    }

    /// Returns the function call of the step at a path.
    pub fn function_call(&self, path: &str) -> Option<FunctionCall> {
        let (step, node) = self.node(path)?;
        let Work::Call(Call::Function(function)) = &step.work else { return None };
        Some(function_call(function, node, self.function_scope(path)))
    }

    fn function_scope(&self, path: &str) -> FunctionScope {
        let error = compensated_path(path).and_then(|_| self.cause_in_scope());
        FunctionScope { outputs: Arc::new(self.outputs_before(path)), error }
    }
}

/// Values that a function can read beside its node, as expressions can.
struct FunctionScope {
    outputs: Arc<Outputs>,
    error: Option<Arc<Value>>,
}

fn function_call(function: &Arc<str>, node: &Node, scope: FunctionScope) -> FunctionCall {
    let FunctionScope { outputs, error } = scope;
    FunctionCall {
        function: Arc::clone(function),
        data: Arc::clone(&node.input),
        resume: node.resume.clone(),
        resumed_by: node.resumed.as_ref().and_then(|resumed| resumed.by.clone()),
        error,
        outputs,
    }
}

fn callee(
    call: &Call,
    node: &Node,
    given: impl FnOnce() -> FunctionScope,
    scope: impl FnOnce(Named) -> Scope,
) -> Result<Callee, AttemptFailure> {
    let data = &node.input;
    match call {
        Call::Function(function) => Ok(Callee::Function(function_call(function, node, given()))),
        Call::Http(call) => {
            let scope = scope(Named::among(call.names()));
            let request = call.request(&scope, data)?;
            Ok(Callee::Http(Box::new(request)))
        }
        Call::Command(call) => {
            let scope = scope(Named::among(call.names()));
            let run = call.run(&scope, data)?;
            Ok(Callee::Command(Box::new(run)))
        }
        Call::Tool { tool, args } => {
            let evaluated = |args: &CompiledMapping| {
                let scope = scope(Named::among(args.names()));
                args.evaluate(&scope)
                    .map_err(|error| AttemptFailure::not_evaluated("args: ", &error))
            };
            let args = args.as_ref().map_or_else(|| Ok(Value::clone(data)), evaluated)?;
            let (questions, noted) = (node.questions.clone(), node.noted.clone());
            Ok(Callee::Tool { tool: Arc::clone(tool), args, questions, noted })
        }
    }
}
