//! The tables, as the statement of a lane changes them.

use greenroom_actors::ports::store::{AskSubject, AskedStep, read_stored};

use super::*;
use crate::lane::asks::OpenedAsk;

#[derive(Default)]
pub(super) struct Tables {
    executions: BTreeMap<Row, Execution>,
    /// By execution, last number and revision.
    chunks: BTreeMap<(Row, i64, u64), Vec<Recorded>>,
    snapshots: BTreeMap<Row, Kept>,
    pub(super) timers: BTreeMap<(ExecutionId, TimerKey), Timestamp>,
    pub(super) keys: BTreeMap<String, IdempotencyRecord>,
    counts: BTreeMap<(String, i64), i32>,
    pub(super) users: BTreeSet<(String, Row)>,
    pub(super) asks: BTreeMap<String, Ask>,
}

struct Execution {
    revision: u64,
    projection: Projection,
    facts: Option<Vec<Recorded>>,
}

#[derive(Clone)]
struct Kept {
    last_seq: u64,
    last: i64,
    revision: u64,
    state: Vec<u8>,
}

/// A stored execution: row, revision, projection, snapshot, facts after it, and all facts.
type Loaded = (Row, u64, Projection, Option<(u64, Vec<u8>)>, Vec<Recorded>, Vec<Recorded>);

fn facts_of(events: &[u8]) -> Vec<Recorded> {
    read_stored(events).unwrap()
}

impl Tables {
    /// Commits requests as a lane does; returns the results of appends.
    pub(super) fn commit(&mut self, jobs: Vec<Job>) -> Vec<Result<(), AppendError>> {
        let mut results = Vec::new();
        let mut parts = vec![jobs];
        while let Some(mut jobs) = parts.pop() {
            let (folded, count) = Folded::of(&jobs);
            let is_stored = self.write(&folded);
            drop(folded);
            let rest = jobs.split_off(count);
            if !rest.is_empty() {
                parts.push(rest);
            }
            if !is_stored && jobs.len() > 1 {
                parts.push(jobs.split_off(jobs.len() / 2));
                parts.push(jobs);
                continue;
            }
            for job in &jobs {
                if let Job::Append(prepared) = job {
                    let reason = || self.reason(&prepared.append);
                    results.push(if is_stored { Ok(()) } else { Err(reason()) });
                }
            }
        }
        results
    }

    /// Returns the reason why an append alone does not fit.
    fn reason(&self, append: &Append) -> AppendError {
        let is_known =
            |id: &ExecutionId| self.executions.values().any(|it| it.projection.header.id == *id);
        let is_taken = |record: &IdempotencyRecord| {
            let known = self.keys.get(&*record.scope);
            known.is_some_and(|known| known.expires_at > append.projection.updated_at)
        };
        if append.idempotency.as_ref().is_some_and(is_taken) {
            AppendError::KeyTaken
        } else if append.revision == 0 && is_known(&append.projection.header.id) {
            AppendError::Exists
        } else {
            AppendError::Stale
        }
    }

    /// Writes a batch; returns false, and changes nothing, if it does not fit.
    fn write(&mut self, folded: &Folded<'_>) -> bool {
        if !self.fits(folded) {
            return false;
        }
        // before the executions change: the statement sees them as they were
        for (row, snapshot) in &folded.unloaded {
            let is_kept = folded.executions.get(row).is_some_and(|it| it.snapshot.is_some());
            assert!(!is_kept, "a snapshot is written once");
            let stored = self.executions.get(row);
            if let Some(stored) = stored.filter(|it| it.revision == snapshot.revision) {
                let newest = self.chunks.range((*row, i64::MIN, 0)..(row + 1, i64::MIN, 0));
                let last = newest.last().map_or(0, |((_, last, _), _)| *last);
                let (last_seq, revision) = (stored.projection.last_seq, stored.revision);
                let state = snapshot.state.clone();
                self.snapshots.insert(*row, Kept { last_seq, last, revision, state });
            }
        }
        for ((workflow, status), by) in folded.counted() {
            *self.counts.entry((workflow.to_owned(), status)).or_default() += by;
        }
        for folding in folded.executions.values() {
            self.put(folding);
        }
        for (scope, record) in &folded.keys {
            self.keys.insert((*scope).to_owned(), (*record).clone());
        }
        self.change_timers(folded);
        let users = folded.users.iter().map(|(user, row)| ((*user).to_owned(), *row));
        self.users.extend(users);
        self.change_asks(folded);
        true
    }

    fn fits(&self, folded: &Folded<'_>) -> bool {
        let is_free = |(scope, _): (&&str, _)| {
            let at = folded.keys_at.expect("a key has a time");
            self.keys.get(*scope).is_none_or(|known| known.expires_at <= at)
        };
        let ids = self.executions.values().map(|it| it.projection.header.id.clone());
        let mut ids: BTreeSet<_> = ids.collect();
        let fits = |(row, folding): (&Row, &Folding<'_>)| {
            let (stored, first) = (self.executions.get(row), folding.first().append.revision);
            match stored {
                None => folding.creates() && ids.insert(folding.header().id.clone()),
                Some(stored) => stored.revision + 1 == first,
            }
        };
        let mut executions = folded.executions.iter();
        folded.keys.iter().all(is_free) && executions.all(fits)
    }

    fn put(&mut self, folding: &Folding<'_>) {
        let (row, projection) = (folding.row(), folding.projection().clone());
        let before = self.executions.get(&row);
        if let Some(before) = before {
            let header = &before.projection.header;
            let counted = (header.workflow_id.to_string(), status_code(before.projection.status));
            *self.counts.entry(counted).or_default() -= 1;
        }
        let facts = match before {
            Some(before) => before.facts.clone(),
            None => folding.facts_of_row().map(facts_of),
        };
        let revision = folding.last().append.revision;
        self.executions.insert(row, Execution { revision, projection, facts });
        for chunk in folding.chunks() {
            let place = (row, chunk.last(), chunk.append.revision);
            let known = self.chunks.insert(place, facts_of(&chunk.events));
            assert!(known.is_none(), "a chunk is inserted once");
        }
        if let Some((after, state)) = folding.snapshot {
            let (last_seq, last) = (after.append.projection.last_seq, after.last());
            let (revision, state) = (after.append.revision, state.to_vec());
            self.snapshots.insert(row, Kept { last_seq, last, revision, state });
        }
    }

    fn change_timers(&mut self, folded: &Folded<'_>) {
        self.timers
            .retain(|(execution, key), _| !(folded.ended.contains(execution) && is_of_node(key)));
        for (execution, changes) in &folded.timers {
            for (key, due) in changes {
                let is_deleted = folded.ended.contains(*execution) && is_of_node(key);
                assert!(!is_deleted, "a row is written once");
                let place = ((*execution).clone(), (*key).clone());
                match due {
                    Some(due) => self.timers.insert(place, *due),
                    None => self.timers.remove(&place),
                };
            }
        }
    }

    /// Closes asks that were stored before, and stores others.
    fn change_asks(&mut self, folded: &Folded<'_>) {
        for (id, change) in &folded.asks.0 {
            if let Some(stored) = self.asks.get_mut(*id) {
                if let Some(closing) = change.closed.filter(|_| stored.closed_at.is_none()) {
                    (stored.state, stored.closed_at) = (closing.state, Some(closing.at));
                }
            } else if let Some(OpenedAsk { prepared, of, closed }) = &change.opened {
                let Owner::Execution { header, .. } = of else { panic!("of an execution") };
                let ask = &prepared.ask;
                let ask = Ask {
                    id: Arc::clone(&ask.id),
                    kind: ask.kind,
                    state: closed.map_or(AskState::Open, |closing| closing.state),
                    subject: AskSubject::Step(AskedStep {
                        execution_id: header.id.clone(),
                        workflow_id: Arc::clone(&header.workflow_id),
                        path: Arc::clone(&ask.place),
                    }),
                    user_id: header.user_id.clone(),
                    reason: Arc::clone(&ask.reason),
                    opened_at: ask.opened_at,
                    deadline: ask.deadline,
                    closed_at: closed.map(|closing| closing.at),
                    revision: 0,
                    rules: ask.rules.clone(),
                    claim: None,
                };
                self.asks.insert((*id).to_owned(), ask);
            }
        }
    }

    /// Returns the counts without zeros.
    pub(super) fn counts(&self) -> BTreeMap<(String, i64), i32> {
        self.counts.clone().into_iter().filter(|(_, count)| *count != 0).collect()
    }

    /// Returns an execution as a reader does.
    pub(super) fn load(&self, id: &str) -> Option<Loaded> {
        let mut executions = self.executions.iter();
        let (row, stored) = executions.find(|(_, it)| it.projection.header.id.as_str() == id)?;
        let kept = self.snapshots.get(row);
        let (mut after, mut all) = (Vec::new(), Vec::new());
        let of_row = stored.facts.iter().flatten();
        all.extend(of_row.clone().cloned());
        if kept.is_none() {
            after.extend(of_row.cloned());
        }
        for ((of, last, revision), facts) in &self.chunks {
            if of != row {
                continue;
            }
            all.extend(facts.iter().cloned());
            if kept.is_none_or(|kept| (*last, *revision) > (kept.last, kept.revision)) {
                after.extend(facts.iter().cloned());
            }
        }
        let snapshot = kept.map(|kept| (kept.last_seq, kept.state.clone()));
        Some((*row, stored.revision, stored.projection.clone(), snapshot, after, all))
    }
}
