//! Values in scope of configured tools, and the origin of their calls.

use std::sync::Arc;

use greenroom_actors::agent::tool::ToolContext;
use greenroom_actors::domain::expression::Scope;
use greenroom_actors::ports::external_calls::CallOrigin;
use serde_json::Value;

/// Returns a scope with `args`, `context` and `user`.
pub(super) fn scope_of(arguments: &Arc<Value>, context: &ToolContext) -> Scope {
    let user = context.context.get("user").cloned().map(Arc::new);
    Scope::new()
        .with("args", Arc::clone(arguments))
        .with("context", Arc::new(Value::Object((*context.context).clone())))
        .with_optional("user", user)
}

pub(super) fn origin_of(name: &str, context: &ToolContext) -> CallOrigin {
    CallOrigin {
        name: Arc::from(format!("tool {name}")),
        idempotency_key: context.idempotency_key.clone(),
        attempt: None,
        trace: context.trace.clone(),
    }
}
