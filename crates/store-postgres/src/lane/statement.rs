//! The statement that commits a batch.
//!
//! It is one transaction in one round trip: it moves the lane's row to the next batch (the fence),
//! and writes the rows of a [`Folded`] batch, one array per column. Without the fence nothing is
//! written. It fails by a division by zero, and so as a whole, if a key is taken or an execution is
//! not at the expected revision.
//!
//! Rows to change are found by `= ANY (ARRAY[…])` in place of `=`: a lane keeps its plans, and a
//! plan that was made over small tables could begin with the table and read all of it. For such a
//! condition there is none.

use greenroom_actors::domain::slot::slot_of;
use greenroom_store_codec::codes::status_code;
use greenroom_store_codec::keys::timer_key_text;
use greenroom_store_codec::numbers::signed;

use super::fold::{Folded, Folding, Shape};
use super::parameters::{Parameters, code};
use super::session::Fence;
use crate::text::Text;

macro_rules! fence {
    () => {
        "WITH fence AS (
            UPDATE lanes SET batch = $1::bigint
            WHERE node = $2::bigint AND lane = $3::smallint AND session = $4 AND batch = $1::bigint - 1
            RETURNING 1),
        "
    };
}

macro_rules! created {
    () => {
        "created AS (
            INSERT INTO executions (n, created, updated, ended, last_seq, revision, status, slot,
                joined, id, workflow, definition, user_id, conversation, parent, parent_path, trace,
                parent_span, root_workflow, replayed_from, replayed_step, around, suspension, error,
                events, has_asks)
            SELECT u.*, (NOT EXISTS (SELECT FROM nodes WHERE state < 2 AND schema < 4))::int
            FROM unnest($5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[],
                $9::bigint[], $10::bigint[], $11::smallint[], $12::smallint[], $13::smallint[],
                $14::text[], $15::text[], $16::text[], $17::text[], $18::text[], $19::text[],
                $20::text[], $21::text[], $22::text[], $23::text[], $24::text[], $25::text[],
                $26::bytea[], $27::bytea[], $28::bytea[], $29::bytea[]) AS u
            WHERE EXISTS (SELECT FROM fence)),
        "
    };
}

/// Commits a batch of creations alone, which most batches are.
pub(crate) const CREATIONS: &str = concat!(
    fence!(),
    created!(),
    "counted AS (
        INSERT INTO execution_counts AS c (workflow, status, node, lane, count)
        SELECT workflow, status, $2, $3, by
        FROM unnest($30::text[], $31::smallint[], $32::int[]) AS u (workflow, status, by)
        WHERE EXISTS (SELECT FROM fence)
        ON CONFLICT (workflow, status, node, lane) DO UPDATE SET count = c.count + excluded.count)
    SELECT count(*) FROM fence"
);

/// Moves executions, and counts those that were created or moved.
macro_rules! moved {
    () => {
        "was AS (
            SELECT e.workflow, e.status FROM unnest($33::bigint[], $34::bigint[]) AS u (n, expected)
            JOIN executions e ON e.n = ANY (ARRAY[u.n]) AND e.revision = u.expected),
        moved AS (
            UPDATE executions e SET revision = u.revision, status = u.status, updated = u.updated,
                ended = u.ended, last_seq = u.last_seq, suspension = u.suspension, error = u.error
            FROM unnest($33, $34, $35::bigint[], $36::smallint[], $37::bigint[], $38::bigint[],
                $39::bigint[], $40::bytea[], $41::bytea[])
                AS u (n, expected, revision, status, updated, ended, last_seq, suspension, error)
            WHERE e.n = ANY (ARRAY[u.n]) AND e.revision = u.expected AND EXISTS (SELECT FROM fence)
            RETURNING 1),
        counted AS (
            INSERT INTO execution_counts AS c (workflow, status, node, lane, count)
            SELECT workflow, status, $2, $3, sum(by) FROM (
                SELECT * FROM unnest($30::text[], $31::smallint[], $32::int[])
                    AS u (workflow, status, by)
                UNION ALL SELECT workflow, status, -1 FROM was) AS changed
            WHERE EXISTS (SELECT FROM fence)
            GROUP BY workflow, status HAVING sum(by) <> 0
            ON CONFLICT (workflow, status, node, lane)
                DO UPDATE SET count = c.count + excluded.count),
        put AS (
            INSERT INTO chunks (execution, last, revision, events)
            SELECT * FROM unnest($42::bigint[], $43::bigint[], $44::bigint[], $45::bytea[])
            WHERE EXISTS (SELECT FROM fence)),
        "
    };
}

/// Deletes the timers of the nodes of executions that end.
macro_rules! dropped {
    () => {
        "dropped AS (
            DELETE FROM timers t
            WHERE t.execution = ANY ($46::text[]) AND t.key >= 'node:' AND t.key < 'node;'
                AND EXISTS (SELECT FROM fence))
        "
    };
}

/// Commits a batch without keys, snapshots, changed timers and users. What a statement could do, but
/// does not, takes up to a seventh of its time.
pub(crate) const PROGRESS: &str = concat!(
    fence!(),
    created!(),
    moved!(),
    dropped!(),
    "SELECT (SELECT count(*) FROM fence), 1 / CASE
        WHEN NOT EXISTS (SELECT FROM fence)
            OR (SELECT count(*) FROM moved) = cardinality($33)
        THEN 1 ELSE 0 END"
);

/// Commits any batch.
///
/// `noted` comes after `moved`, which may wait until a user is removed from facts of the execution
/// and from the index: PostgreSQL runs the parts that the query at the end does not read after it.
/// `closed` names no state: a plan that was made over an empty table could read all open asks.
pub(crate) const EVERYTHING: &str = concat!(
    fence!(),
    "keyed AS (
        INSERT INTO idempotency AS k (scope, body_hash, execution, after_seq, expires)
        SELECT * FROM unnest($47::text[], $48::text[], $49::text[], $50::bigint[], $51::bigint[])
        WHERE EXISTS (SELECT FROM fence)
        ON CONFLICT (scope) DO UPDATE SET body_hash = excluded.body_hash,
            execution = excluded.execution, after_seq = excluded.after_seq,
            expires = excluded.expires
        WHERE k.expires <= $52 RETURNING 1),
    ",
    created!(),
    moved!(),
    "kept AS (
        INSERT INTO snapshots (execution, last_seq, last, revision, state)
        SELECT * FROM unnest($53::bigint[], $54::bigint[], $55::bigint[], $56::bigint[],
            $57::bytea[])
        WHERE EXISTS (SELECT FROM fence)
        UNION ALL
        SELECT e.n, e.last_seq, coalesce((SELECT last FROM chunks WHERE execution = e.n
                ORDER BY last DESC, revision DESC LIMIT 1), 0), e.revision, u.state
        FROM unnest($58::bigint[], $59::bigint[], $60::bytea[]) AS u (n, revision, state)
        JOIN executions e ON e.n = ANY (ARRAY[u.n]) AND e.revision = u.revision
        WHERE EXISTS (SELECT FROM fence)
        ON CONFLICT (execution) DO UPDATE SET last_seq = excluded.last_seq, last = excluded.last,
            revision = excluded.revision, state = excluded.state),
    armed AS (
        INSERT INTO timers (execution, key, slot, due)
        SELECT * FROM unnest($61::text[], $62::text[], $63::smallint[], $64::bigint[])
        WHERE EXISTS (SELECT FROM fence)
        ON CONFLICT (execution, key) DO UPDATE SET due = excluded.due),
    disarmed AS (
        DELETE FROM timers t USING unnest($65::text[], $66::text[]) AS u (execution, key)
        WHERE t.execution = ANY (ARRAY[u.execution]) AND t.key = ANY (ARRAY[u.key])
            AND EXISTS (SELECT FROM fence)),
    noted AS (
        INSERT INTO acted (user_id, execution) SELECT * FROM unnest($67::text[], $68::bigint[])
        WHERE EXISTS (SELECT FROM fence) ON CONFLICT DO NOTHING),
    opened AS (
        INSERT INTO asks (id, opened, due, closed, kind, state, path, user_id, reason, rules,
            next_due, details, answer, answered_by, execution, workflow)
        SELECT * FROM unnest($69::text[], $70::bigint[], $71::bigint[], $72::bigint[],
            $73::smallint[], $74::smallint[], $75::text[], $76::text[], $77::text[], $78::text[],
            $79::bigint[], $80::text[], $81::text[], $82::text[], $83::bigint[], $84::text[])
        WHERE EXISTS (SELECT FROM fence) ON CONFLICT (id) DO NOTHING),
    closed AS (
        UPDATE asks a SET state = u.state, closed = u.closed, answer = u.answer,
            answered_by = u.answered_by
        FROM unnest($85::text[], $86::smallint[], $87::bigint[], $88::text[], $89::text[])
            AS u (id, state, closed, answer, answered_by)
        WHERE a.id = ANY (ARRAY[u.id]) AND a.closed IS NULL AND EXISTS (SELECT FROM fence)),
    ",
    dropped!(),
    "SELECT (SELECT count(*) FROM fence), 1 / CASE
        WHEN NOT EXISTS (SELECT FROM fence)
            OR ((SELECT count(*) FROM keyed) = cardinality($47)
                AND (SELECT count(*) FROM moved) = cardinality($33))
        THEN 1 ELSE 0 END"
);

/// Finds the reason why an append alone does not fit: is its key taken, is its id in use?
pub(crate) const REASON: &str = "SELECT
    EXISTS (SELECT FROM idempotency WHERE scope = $1 AND coalesce(expires, 0) > $2),
    EXISTS (SELECT FROM executions WHERE id = $3)";

/// Returns the parameters of the statement for a batch of this shape.
pub(super) fn parameters<'b>(folded: &Folded<'b>, shape: Shape, fence: Fence) -> Parameters<'b> {
    let mut parameters = Parameters::of(fence);
    let (created, moved): (Vec<_>, Vec<_>) =
        folded.executions.values().partition(|it| it.creates());
    parameters.create(&created);
    parameters.count(folded);
    if shape >= Shape::Progress {
        parameters.move_on(&moved);
        parameters.put_chunks(folded);
        parameters.drop_timers(folded);
    }
    if shape >= Shape::Everything {
        parameters.take_keys(folded);
        parameters.keep_snapshots(folded);
        parameters.change_timers(folded);
        let users: Vec<_> = folded.users.iter().collect();
        parameters.column(&users, |it| Text(it.0));
        parameters.column(&users, |it| it.1);
        parameters.change_asks(folded);
    }
    parameters
}

impl<'b> Parameters<'b> {
    fn create(&mut self, created: &[&Folding<'b>]) {
        self.column(created, |it| it.row());
        self.column(created, |it| it.header().created_at.0);
        self.column(created, |it| it.projection().updated_at.0);
        self.column(created, |it| it.projection().ended_at.map(|at| at.0));
        self.column(created, |it| signed(it.projection().last_seq));
        self.column(created, |it| signed(it.last().append.revision));
        self.column(created, |it| code(status_code(it.projection().status)));
        self.column(created, |it| code(slot_of(&it.header().id).number().into()));
        self.column(created, |it| it.first().trace.joined.map(code));
        self.column(created, |it| Text(it.header().id.as_str()));
        self.column(created, |it| Text(&*it.header().workflow_id));
        self.column(created, |it| Text(&*it.header().definition_hash));
        self.column(created, |it| it.header().user_id.as_deref().map(Text));
        self.column(created, |it| it.header().conversation_id.as_deref().map(Text));
        self.column(created, |it| {
            it.header().parent.as_ref().map(|it| Text(it.execution.as_str()))
        });
        self.column(created, |it| it.header().parent.as_ref().map(|it| Text(&*it.path)));
        self.column(created, |it| Text(&*it.header().trace.id));
        self.column(created, |it| it.header().trace.parent_span.map(|id| id.to_string()));
        self.column(created, |it| Text(&*it.header().trace.root_id));
        let replayed = |it: &&Folding<'b>| it.projection().replayed_from.as_ref();
        self.column(created, |it| replayed(it).map(|from| Text(from.execution.as_str())));
        self.column(created, |it| replayed(it).map(|from| Text(&*from.step_id)));
        self.column(created, |it| it.first().trace.around.as_deref());
        self.column(created, |it| it.last().suspension.as_deref());
        self.column(created, |it| it.last().error.as_deref());
        self.column(created, |it| it.facts_of_row());
    }

    fn count(&mut self, folded: &Folded<'b>) {
        let counted: Vec<_> = folded.counted().into_iter().collect();
        self.column(&counted, |((workflow, _), _)| Text(*workflow));
        self.column(&counted, |((_, status), _)| code(*status));
        self.column(&counted, |(_, by)| *by);
    }

    fn take_keys(&mut self, folded: &Folded<'b>) {
        let keys: Vec<_> = folded.keys.values().copied().collect();
        self.column(&keys, |it| Text(&*it.scope));
        self.column(&keys, |it| Text(&*it.body_hash));
        self.column(&keys, |it| Text(it.execution.as_str()));
        self.column(&keys, |it| signed(it.after_seq));
        self.column(&keys, |it| it.expires_at.0);
        self.add(folded.keys_at.map_or(0, |at| at.0));
    }

    fn move_on(&mut self, moved: &[&Folding<'b>]) {
        self.column(moved, |it| it.row());
        self.column(moved, |it| signed(it.first().append.revision) - 1);
        self.column(moved, |it| signed(it.last().append.revision));
        self.column(moved, |it| code(status_code(it.projection().status)));
        self.column(moved, |it| it.projection().updated_at.0);
        self.column(moved, |it| it.projection().ended_at.map(|at| at.0));
        self.column(moved, |it| signed(it.projection().last_seq));
        self.column(moved, |it| it.last().suspension.as_deref());
        self.column(moved, |it| it.last().error.as_deref());
    }

    fn put_chunks(&mut self, folded: &Folded<'b>) {
        let chunks: Vec<_> = folded.executions.values().flat_map(Folding::chunks).collect();
        self.column(&chunks, |it| it.append.row);
        self.column(&chunks, |it| it.last());
        self.column(&chunks, |it| signed(it.append.revision));
        self.column(&chunks, |it| &*it.events);
    }

    fn keep_snapshots(&mut self, folded: &Folded<'b>) {
        let kept: Vec<_> = folded.executions.values().filter_map(|it| it.snapshot).collect();
        self.column(&kept, |(after, _)| after.append.row);
        self.column(&kept, |(after, _)| signed(after.append.projection.last_seq));
        self.column(&kept, |(after, _)| after.last());
        self.column(&kept, |(after, _)| signed(after.append.revision));
        self.column(&kept, |(_, state)| *state);
        let unloaded: Vec<_> = folded.unloaded.values().copied().collect();
        self.column(&unloaded, |it| it.row);
        self.column(&unloaded, |it| signed(it.revision));
        self.column(&unloaded, |it| &*it.state);
    }

    fn change_timers(&mut self, folded: &Folded<'b>) {
        let (mut armed, mut disarmed) = (Vec::new(), Vec::new());
        for (execution, changes) in &folded.timers {
            for (key, due) in changes {
                match due {
                    Some(due) => armed.push((*execution, *key, due.0)),
                    None => disarmed.push((*execution, *key)),
                }
            }
        }
        self.column(&armed, |(execution, ..)| Text(execution.as_str()));
        self.column(&armed, |(_, key, _)| Text(timer_key_text(key)));
        self.column(&armed, |(execution, ..)| code(slot_of(execution).number().into()));
        self.column(&armed, |(.., due)| *due);
        self.column(&disarmed, |(execution, _)| Text(execution.as_str()));
        self.column(&disarmed, |(_, key)| Text(timer_key_text(key)));
    }

    fn change_asks(&mut self, folded: &Folded<'b>) {
        let opened = folded.asks.opened_by_executions();
        let asks: Vec<_> = opened.iter().map(|(ask, ..)| *ask).collect();
        self.open_asks(&asks);
        self.column(&opened, |(_, row, _)| *row);
        self.column(&opened, |(.., header)| Text(&*header.workflow_id));
        self.close_asks(&folded.asks);
    }

    fn drop_timers(&mut self, folded: &Folded<'b>) {
        let ended: Vec<_> = folded.ended.iter().collect();
        self.column(&ended, |it| Text(it.as_str()));
    }
}
