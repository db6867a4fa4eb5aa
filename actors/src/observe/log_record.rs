//! Log records, and the scope that gives them ids.
//!
//! Work for an execution or a generation runs within a [`LogScope`], whose ids every record logged
//! by it carries. The scope belongs to a task, not to a thread: it moves with the future.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::domain::ids::ExecutionId;
use crate::domain::time::Timestamp;
use crate::domain::trace::{EntityType, SpanId};

/// Severity of a record, ordered from least to most severe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum LogLevel {
    Trace,
    Debug,
    Info,
    Warn,
    Error,
}

impl LogLevel {
    /// All levels, from least to most severe.
    pub const ALL: [Self; 5] = [Self::Trace, Self::Debug, Self::Info, Self::Warn, Self::Error];

    /// Returns the name on the wire and in labels.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Trace => "trace",
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Warn => "warn",
            Self::Error => "error",
        }
    }

    /// Returns OpenTelemetry's `SeverityText`.
    pub fn severity_text(self) -> &'static str {
        match self {
            Self::Trace => "TRACE",
            Self::Debug => "DEBUG",
            Self::Info => "INFO",
            Self::Warn => "WARN",
            Self::Error => "ERROR",
        }
    }

    /// Returns OpenTelemetry's `SeverityNumber`.
    pub fn severity_number(self) -> u8 {
        match self {
            Self::Trace => 1,
            Self::Debug => 5,
            Self::Info => 9,
            Self::Warn => 13,
            Self::Error => 17,
        }
    }
}

impl From<log::Level> for LogLevel {
    fn from(level: log::Level) -> Self {
        match level {
            log::Level::Trace => Self::Trace,
            log::Level::Debug => Self::Debug,
            log::Level::Info => Self::Info,
            log::Level::Warn => Self::Warn,
            log::Level::Error => Self::Error,
        }
    }
}

/// Ids attached to log records.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LogScope {
    pub trace_id: Option<Arc<str>>,
    pub span_id: Option<SpanId>,
    /// Type of the root of the trace, for filters of observers. Not stored.
    pub root_type: Option<EntityType>,
    /// Id of that workflow or agent. Not stored.
    pub root_id: Option<Arc<str>>,
    pub execution_id: Option<ExecutionId>,
    /// Parent of the execution: its logs include those of its children.
    pub parent_execution_id: Option<ExecutionId>,
    pub workflow_id: Option<Arc<str>>,
    pub generation_id: Option<Arc<str>>,
    pub agent_id: Option<Arc<str>>,
    pub conversation_id: Option<Arc<str>>,
    pub user_id: Option<Arc<str>>,
    pub request_id: Option<Arc<str>>,
}

/// A log record, with secrets removed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LogRecord {
    pub at: Timestamp,
    pub level: LogLevel,
    /// Module that logged it.
    pub target: Arc<str>,
    pub message: String,
    /// Key and value pairs of the record.
    pub attributes: Vec<(String, Value)>,
    pub scope: Arc<LogScope>,
}

tokio::task_local! {
    static SCOPE: Arc<LogScope>;
}

impl LogScope {
    /// Returns the scope of the current task.
    pub fn current() -> Option<Arc<Self>> {
        SCOPE.try_with(Arc::clone).ok()
    }

    /// Returns the scope of an execution known only by id.
    pub(crate) fn of_execution(id: &ExecutionId) -> Arc<Self> {
        Arc::new(Self { execution_id: Some(id.clone()), ..Self::default() })
    }

    /// Returns this scope with another span.
    #[must_use]
    pub fn at(&self, span: SpanId) -> Arc<Self> {
        Arc::new(Self { span_id: Some(span), ..self.clone() })
    }

    /// Runs a function in the scope.
    pub fn within<T>(self: &Arc<Self>, run: impl FnOnce() -> T) -> T {
        SCOPE.sync_scope(Arc::clone(self), run)
    }

    /// Runs a future in the scope, wherever it is polled.
    pub fn during<F: Future>(
        self: &Arc<Self>,
        work: F,
    ) -> impl Future<Output = F::Output> + use<F> {
        SCOPE.scope(Arc::clone(self), work)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user() -> Option<Arc<str>> {
        LogScope::current().and_then(|scope| scope.user_id.clone())
    }

    #[tokio::test]
    async fn a_scope_stays_with_its_task() {
        let scope =
            |user: &str| Arc::new(LogScope { user_id: Some(user.into()), ..LogScope::default() });
        let task = |name: &'static str| async move {
            for _ in 0..3 {
                assert_eq!(user().as_deref(), Some(name));
                tokio::task::yield_now().await;
            }
        };
        let (ann, ben) = (scope("ann"), scope("ben"));
        tokio::join!(ann.during(task("ann")), ben.during(task("ben")));
        assert_eq!(ann.within(|| ben.within(user)).as_deref(), Some("ben"));
        assert_eq!(user(), None);
    }
}
