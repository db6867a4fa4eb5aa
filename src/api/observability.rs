//! Use cases of traces and of the status of observability.

use greenroom_actors::Runtime;
use greenroom_actors::observe::span::{Span, SpanId};
use greenroom_actors::ports::store::{LogPage, RootCursor, RootFilter, Store};
use greenroom_actors::runtime::{TracePage, TraceView};
use greenroom_actors::visibility::Visibility;

use crate::api::error::ApiError;
use crate::api::logs::{self, LogQuery};
use crate::api::query::{Pairs, read, read_limit, refuse_unknown, time_from};
use crate::api::wire::observability::{StalledView, StatusView, StuckView, cursor_of};
use crate::api::wire::span::{ENTITY_ID, ENTITY_TYPE, entity_type_of, is_entity_id};

/// Default number of traces of a page. All spans of each trace are read.
const LIMIT_DEFAULT: usize = 50;
const LIMIT_MAX: usize = 100;
/// Maximum of stuck executions that the status names.
const STUCK_SHOWN: usize = 20;

/// Store of traces and logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Storage {
    /// Technology, as shown by `/observability/status`.
    pub name: &'static str,
    /// True if its data survives a restart.
    pub is_persistent: bool,
}

impl Storage {
    /// Returns what is shown about a store.
    pub fn of(store: &dyn Store) -> Self {
        Self { name: store.technology(), is_persistent: store.is_persistent() }
    }
}

/// The store of the default configuration.
impl Default for Storage {
    fn default() -> Self {
        Self { name: "sqlite", is_persistent: true }
    }
}

/// Returns the status of observability. `is_exported`: true if telemetry is sent to a collector.
pub async fn status(
    runtime: &Runtime,
    storage: Storage,
    is_exported: bool,
    environment: &'static str,
    visibility: &Visibility,
) -> Result<StatusView, ApiError> {
    let shown = if *visibility == Visibility::Everything { STUCK_SHOWN } else { 0 };
    Ok(StatusView {
        enabled: true,
        storage: storage.name,
        storage_persistent: storage.is_persistent,
        message: "Traces and logs are stored, and sent to WebSockets as they occur",
        websocket: true,
        log_count: runtime.log_count().await?,
        is_telemetry_enabled: is_exported,
        environment,
        stuck: StuckView::of(runtime.stuck().await, shown),
        stalled: match visibility {
            Visibility::Everything => {
                runtime.stalled_threads().into_iter().map(StalledView::of).collect()
            }
            Visibility::Of(_) | Visibility::Nothing => Vec::new(),
        },
    })
}

/// Requested page of traces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceQuery {
    pub filter: RootFilter,
    pub after: Option<RootCursor>,
    pub limit: usize,
}

impl TraceQuery {
    /// Parses the query.
    pub fn parse(pairs: &Pairs, visibility: Visibility) -> Result<Self, ApiError> {
        refuse_unknown(pairs, &["entityType", "entityId", "from", "limit", "cursor"])?;
        let filter = RootFilter {
            entity_type: read(pairs, "entityType", ENTITY_TYPE, entity_type_of)?,
            entity_id: read(pairs, "entityId", ENTITY_ID, |id| {
                is_entity_id(id).then(|| id.to_owned())
            })?,
            visibility,
            from: time_from(pairs, "from")?,
        };
        let after = read(pairs, "cursor", "must be a nextCursor of this list", cursor_of)?;
        Ok(Self { filter, after, limit: read_limit(pairs, LIMIT_DEFAULT, LIMIT_MAX)? })
    }
}

/// Lists the traces that the caller sees, newest first.
pub async fn list(runtime: &Runtime, query: &TraceQuery) -> Result<TracePage, ApiError> {
    Ok(runtime.traces(&query.filter, query.after, query.limit).await?)
}

/// Finds a trace.
pub async fn trace(
    runtime: &Runtime,
    id: &str,
    visibility: &Visibility,
) -> Result<TraceView, ApiError> {
    let found = runtime.trace(id, visibility).await?;
    found.ok_or_else(|| ApiError::TraceNotFound(id.to_owned()))
}

/// Finds a span.
pub async fn span(
    runtime: &Runtime,
    id: SpanId,
    visibility: &Visibility,
) -> Result<Span, ApiError> {
    runtime.span(id, visibility).await?.ok_or_else(|| ApiError::SpanNotFound(id.to_string()))
}

/// Returns a page of the log of a trace, newest last.
pub async fn trace_logs(
    runtime: &Runtime,
    id: &str,
    pairs: &Pairs,
    visibility: Visibility,
) -> Result<LogPage, ApiError> {
    trace(runtime, id, &visibility).await?;
    let mut query = LogQuery::of_records(pairs, visibility)?;
    query.filter.trace_id = Some(id.to_owned());
    logs::page(runtime, &query).await
}

/// Returns a page of the log of a span, newest last.
pub async fn span_logs(
    runtime: &Runtime,
    id: SpanId,
    pairs: &Pairs,
    visibility: Visibility,
) -> Result<LogPage, ApiError> {
    span(runtime, id, &visibility).await?;
    let mut query = LogQuery::of_records(pairs, visibility)?;
    query.filter.span_id = Some(id);
    logs::page(runtime, &query).await
}

#[cfg(test)]
mod tests {
    use greenroom_actors::observe::span::EntityType;

    use super::*;
    use crate::api::query::assert_refused;

    fn parse(name: &str, value: &str) -> Result<TraceQuery, ApiError> {
        TraceQuery::parse(&[(name.to_owned(), value.to_owned())], Visibility::Everything)
    }

    #[test]
    fn filters_of_a_list_of_traces_are_validated() {
        let all = TraceQuery::parse(&[], Visibility::Everything).unwrap();
        assert_eq!((all.limit, all.after, all.filter), (50, None, RootFilter::default()));
        assert_eq!(parse("limit", "100").unwrap().limit, 100);
        let agents = parse("entityType", "agent").unwrap().filter;
        assert_eq!(agents.entity_type, Some(EntityType::Agent));
        let rows = [
            ("entityType", "tool"),
            ("entityType", "Agent"),
            ("entityId", ""),
            ("from", "today"),
            ("limit", "0"),
            ("limit", "101"),
            ("limit", "1.0"),
            ("cursor", ""),
            ("cursor", "-.-"),
            ("cursor", "-.1"),
            ("cursor", "-"),
            ("cursor", "00000000000000000000000000000001"),
            ("cursor", "-.0000000000000001.-"),
        ];
        assert_refused(&rows, "must ", parse);
    }
}
