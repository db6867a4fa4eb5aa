//! Asks in memory.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use super::{MemoryStore, State};
use crate::domain::ids::ExecutionId;
use crate::domain::time::Timestamp;
use crate::ports::store::{
    Ask, AskChange, AskContent, AskCursor, AskFilter, AskKind, AskPage, AskRevision, AskState,
    AskSubject, AskedStep, Asks, DueAsks, DueCursor, Header, MissingAsks, NewAsk, OpenAskCounts,
    Read, Row, Written,
};

/// Asks of all executions and generations, in the order in which they opened.
#[derive(Clone, Default)]
pub(super) struct StoredAsks {
    asks: BTreeMap<Row, StoredAsk>,
    by_id: BTreeMap<Arc<str>, Row>,
    last: Row,
    /// Executions whose asks are not stored: a test says so.
    unknown: BTreeMap<Row, ExecutionId>,
}

#[derive(Clone)]
struct StoredAsk {
    of: Owner,
    ask: Ask,
    content: AskContent,
    next_due: Option<Timestamp>,
}

/// The execution or the generation that an ask belongs to.
#[derive(Clone, PartialEq)]
pub(super) enum Owner {
    Execution(Row),
    Generation(Arc<str>),
}

impl StoredAsks {
    /// Changes asks of an execution or a generation.
    pub(super) fn change(
        &mut self,
        of: &Owner,
        user_id: Option<&str>,
        subject: impl Fn(&NewAsk) -> AskSubject,
        changes: Vec<AskChange>,
    ) {
        for change in changes {
            match change {
                AskChange::Open(ask) => {
                    let subject = subject(&ask);
                    self.open(of.clone(), user_id, subject, ask);
                }
                AskChange::Close { id, state, at, answer } => {
                    let row = self.by_id.get(&id);
                    let found = row.and_then(|row| self.asks.get_mut(row));
                    let open = found.filter(|stored| stored.ask.state == AskState::Open);
                    if let Some(StoredAsk { ask, content, .. }) = open {
                        (ask.state, ask.closed_at) = (state, Some(at));
                        content.answer = answer.map(Arc::unwrap_or_clone);
                    }
                }
            }
        }
    }

    /// Changes asks of an execution.
    pub(super) fn change_of(&mut self, header: &Header, row: Row, changes: Vec<AskChange>) {
        self.unknown.remove(&row);
        let subject = |ask: &NewAsk| step_of(header, ask);
        self.change(&Owner::Execution(row), header.user_id.as_deref(), subject, changes);
    }

    fn open(&mut self, of: Owner, user_id: Option<&str>, subject: AskSubject, ask: NewAsk) {
        if self.by_id.contains_key(&ask.id) {
            return;
        }
        self.last += 1;
        self.by_id.insert(Arc::clone(&ask.id), self.last);
        let (next_due, details) = (ask.next_due, ask.details.clone());
        let ask = ask.opened(subject, user_id.map(Arc::from));
        let content = AskContent { details, answer: None };
        self.asks.insert(self.last, StoredAsk { of, ask, content, next_due });
    }

    /// Deletes the asks of an execution, as if a version had written it which knows none.
    pub(super) fn forget_of(&mut self, execution: Row, id: &ExecutionId) {
        self.drop_of(&Owner::Execution(execution));
        self.unknown.insert(execution, id.clone());
    }

    /// Opens the asks of an execution, and withdraws its other open ones.
    fn replace_open(&mut self, header: &Header, execution: Row, asks: Vec<NewAsk>, at: Timestamp) {
        let of = Owner::Execution(execution);
        self.unknown.remove(&execution);
        for stored in self.asks.values_mut().filter(|stored| stored.of == of) {
            let ask = &mut stored.ask;
            if ask.state == AskState::Open && asks.iter().all(|it| it.id != ask.id) {
                (ask.state, ask.closed_at) = (AskState::Withdrawn, Some(at));
            }
        }
        for ask in asks {
            self.open(of.clone(), header.user_id.as_deref(), step_of(header, &ask), ask);
        }
    }

    /// Removes the asks of an execution or a generation.
    pub(super) fn drop_of(&mut self, of: &Owner) {
        self.asks.retain(|_, stored| stored.of != *of);
        self.by_id.retain(|_, row| self.asks.contains_key(row));
    }

    /// Ends the claims of a user, and removes the user from assignments and answers.
    pub(super) fn forget_user(&mut self, user: &str) {
        for StoredAsk { ask, content, .. } in self.asks.values_mut() {
            if ask.claim.as_ref().is_some_and(|claim| *claim.by == *user) {
                ask.claim = None;
                ask.revision += 1;
            }
            if ask.rules.forget(user) {
                ask.revision += 1;
            }
            if let Some(answer) = &mut content.answer {
                answer.forget(user);
            }
        }
    }

    fn due(&self, now: Timestamp, after: Option<DueCursor>, limit: usize) -> DueAsks {
        let open = self.asks.iter().filter(|(_, stored)| stored.ask.state == AskState::Open);
        let due = open.filter_map(|(&row, stored)| {
            let at = stored.next_due.filter(|due| *due <= now)?;
            Some((DueCursor { at, row }, &stored.ask))
        });
        let mut due: Vec<_> = due.filter(|(place, _)| Some(*place) > after).collect();
        due.sort_by_key(|(place, _)| *place);
        due.truncate(limit);
        let next = due.last().filter(|_| due.len() == limit).map(|(place, _)| *place);
        DueAsks { asks: due.into_iter().map(|(_, ask)| ask.clone()).collect(), next }
    }

    fn counts(&self) -> OpenAskCounts {
        let open = || self.asks.values().map(|it| &it.ask).filter(|it| it.state == AskState::Open);
        let count = |kind| open().filter(|ask| ask.kind == kind).count() as u64;
        let by_kind = AskKind::ALL.into_iter().map(|kind| (kind, count(kind)));
        OpenAskCounts {
            by_kind: by_kind.filter(|(_, count)| *count > 0).collect(),
            oldest: open().map(|ask| ask.opened_at).min(),
        }
    }

    fn revise(&mut self, change: AskRevision) -> bool {
        let AskRevision { id, revision, rules, claim, next_due } = change;
        let found = self.by_id.get(&id).and_then(|row| self.asks.get_mut(row));
        let found = found
            .filter(|stored| stored.ask.state == AskState::Open && stored.ask.revision == revision);
        let Some(stored) = found else { return false };
        stored.next_due = next_due;
        stored.ask = Ask { revision: revision + 1, rules, claim, ..stored.ask.clone() };
        true
    }

    fn page(&self, filter: &AskFilter, after: Option<AskCursor>, limit: usize) -> AskPage {
        let all = self.asks.iter().map(|(row, stored)| (row, &stored.ask));
        let of_state = all.filter(|(_, ask)| {
            (ask.state == AskState::Open) == filter.is_open && filter.matches(ask)
        });
        let mut found: Vec<_> =
            of_state.map(|(row, ask)| (AskCursor::of(ask, *row), ask)).collect();
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
            asks.asks.get(row).map(|stored| stored.ask.clone())
        })
    }

    fn ask_content<'a>(&'a self, id: &'a str) -> Read<'a, AskContent> {
        self.read(|State { asks, .. }| {
            let found = asks.by_id.get(id).and_then(|row| asks.asks.get(row));
            found.map(|stored| stored.content.clone()).unwrap_or_default()
        })
    }

    fn asks_of_generation<'a>(&'a self, id: &'a str) -> Read<'a, Vec<Ask>> {
        self.read(|State { asks, .. }| {
            let of = Owner::Generation(Arc::from(id));
            let own = asks.asks.values().filter(|stored| stored.of == of);
            own.map(|stored| stored.ask.clone()).collect()
        })
    }

    fn due_asks(
        &self,
        now: Timestamp,
        after: Option<DueCursor>,
        limit: usize,
    ) -> Read<'_, DueAsks> {
        self.read(|state| state.asks.due(now, after, limit))
    }

    fn open_ask_counts(&self) -> Read<'_, OpenAskCounts> {
        self.read(|state| state.asks.counts())
    }

    fn revise_ask(&self, revision: AskRevision) -> Written<bool> {
        let revised = self.written(|state| state.asks.revise(revision));
        self.faults.after_outage(revised)
    }

    fn asks<'a>(
        &'a self,
        filter: &'a AskFilter,
        after: Option<AskCursor>,
        limit: usize,
    ) -> Read<'a, AskPage> {
        self.read(|state| state.asks.page(filter, after, limit))
    }

    /// Returns none unless a test deletes asks: this store begins empty.
    fn executions_without_asks(
        &self,
        after: Row,
        limit: usize,
    ) -> Read<'_, Vec<(Row, ExecutionId)>> {
        self.read(|state| {
            let behind = state.asks.unknown.range((Bound::Excluded(after), Bound::Unbounded));
            behind.take(limit).map(|(row, id)| (*row, id.clone())).collect()
        })
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

fn step_of(header: &Header, ask: &NewAsk) -> AskSubject {
    AskSubject::Step(AskedStep {
        execution_id: header.id.clone(),
        workflow_id: Arc::clone(&header.workflow_id),
        path: Arc::clone(&ask.place),
    })
}
