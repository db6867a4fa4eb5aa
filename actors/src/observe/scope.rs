//! Log scope of an execution.

use std::sync::Arc;

use crate::observe::log_record::LogScope;
use crate::observe::trace::execution::execution_span;
use crate::ports::store::Header;

/// Returns the log scope of an execution. Its actor keeps it.
pub(crate) fn scope_of(header: &Header) -> Arc<LogScope> {
    Arc::new(LogScope {
        trace_id: Some(Arc::clone(&header.trace.id)),
        span_id: Some(execution_span(&header.trace, &header.id)),
        root_type: Some(header.trace.root_type),
        root_id: Some(Arc::clone(&header.trace.root_id)),
        execution_id: Some(header.id.clone()),
        parent_execution_id: header.parent.as_ref().map(|parent| parent.execution.clone()),
        workflow_id: Some(Arc::clone(&header.workflow_id)),
        conversation_id: header.conversation_id.clone(),
        user_id: header.user_id.clone(),
        ..LogScope::default()
    })
}
