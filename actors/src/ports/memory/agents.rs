//! History of agents, in memory.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde::Serialize;

use super::asks::Owner;
use super::conversations::StoredConversations;
use super::members::Cluster;
use super::{MemoryStore, State};
use crate::domain::cluster::NodeId;
use crate::domain::time::Timestamp;
use crate::ports::store::{
    AppendError, AskSubject, AskedCall, AskedStep, ContinuationChange, ConversationKey,
    GenerationEntry, GenerationPage, GenerationRecord, GenerationStatus, GenerationWrite,
    Generations, NewAsk, PageSize, PageTooLarge, Read, Row, StepOrigin, StoredContinuation,
    UserCursor, Written,
};

/// Records of all agents, in the order in which they were first recorded.
#[derive(Clone, Default)]
pub(super) struct Agents {
    generations: Vec<GenerationEntry>,
    /// Rows of `generations`.
    rows: Vec<Row>,
    /// Members that work on generations, or did.
    workers: HashMap<String, NodeId>,
    /// By the ids of generations.
    continuations: HashMap<String, StoredContinuation>,
    pub(super) conversations: StoredConversations,
}

impl Agents {
    fn record(&mut self, by: Option<NodeId>, write: GenerationWrite) {
        let GenerationWrite { row, record, steps, messages, continuation } = write;
        self.continue_with(&record.id, continuation);
        if let Some(by) = by {
            self.workers.insert(record.id.clone(), by);
        }
        let at = self.generations.iter().position(|kept| kept.record.id == record.id);
        let at = at.unwrap_or_else(|| {
            self.rows.push(row);
            self.generations.push(GenerationEntry { record: record.clone(), steps: Vec::new() });
            self.generations.len() - 1
        });
        let entry = &mut self.generations[at];
        entry.record = record;
        if steps.first().is_some_and(|(number, _)| *number == 0) {
            entry.steps.clear();
        }
        for (number, step) in steps {
            let number = number as usize;
            match entry.steps.get_mut(number) {
                Some(kept) => *kept = (*step).clone(),
                None => entry.steps.push((*step).clone()),
            }
        }
        if let Some(messages) = messages {
            self.conversations.add(messages);
        }
    }

    fn continue_with(&mut self, id: &str, change: ContinuationChange) {
        match change {
            ContinuationChange::Keep => {}
            ContinuationChange::Put { body, .. } => {
                let revision = self.revision_of(id) + 1;
                self.continuations.insert(id.to_owned(), StoredContinuation { revision, body });
            }
            ContinuationChange::Remove { .. } => drop(self.continuations.remove(id)),
        }
    }

    fn revision_of(&self, id: &str) -> u64 {
        self.continuations.get(id).map_or(0, |stored| stored.revision)
    }

    /// Returns generations without a process that works on them.
    fn abandoned<'a>(
        &'a self,
        cluster: &'a Cluster,
        is_member: bool,
    ) -> impl Iterator<Item = (Row, &'a GenerationRecord)> {
        self.rows.iter().zip(&self.generations).filter_map(move |(row, entry)| {
            let record = &entry.record;
            let worker = self.workers.get(&record.id).filter(|_| is_member);
            let is_at_work = worker.is_some_and(|node| cluster.has(*node));
            let is_abandoned = record.status == GenerationStatus::Working && !is_at_work;
            is_abandoned.then_some((*row, record))
        })
    }

    /// Returns all generations with their rows, newest first.
    pub(super) fn placed(&self) -> impl Iterator<Item = (Row, &GenerationEntry)> {
        let mut placed: Vec<_> = self.rows.iter().copied().zip(&self.generations).collect();
        placed.sort_by_key(|(row, _)| std::cmp::Reverse(*row));
        placed.into_iter()
    }

    /// Deletes ended generations among these rows; returns their ids.
    pub(super) fn drop_ended(&mut self, rows: &[Row]) -> Vec<String> {
        self.drop_where(|row, entry| rows.contains(&row) && entry.record.status.is_final())
    }

    fn drop_where(&mut self, is_dropped: impl Fn(Row, &GenerationEntry) -> bool) -> Vec<String> {
        let rows = std::mem::take(&mut self.rows).into_iter();
        let entries = std::mem::take(&mut self.generations).into_iter();
        let (dropped, kept): (Vec<_>, Vec<_>) =
            rows.zip(entries).partition(|(row, entry)| is_dropped(*row, entry));
        (self.rows, self.generations) = kept.into_iter().unzip();
        let dropped: Vec<_> = dropped.into_iter().map(|(_, entry)| entry.record.id).collect();
        self.continuations.retain(|id, _| !dropped.contains(id));
        dropped
    }

    /// Deletes the ended generations of a user, and removes the user from those of steps; returns the
    /// ids of the deleted ones.
    pub(super) fn forget_user(&mut self, user_id: &str) -> Vec<String> {
        let is_of_user = |entry: &GenerationEntry| entry.record.user_id.as_deref() == Some(user_id);
        let unfinished = self.generations.iter_mut().filter(|entry| is_of_user(entry));
        for GenerationEntry { record, .. } in unfinished {
            if record.origin.is_some() && !record.status.is_final() {
                (record.user_id, record.conversation_id) = (None, None);
            }
        }
        self.drop_where(|_, entry| is_of_user(entry) && entry.record.status.is_final())
    }
}

impl State {
    fn record_generation(&mut self, by: Option<NodeId>, write: GenerationWrite) {
        let asks = write.continuation.asks().to_vec();
        if !asks.is_empty() {
            let GenerationRecord { id, agent_id, user_id, origin, .. } = &write.record;
            let id: Arc<str> = Arc::from(id.as_str());
            let agent_id: Arc<str> = Arc::from(agent_id.as_str());
            let step = origin.as_ref().and_then(|origin| self.step_of(origin));
            let call = |ask: &NewAsk| {
                AskSubject::Call(AskedCall {
                    generation_id: Arc::clone(&id),
                    agent_id: Arc::clone(&agent_id),
                    tool_call_id: Arc::clone(&ask.place),
                    tool_name: ask.tool_name.clone().unwrap_or_default(),
                    step: step.clone(),
                })
            };
            let of = Owner::Generation(Arc::clone(&id));
            self.asks.change(&of, user_id.as_deref(), call, asks);
        }
        self.agents.record(by, write);
    }

    fn step_of(&self, origin: &StepOrigin) -> Option<AskedStep> {
        let StepOrigin { execution_id, path } = origin;
        let header = &self.executions.get(execution_id)?.projection.header;
        Some(AskedStep {
            execution_id: execution_id.clone(),
            workflow_id: Arc::clone(&header.workflow_id),
            path: Arc::clone(path),
        })
    }

    /// Removes the asks of deleted generations.
    pub(super) fn drop_asks_of(&mut self, generations: &[String]) {
        for id in generations {
            self.asks.drop_of(&Owner::Generation(Arc::from(id.as_str())));
        }
    }
}

impl Generations for MemoryStore {
    fn next_generation_row(&self) -> Option<Row> {
        self.faults.new_row(&self.disk.last_generation)
    }

    fn record_generation(
        &self,
        write: GenerationWrite,
    ) -> BoxFuture<'static, Result<(), AppendError>> {
        let recorded = self.written(|state| state.record_generation(self.own(), write));
        self.faults.acknowledged(recorded)
    }

    fn settle_generation(&self, revision: u64, write: GenerationWrite) -> Written<bool> {
        let settled = self.written(|state| {
            let is_newest = state.agents.revision_of(&write.record.id) == revision;
            if is_newest {
                state.record_generation(self.own(), write);
            }
            is_newest
        });
        self.faults.after_outage(settled)
    }

    fn continuation<'a>(&'a self, id: &'a str) -> Read<'a, Option<StoredContinuation>> {
        self.read(|state| state.agents.continuations.get(id).cloned())
    }

    fn unfinished_of_user<'a>(
        &'a self,
        user_id: &'a str,
        after: Option<&'a UserCursor>,
        limit: usize,
    ) -> Read<'a, Vec<(UserCursor, String)>> {
        self.read(|state| {
            let is_meant = |record: &GenerationRecord| {
                !record.status.is_final() && record.user_id.as_deref() == Some(user_id)
            };
            let all = state.agents.placed().map(|(row, entry)| (row, &entry.record));
            let unfinished = all.filter(|(_, record)| is_meant(record));
            let placed = unfinished.map(|(number, record)| {
                (UserCursor { agent_id: record.agent_id.clone(), number }, record.id.clone())
            });
            let mut found: Vec<_> =
                placed.filter(|(place, _)| after.is_none_or(|after| place > after)).collect();
            found.sort_unstable();
            found.truncate(limit);
            found
        })
    }

    fn suspended_in<'a>(&'a self, key: &'a ConversationKey) -> Read<'a, Vec<String>> {
        self.read(|state| {
            let all = state.agents.generations.iter().map(|entry| &entry.record);
            let found = all.filter(|record| {
                record.status == GenerationStatus::Suspended
                    && *record.agent_id == *key.agent_id
                    && record.user_id.as_deref() == key.user_id.as_deref()
                    && record.conversation_id.as_deref() == Some(&*key.conversation_id)
            });
            found.map(|record| record.id.clone()).collect()
        })
    }

    fn adopt_interrupted(&self, after: Row, limit: usize) -> Written<Vec<(Row, String)>> {
        let own = self.own();
        self.written(move |state| {
            let found = state.agents.abandoned(&state.cluster, own.is_some());
            let mut found: Vec<_> = found
                .filter(|(row, record)| {
                    *row > after && state.agents.continuations.contains_key(&record.id)
                })
                .map(|(row, record)| (row, record.id.clone()))
                .collect();
            found.sort();
            found.truncate(limit);
            if let Some(own) = own {
                let adopted = found.iter().map(|(_, id)| (id.clone(), own));
                state.agents.workers.extend(adopted);
            }
            found
        })
    }

    fn generation<'a>(&'a self, id: &'a str) -> Read<'a, Option<GenerationEntry>> {
        self.read(|state| {
            state.agents.generations.iter().find(|entry| entry.record.id == id).cloned()
        })
    }

    fn generations<'a>(
        &'a self,
        agent_id: &'a str,
        user_id: Option<&'a str>,
        offset: u64,
        size: PageSize,
    ) -> Read<'a, GenerationPage> {
        let matches = |entry: &&GenerationEntry| {
            entry.record.agent_id == agent_id
                && (user_id.is_none() || entry.record.user_id.as_deref() == user_id)
        };
        self.read_page(|state| {
            let all = state.agents.generations.iter().rev().filter(matches);
            let (page, total) = page_of(all.collect(), offset, size.records);
            let bytes = |it: &&GenerationEntry| json_bytes(&it.record) + json_bytes(&it.steps);
            let page = fitting(page, size, bytes)?;
            Ok(GenerationPage { entries: page.into_iter().cloned().collect(), total })
        })
    }

    fn interrupt_working(&self, now: Timestamp) -> BoxFuture<'static, Result<(), AppendError>> {
        let is_member = self.own().is_some();
        self.written(move |state| {
            let State { agents, cluster, .. } = state;
            let abandoned = agents.abandoned(cluster, is_member);
            let ended: HashSet<_> = abandoned
                .filter(|(_, record)| {
                    record.origin.is_none() && !agents.continuations.contains_key(&record.id)
                })
                .map(|(row, _)| row)
                .collect();
            for (row, GenerationEntry { record, .. }) in
                agents.rows.iter().zip(&mut agents.generations)
            {
                if ended.contains(row) {
                    record.status = GenerationStatus::Error;
                    record.end_time = Some(now);
                    record.error = Some("interrupted by a restart".to_owned());
                }
            }
        })
    }
}

/// Returns the records if they are a page of this size.
pub(super) fn fitting<T>(
    records: Vec<T>,
    size: PageSize,
    bytes: impl Fn(&T) -> usize,
) -> Result<Vec<T>, PageTooLarge> {
    let mut room = size.room();
    records.iter().try_for_each(|record| room.take(bytes(record)))?;
    Ok(records)
}

/// Returns the bytes of a value as JSON.
pub(super) fn json_bytes(value: &impl Serialize) -> usize {
    serde_json::to_vec(value).map_or(0, |json| json.len())
}

/// Cuts a page out of a list; returns it with the length of the list.
pub(super) fn page_of<T>(all: Vec<T>, offset: u64, limit: usize) -> (Vec<T>, u64) {
    let total = all.len() as u64;
    let offset = usize::try_from(offset).unwrap_or(usize::MAX);
    (all.into_iter().skip(offset).take(limit).collect(), total)
}
