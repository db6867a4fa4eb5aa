//! Reads that others suffice for: the defaults of [`Executions`].

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::domain::event::events_of;
use crate::domain::fact::Recorded;
use crate::domain::ids::ExecutionId;
use crate::ports::store::{
    CountsOfUser, Cursor, EndRange, ExecutionCount, ExecutionEnd, ExecutionFilter, ExecutionStart,
    Executions, FactCursor, Portion, Projection, ReadError, StartRange,
};

/// Number of rows or facts that are read at once.
const PAGE: usize = 500;

/// Reads at most `limit` rows of a list.
async fn rows<E: Executions + ?Sized>(
    store: &E,
    filter: &ExecutionFilter,
    limit: usize,
) -> Result<Vec<Projection>, ReadError> {
    let (mut found, mut after) = (Vec::new(), None::<Cursor>);
    while found.len() < limit {
        let (page, next) = store.list(filter, after, limit - found.len()).await?;
        found.extend(page);
        let Some(next) = next else { break };
        after = Some(next);
    }
    Ok(found)
}

/// Counts rows by workflow and status.
#[derive(Default)]
struct Counts(BTreeMap<(Arc<str>, &'static str), ExecutionCount>);

impl Counts {
    fn add(&mut self, row: &Projection) {
        let (workflow_id, status) = (Arc::clone(&row.header.workflow_id), row.status);
        let entry = self.0.entry((Arc::clone(&workflow_id), status.as_str()));
        entry.or_insert(ExecutionCount { workflow_id, status, count: 0 }).count += 1;
    }

    fn finish(self) -> Vec<ExecutionCount> {
        self.0.into_values().collect()
    }
}

pub(super) async fn counts<E: Executions + ?Sized>(
    store: &E,
) -> Result<Vec<ExecutionCount>, ReadError> {
    let (mut counts, mut after) = (Counts::default(), None);
    loop {
        let (page, next) = store.list(&ExecutionFilter::default(), after, PAGE).await?;
        page.iter().for_each(|row| counts.add(row));
        let Some(next) = next else { return Ok(counts.finish()) };
        after = Some(next);
    }
}

pub(super) async fn counts_of_user<E: Executions + ?Sized>(
    store: &E,
    user_id: &str,
    limit: usize,
) -> Result<CountsOfUser, ReadError> {
    let user_id = Some(user_id.to_owned());
    let filter = ExecutionFilter { user_id, ..ExecutionFilter::default() };
    let newest = rows(store, &filter, limit.saturating_add(1)).await?;
    let mut counts = Counts::default();
    newest.iter().take(limit).for_each(|row| counts.add(row));
    Ok(CountsOfUser { counts: counts.finish(), is_complete: newest.len() <= limit })
}

pub(super) async fn ends<E: Executions + ?Sized>(
    store: &E,
    range: &EndRange,
    limit: usize,
) -> Result<Vec<ExecutionEnd>, ReadError> {
    let EndRange { status, period } = range;
    let filter = ExecutionFilter {
        status: Some(*status),
        ended_from: Some(period.start),
        ended_to: Some(period.end),
        ..ExecutionFilter::default()
    };
    let end = |row: Projection| {
        Some(ExecutionEnd {
            workflow_id: Arc::clone(&row.header.workflow_id),
            user_id: row.header.user_id.clone(),
            created_at: row.header.created_at,
            ended_at: row.ended_at?,
            failed_step: row.error.as_ref().and_then(|error| error.step_id.clone()),
        })
    };
    Ok(rows(store, &filter, limit).await?.into_iter().filter_map(end).collect())
}

pub(super) async fn starts<E: Executions + ?Sized>(
    store: &E,
    range: &StartRange,
    limit: usize,
) -> Result<Vec<ExecutionStart>, ReadError> {
    let StartRange { workflow_id, status } = range.clone();
    let (workflow_id, status) = (Some(workflow_id), Some(status));
    let filter = ExecutionFilter { workflow_id, status, ..ExecutionFilter::default() };
    let start = |row: Projection| ExecutionStart {
        user_id: row.header.user_id.clone(),
        definition_hash: Arc::clone(&row.header.definition_hash),
        created_at: row.header.created_at,
    };
    Ok(rows(store, &filter, limit).await?.into_iter().map(start).collect())
}

pub(super) async fn portion<E: Executions + ?Sized>(
    store: &E,
    id: &ExecutionId,
    from: FactCursor,
    bytes: usize,
) -> Result<Portion, ReadError> {
    let (mut facts, mut left, mut has_event) = (Vec::new(), bytes, false);
    let above = |facts: &[Recorded]| {
        facts.last().map_or(from.above, |fact| fact.next_seq().saturating_sub(1))
    };
    loop {
        let page = store.facts(id, above(&facts), PAGE).await?;
        let with_events = page.iter().filter(|fact| !events_of(&fact.fact).is_empty()).count();
        for fact in page {
            let length = serde_json::to_vec(&fact).map_or(0, |json| json.len());
            if has_event && length > left {
                let next = FactCursor::above(above(&facts));
                return Ok(Portion { facts, next });
            }
            left = left.saturating_sub(length);
            has_event |= !events_of(&fact.fact).is_empty();
            facts.push(fact);
        }
        if with_events < PAGE {
            let next = FactCursor::above(above(&facts));
            return Ok(Portion { facts, next });
        }
    }
}
