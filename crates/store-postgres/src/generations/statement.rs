//! The statement that commits a batch of generations, and its parameters.
//!
//! It is one transaction in one round trip. Generations whose id is not known yet get the next
//! numbers of their agent, whose row is locked until the commit, so that the numbers have no gap
//! although many servers write. Agents are locked in the order of their names. Known generations
//! are locked when they are looked up: one that was deleted in the meantime is not known, and
//! begins anew.
//!
//! Rows to change are found by `= ANY (ARRAY[…])` and by subqueries: a lane keeps its plans, and
//! a join that was planned over small tables could read the whole table first. It still could if
//! another condition compared two columns, as `NOT EXISTS` in place of `<> ALL` would.

use greenroom_store_codec::codes::generation_code;
use greenroom_store_codec::prepared::PreparedGeneration;

use crate::lane::parameters::{Parameters, code};
use crate::lane::session::Fence;
use crate::text::Text;

/// Commits generations with their turns. `$24` to `$26` are the turns that get their own rows, by
/// the place of their generation in the batch.
pub(crate) const STORE: &str = "WITH fence AS (
        UPDATE lanes SET batch = $1
        WHERE node = $2 AND lane = $3 AND session = $4 AND batch = $1::bigint - 1
        RETURNING 1),
    u AS MATERIALIZED (
        SELECT u.*, (SELECT n FROM generations WHERE id = u.id FOR UPDATE) AS known
        FROM fence CROSS JOIN unnest($5::bigint[], $6::text[], $7::text[], $8::smallint[],
            $9::bigint[], $10::bigint[], $11::smallint[], $12::text[], $13::text[], $14::text[],
            $15::text[], $16::text[], $17::text[], $18::bytea[], $19::bytea[], $20::bytea[],
            $21::bytea[], $22::bytea[], $23::boolean[]) WITH ORDINALITY
            AS u (n, id, agent, status, started, ended, joined, user_id, conversation, execution,
                path, trace, error, around, usage, input, output, steps, restarts, item)),
    turns AS MATERIALIZED (
        SELECT (SELECT array_agg(coalesce(known, n) ORDER BY item) FROM u)[item] AS generation,
            number, body
        FROM fence CROSS JOIN unnest($24::int[], $25::int[], $26::bytea[])
            AS t (item, number, body)),
    counted AS (
        INSERT INTO agents AS a (agent, last)
        SELECT agent, count(*) FROM u WHERE known IS NULL GROUP BY agent ORDER BY agent
        ON CONFLICT (agent) DO UPDATE SET last = a.last + excluded.last RETURNING agent, last),
    made AS (
        INSERT INTO generations (n, number, started, ended, node, status, joined, id, agent,
            user_id, conversation, execution, path, trace, error, around, usage, input, output,
            steps)
        SELECT n, last + 1 - row_number() OVER (PARTITION BY agent ORDER BY item DESC), started,
            ended, $2, status, joined, id, agent, user_id, conversation, execution, path, trace,
            error, around, usage, input, output, steps
        FROM u JOIN counted USING (agent) WHERE known IS NULL),
    changed AS (
        UPDATE generations g SET started = u.started, ended = u.ended, node = $2,
            status = u.status, joined = u.joined, user_id = u.user_id,
            conversation = u.conversation, execution = u.execution, path = u.path,
            trace = u.trace, error = u.error, around = u.around, usage = u.usage,
            input = u.input, output = u.output,
            steps = CASE WHEN u.restarts THEN u.steps ELSE g.steps END
        FROM u WHERE g.n = ANY (ARRAY[u.known])),
    dropped AS (
        DELETE FROM steps s USING u WHERE u.restarts AND s.generation = ANY (ARRAY[u.known])
            AND s.number <> ALL (ARRAY(
                SELECT t.number FROM turns t WHERE t.generation = s.generation))),
    put AS (
        INSERT INTO steps (generation, number, body) SELECT generation, number, body FROM turns
        ON CONFLICT (generation, number) DO UPDATE SET body = excluded.body)
    SELECT count(*) FROM fence";

/// Returns the parameters of [`STORE`]. No two generations have the same id.
pub(super) fn parameters<'b>(rows: &[&'b PreparedGeneration], fence: Fence) -> Parameters<'b> {
    let mut all = Parameters::of(fence);
    all.column(rows, |it| it.row);
    all.column(rows, |it| Text(&*it.record.id));
    all.column(rows, |it| Text(&*it.record.agent_id));
    all.column(rows, |it| code(generation_code(it.record.status)));
    all.column(rows, |it| it.record.start_time.0);
    all.column(rows, |it| it.record.end_time.map(|time| time.0));
    all.column(rows, |it| it.trace.joined.map(code));
    all.column(rows, |it| it.record.user_id.as_deref().map(Text));
    all.column(rows, |it| it.record.conversation_id.as_deref().map(Text));
    let origin = |it: &&'b PreparedGeneration| it.record.origin.as_ref();
    all.column(rows, |it| origin(it).map(|origin| Text(origin.execution_id.as_str())));
    all.column(rows, |it| origin(it).map(|origin| Text(&*origin.path)));
    all.column(rows, |it| it.trace_name().map(Text));
    all.column(rows, |it| it.record.error.as_deref().map(Text));
    all.column(rows, |it| it.trace.around.as_deref());
    all.column(rows, |it| it.usage.as_deref());
    all.column(rows, |it| &*it.input);
    all.column(rows, |it| it.output.as_deref());
    all.column(rows, |it| it.inline_steps());
    all.column(rows, |it| it.steps.replace_all());
    let turns: Vec<_> = (1..).zip(rows).flat_map(turns_of).collect();
    all.column(&turns, |(item, ..)| *item);
    all.column(&turns, |(_, number, _)| *number);
    all.column(&turns, |(.., body)| *body);
    all
}

/// Returns the turns that get their own rows, with the place of their generation.
fn turns_of<'b>(
    (item, row): (i32, &&'b PreparedGeneration),
) -> impl Iterator<Item = (i32, i32, &'b [u8])> + use<'b> {
    let own_rows = row.inline_steps().is_none();
    let numbered = |number: u32| i32::try_from(number).unwrap_or(i32::MAX);
    let turns = own_rows.then(|| row.steps.iter()).into_iter().flatten();
    turns.map(move |(number, body)| (item, numbered(number), body))
}
