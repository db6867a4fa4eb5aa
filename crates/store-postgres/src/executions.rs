//! Reads of executions, and definitions.

use greenroom_actors::domain::fact::Recorded;
use greenroom_actors::domain::ids::ExecutionId;
use greenroom_actors::domain::slot::SlotSet;
use greenroom_actors::domain::time::Timestamp;
use greenroom_actors::ports::store::{
    CountsOfUser, Cursor, Definitions, EndRange, ExecutionCount, ExecutionEnd, ExecutionFilter,
    ExecutionStart, Executions, FactCursor, IdempotencyRecord, Portion, Projection, Read, Row,
    StartRange, StoredExecution, Timer,
};
use greenroom_store_codec::definitions;
use serde_json::Value;

use crate::store::PostgresStore;
use crate::{counts, list, pieces, portions, reader};

/// Returns the name of the record of an execution, for errors.
fn record_of(id: &ExecutionId) -> String {
    format!("execution {id}")
}

impl Executions for PostgresStore {
    fn load<'a>(&'a self, id: &'a ExecutionId) -> Read<'a, Option<StoredExecution>> {
        self.shared.pool.read(|| record_of(id), |it| reader::load(it, id))
    }

    fn describe<'a>(&'a self, id: &'a ExecutionId) -> Read<'a, Option<Projection>> {
        self.shared.pool.read(|| record_of(id), |it| reader::describe(it, id))
    }

    fn facts<'a>(
        &'a self,
        id: &'a ExecutionId,
        after: u64,
        limit: usize,
    ) -> Read<'a, Vec<Recorded>> {
        let query = move |it| pieces::facts(it, id, after, limit);
        self.shared.pool.read(|| record_of(id), query)
    }

    fn portion<'a>(
        &'a self,
        id: &'a ExecutionId,
        from: FactCursor,
        bytes: usize,
    ) -> Read<'a, Portion> {
        let query = move |it| portions::portion(it, id, from, bytes);
        self.shared.pool.read(|| record_of(id), query)
    }

    fn list<'a>(
        &'a self,
        filter: &'a ExecutionFilter,
        after: Option<Cursor>,
        limit: usize,
    ) -> Read<'a, (Vec<Projection>, Option<Cursor>)> {
        let record = || "the list of executions".to_owned();
        if filter.is_of_ends() {
            let query = move |it| list::list_of_ends(it, filter, after, limit);
            return self.shared.pool.read(record, query);
        }
        self.shared.pool.read(record, move |it| list::list(it, filter, after, limit))
    }

    fn counts(&self) -> Read<'_, Vec<ExecutionCount>> {
        self.shared.pool.read(|| "the counts".to_owned(), counts::all)
    }

    fn counts_of_user<'a>(&'a self, user_id: &'a str, limit: usize) -> Read<'a, CountsOfUser> {
        let record = || "the counts of a user".to_owned();
        self.shared.pool.read(record, move |it| counts::of_user(it, user_id, limit))
    }

    fn ends<'a>(&'a self, range: &'a EndRange, limit: usize) -> Read<'a, Vec<ExecutionEnd>> {
        let record = || "the ends of executions".to_owned();
        self.shared.pool.read(record, move |it| list::ends(it, range, limit))
    }

    fn starts<'a>(&'a self, range: &'a StartRange, limit: usize) -> Read<'a, Vec<ExecutionStart>> {
        let record = || "the starts of executions".to_owned();
        self.shared.pool.read(record, move |it| list::starts(it, range, limit))
    }

    fn running<'a>(
        &'a self,
        slots: &'a SlotSet,
        after: Row,
        limit: usize,
    ) -> Read<'a, Vec<(Row, ExecutionId)>> {
        let record = || "the running executions".to_owned();
        self.shared.pool.read(record, move |it| reader::running(it, slots, after, limit))
    }

    fn timers_due<'a>(
        &'a self,
        slots: &'a SlotSet,
        until: Timestamp,
        limit: usize,
    ) -> Read<'a, Vec<Timer>> {
        let query = move |it| reader::timers_due(it, slots, until, limit);
        self.shared.pool.read(|| "the timers".to_owned(), query)
    }

    fn timers_of<'a>(&'a self, id: &'a ExecutionId) -> Read<'a, Vec<Timer>> {
        self.shared.pool.read(|| record_of(id), |it| reader::timers_of(it, id))
    }

    fn idempotency<'a>(
        &'a self,
        scope: &'a str,
        now: Timestamp,
    ) -> Read<'a, Option<IdempotencyRecord>> {
        let record = || "an idempotency key".to_owned();
        self.shared.pool.read(record, move |it| reader::idempotency(it, scope, now))
    }
}

impl Definitions for PostgresStore {
    fn put_definition<'a>(&'a self, hash: &'a str, definition: &'a Value) -> Read<'a, ()> {
        let put = async move |body: Vec<u8>| {
            self.shared.pool.change(|it| reader::put_definition(it, hash, &body)).await
        };
        Box::pin(definitions::put(self.definition(hash), definition, put))
    }

    fn definition<'a>(&'a self, hash: &'a str) -> Read<'a, Option<Value>> {
        let record = move || format!("definition {hash}");
        self.shared.pool.read(record, move |it| reader::definition(it, hash))
    }
}
