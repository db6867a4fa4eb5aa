//! Log records, and whom they are about.
//!
//! What runs for an execution or a generation runs within a [`LogScope`]; every record that is
//! logged meanwhile carries its ids. The scope belongs to a task, not to a thread: it comes and
//! goes with the future that it was given to.

use std::sync::Arc;

use serde_json::Value;

use crate::domain::ids::ExecutionId;
use crate::domain::time::Timestamp;
use crate::domain::trace::{EntityType, SpanId};

/// How grave a record is; ordered from the least to the most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LogLevel {
    Trace,
    Debug,
    Info,
    Warn,
    Error,
}

impl LogLevel {
    /// From the least grave to the most.
    pub const ALL: [Self; 5] = [Self::Trace, Self::Debug, Self::Info, Self::Warn, Self::Error];

    /// The word for it on the wire and in labels.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Trace => "trace",
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Warn => "warn",
            Self::Error => "error",
        }
    }

    /// OpenTelemetry's `SeverityText`.
    pub fn severity_text(self) -> &'static str {
        match self {
            Self::Trace => "TRACE",
            Self::Debug => "DEBUG",
            Self::Info => "INFO",
            Self::Warn => "WARN",
            Self::Error => "ERROR",
        }
    }

    /// OpenTelemetry's `SeverityNumber`.
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

/// What a record is about, as far as it is about something.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogScope {
    pub trace_id: Option<Arc<str>>,
    pub span_id: Option<SpanId>,
    /// What the root of the trace is: observers ask for it. Not kept with the record.
    pub root_type: Option<EntityType>,
    /// The id of that workflow or agent.
    pub root_id: Option<Arc<str>>,
    pub execution_id: Option<ExecutionId>,
    /// The execution above that one: its logs include those of its children.
    pub parent_execution_id: Option<ExecutionId>,
    pub workflow_id: Option<Arc<str>>,
    pub generation_id: Option<Arc<str>>,
    pub agent_id: Option<Arc<str>>,
    pub conversation_id: Option<Arc<str>>,
    pub user_id: Option<Arc<str>>,
    pub request_id: Option<Arc<str>>,
}

/// One record, with every secret struck out.
#[derive(Debug, Clone, PartialEq)]
pub struct LogRecord {
    pub at: Timestamp,
    pub level: LogLevel,
    /// The module that logged it.
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
    /// The scope of what runs now on this thread.
    pub fn current() -> Option<Arc<Self>> {
        SCOPE.try_with(Arc::clone).ok()
    }

    /// The scope of an execution of which only the id is known.
    pub(crate) fn of_execution(id: &ExecutionId) -> Arc<Self> {
        Arc::new(Self { execution_id: Some(id.clone()), ..Self::default() })
    }

    /// The same within a span of its own.
    #[must_use]
    pub fn at(&self, span: SpanId) -> Arc<Self> {
        Arc::new(Self { span_id: Some(span), ..self.clone() })
    }

    /// Runs a function within the scope.
    pub fn within<T>(self: &Arc<Self>, run: impl FnOnce() -> T) -> T {
        SCOPE.sync_scope(Arc::clone(self), run)
    }

    /// Runs a future within the scope, wherever it is polled.
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
