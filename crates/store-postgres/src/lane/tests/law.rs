//! Random requests, which a lane folds as it meets them: they leave the store as they leave the one
//! in memory.

use greenroom_actors::domain::slot::SlotSet;
use greenroom_actors::ports::store::{
    Ask, Asks, ExecutionCount, Executions, Read, StoredExecution, Timer,
};
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;

use super::*;
use crate::lane::fold::Job;
use crate::lane::fold::tests::{EXECUTIONS, OneByOne, SCOPES, asks_of, id, request};

/// A loaded execution: number, revision, projection, snapshot and facts.
type Content = (Row, u64, Projection, Option<(u64, Vec<u8>)>, Vec<Recorded>);

/// Everything that can be read of executions.
#[derive(Debug, PartialEq)]
struct Stored {
    executions: Vec<Option<Content>>,
    facts: Vec<Vec<Recorded>>,
    timers: Vec<Timer>,
    keys: Vec<Option<IdempotencyRecord>>,
    counts: Vec<ExecutionCount>,
    asks: Vec<Ask>,
    due: Vec<Ask>,
}

async fn read<T>(reading: Read<'_, T>) -> T {
    reading.await.unwrap()
}

impl Stored {
    async fn of(store: &(impl Executions + Asks)) -> Self {
        let (mut executions, mut facts, mut keys) = (Vec::new(), Vec::new(), Vec::new());
        for of in 0..EXECUTIONS {
            let loaded = read(store.load(&id(of))).await;
            executions.push(loaded.map(|it| {
                let StoredExecution { row, revision, projection, snapshot, facts } = it;
                (row, revision, projection, snapshot, facts)
            }));
            facts.push(read(store.facts(&id(of), 0, 10_000)).await);
        }
        for scope in SCOPES {
            keys.push(read(store.idempotency(scope, Timestamp(i64::MIN))).await);
        }
        let mut timers = read(store.timers_due(&SlotSet::all(), Timestamp(i64::MAX), 10_000)).await;
        timers.sort_by(|a, b| (&a.execution, &a.key).cmp(&(&b.execution, &b.key)));
        let mut counts = read(store.counts()).await;
        counts.sort_by_key(|it| (Arc::clone(&it.workflow_id), it.status.as_str()));
        let mut due = read(store.due_asks(Timestamp(i64::MAX), None, 1_000)).await.asks;
        due.sort_by(|a, b| a.id.cmp(&b.id));
        Self { executions, facts, timers, keys, counts, asks: asks_of(store).await, due }
    }
}

#[tokio::test]
async fn random_requests_leave_what_they_leave_in_memory() {
    let Some(mut lab) = Lab::open().await else { return };
    let (mut one_by_one, mut runner) = (OneByOne::new(), TestRunner::deterministic());
    for round in 0..32 {
        let length = [1, 5, 40, 160][round % 4];
        let requests = prop::collection::vec(request(), length);
        let requests = requests.new_tree(&mut runner).unwrap().current();
        for request in &requests {
            let queued = lab.store.lanes.queue(0, one_by_one.take(request));
            assert!(queued.is_ok());
        }
        let expected = one_by_one.results();
        let results = lab.outcomes(expected.len()).await;
        let results: Vec<_> = results.into_iter().map(|(.., result)| result).collect();
        assert_eq!(results, expected, "round {round}");
        // requests without an answer are made before this one is refused
        let refused = Acknowledgement {
            ticket: Ticket { shard: 0, key: 0 },
            upto: 0,
            result: Err(AppendError::Stale),
        };
        assert!(lab.store.lanes.queue(0, Job::Refuse(refused)).is_ok());
        assert!(lab.outcome().await.2.is_err());
        assert_eq!(Stored::of(&*lab.store).await, Stored::of(&one_by_one.store).await);
    }
}
