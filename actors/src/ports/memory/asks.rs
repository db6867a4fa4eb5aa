//! Asks in memory.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{MemoryStore, State};
use crate::domain::ids::ExecutionId;
use crate::domain::time::Timestamp;
use crate::ports::store::{
    Ask, AskChange, AskCursor, AskFilter, AskPage, AskState, Asks, Header, MissingAsks, NewAsk,
    Read, Row, Written,
};

/// Asks of all executions, in the order in which they opened.
#[derive(Clone, Default)]
pub(super) struct StoredAsks {
    asks: BTreeMap<Row, (Row, Ask)>,
    by_id: BTreeMap<Arc<str>, Row>,
    last: Row,
}

impl StoredAsks {
    /// Changes asks of an execution.
    pub(super) fn change(&mut self, header: &Header, execution: Row, changes: Vec<AskChange>) {
        for change in changes {
            match change {
                AskChange::Open(ask) => self.open(header, execution, ask),
                AskChange::Close { id, state, at } => {
                    let row = self.by_id.get(&id);
                    let found = row.and_then(|row| self.asks.get_mut(row));
                    if let Some((_, ask)) = found.filter(|(_, ask)| ask.state == AskState::Open) {
                        (ask.state, ask.closed_at) = (state, Some(at));
                    }
                }
            }
        }
    }

    fn open(&mut self, header: &Header, execution: Row, ask: NewAsk) {
        let NewAsk { id, kind, path, reason, opened_at, deadline } = ask;
        if self.by_id.contains_key(&id) {
            return;
        }
        self.last += 1;
        self.by_id.insert(Arc::clone(&id), self.last);
        let ask = Ask {
            id,
            kind,
            state: AskState::Open,
            execution_id: header.id.clone(),
            workflow_id: Arc::clone(&header.workflow_id),
            path,
            user_id: header.user_id.clone(),
            reason,
            opened_at,
            deadline,
            closed_at: None,
        };
        self.asks.insert(self.last, (execution, ask));
    }

    /// Opens the asks of an execution, and withdraws its other open ones.
    fn replace_open(&mut self, header: &Header, execution: Row, asks: Vec<NewAsk>, at: Timestamp) {
        let is_obsolete = |of: Row, ask: &Ask| {
            of == execution && ask.state == AskState::Open && asks.iter().all(|it| it.id != ask.id)
        };
        for (of, ask) in self.asks.values_mut() {
            if is_obsolete(*of, ask) {
                (ask.state, ask.closed_at) = (AskState::Withdrawn, Some(at));
            }
        }
        asks.into_iter().for_each(|ask| self.open(header, execution, ask));
    }

    /// Removes the asks of an execution.
    pub(super) fn drop_of(&mut self, execution: Row) {
        self.asks.retain(|_, (of, _)| *of != execution);
        self.by_id.retain(|_, row| self.asks.contains_key(row));
    }

    fn page(&self, filter: &AskFilter, after: Option<AskCursor>, limit: usize) -> AskPage {
        let of_state = self.asks.iter().filter(|(_, (_, ask))| {
            (ask.state == AskState::Open) == filter.is_open && filter.matches(ask)
        });
        let mut found: Vec<_> =
            of_state.map(|(row, (_, ask))| (AskCursor::of(ask, *row), ask)).collect();
        found.sort_by_key(|(place, _)| *place);
        if !filter.is_open {
            found.reverse();
        }
        found.retain(|(place, _)| {
            after.is_none_or(|after| if filter.is_open { *place > after } else { *place < after })
        });
        let next = (found.len() > limit).then(|| limit.checked_sub(1).map(|last| found[last].0));
        found.truncate(limit);
        AskPage {
            asks: found.into_iter().map(|(_, ask)| ask.clone()).collect(),
            next: next.flatten(),
        }
    }
}

impl Asks for MemoryStore {
    fn ask<'a>(&'a self, id: &'a str) -> Read<'a, Option<Ask>> {
        self.read(|State { asks, .. }| {
            let row = asks.by_id.get(id)?;
            asks.asks.get(row).map(|(_, ask)| ask.clone())
        })
    }

    fn asks<'a>(
        &'a self,
        filter: &'a AskFilter,
        after: Option<AskCursor>,
        limit: usize,
    ) -> Read<'a, AskPage> {
        self.read(|state| state.asks.page(filter, after, limit))
    }

    /// Returns none: this store begins empty.
    fn executions_without_asks(&self, _: Row, _: usize) -> Read<'_, Vec<(Row, ExecutionId)>> {
        self.read(|_| Vec::new())
    }

    fn put_asks(&self, missing: MissingAsks) -> Written<bool> {
        let MissingAsks { header, row, revision, asks, at } = missing;
        self.written(move |state| {
            let execution = state.executions.get(&header.id);
            let is_newest = execution.is_some_and(|entry| entry.revision == revision);
            if is_newest {
                state.asks.replace_open(&header, row, asks, at);
            }
            is_newest
        })
    }
}
