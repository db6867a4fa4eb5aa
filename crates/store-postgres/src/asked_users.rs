//! Removal of a user from asks.

use greenroom_actors::ports::store::Row;
use greenroom_store_codec::columns::Columns as _;
use greenroom_store_codec::numbers::limit_of;
use greenroom_store_codec::users::{answer_without, rules_without};

use crate::changes::{Changing, PART, Part};
use crate::pool::{Failure, Pool};
use crate::text::Text;

/// Ends up to `$2` claims of a user. The range of the two columns has the same rows as an equality,
/// but only one index has its order.
pub(crate) const END_CLAIMS: &str = "UPDATE asks
    SET revision = revision + 1, claimed_by = NULL, claimed_until = NULL
    WHERE n = ANY (ARRAY(
        SELECT n FROM asks WHERE claimed_by <= $1 AND (claimed_by, n) > ($1, 0)
        ORDER BY claimed_by, n LIMIT $2 FOR UPDATE))";

/// Finds answers of a user behind a row, in the order of an index as well.
pub(crate) const ANSWERED: &str = "SELECT n, id, answer FROM asks
    WHERE answered_by <= $1 AND (answered_by, n) > ($1, $2) ORDER BY answered_by, n LIMIT $3";

pub(crate) const STRIKE: &str = "UPDATE asks SET answer = u.answer, answered_by = NULL
    FROM unnest($1::bigint[], $2::text[]) AS u (n, answer) WHERE asks.n = ANY (ARRAY[u.n])";

/// Finds rules behind a row.
pub(crate) const ASSIGNED: &str =
    "SELECT n, id, rules FROM asks WHERE rules IS NOT NULL AND n > $1 ORDER BY n LIMIT $2";

/// Replaces rules, unless they were changed meanwhile.
pub(crate) const REASSIGN: &str = "UPDATE asks
    SET rules = u.rules, revision = revision + 1
    FROM unnest($1::bigint[], $2::text[], $3::text[]) AS u (n, old, rules)
    WHERE asks.n = ANY (ARRAY[u.n]) AND asks.rules = u.old";

/// Ends claims of a user and removes the user from answers and assignments, in parts.
pub(crate) async fn forget(pool: &Pool, user: &str) -> Result<(), Failure> {
    let end_claims = async |changing: Changing| {
        let changed = changing.execute(END_CLAIMS, &[&Text(user), &limit_of(PART)]).await?;
        Ok(Part { changed, is_last: changed < PART as u64 })
    };
    pool.change_in_parts(end_claims).await?;
    let mut after = Row::MIN;
    while let Some(last) = strike_answers(pool, user, after).await? {
        after = last;
    }
    after = Row::MIN;
    while let Some(last) = strike_assignments(pool, user, after).await? {
        after = last;
    }
    Ok(())
}

/// Removes a user from assignments behind a row; returns the row of the last one. Damaged rules are
/// reported and stay.
async fn strike_assignments(pool: &Pool, user: &str, after: Row) -> Result<Option<Row>, Failure> {
    let find = async |changing: Changing| changing.rows(ASSIGNED, &[&after, &limit_of(PART)]).await;
    let (mut rows, mut before, mut struck, mut last) = (Vec::new(), Vec::new(), Vec::new(), None);
    for row in &pool.change(find).await? {
        let n: Row = row.integer(0)?;
        last = Some(n);
        let rules = row.text(2)?;
        let read = rules_without(&rules, user).map_err(Failure::from);
        if let Some(left) = pool.defects().readable(|| row.named("ask", 1), read)?.flatten() {
            rows.push(n);
            before.push(Text(rules.into_owned()));
            struck.push(Text(left));
        }
    }
    if rows.is_empty() {
        return Ok(last);
    }
    let put =
        async |changing: Changing| changing.execute(REASSIGN, &[&rows, &before, &struck]).await;
    let changed = pool.change(put).await?;
    // others are read once more
    Ok(if changed < rows.len() as u64 { Some(after) } else { last })
}

/// Removes a user from answers behind a row; returns the row of the last one. Damaged answers are
/// reported and stay.
async fn strike_answers(pool: &Pool, user: &str, after: Row) -> Result<Option<Row>, Failure> {
    let find = async |changing: Changing| {
        changing.rows(ANSWERED, &[&Text(user), &after, &limit_of(PART)]).await
    };
    let found = pool.change(find).await?;
    let (mut rows, mut answers, mut last) = (Vec::new(), Vec::new(), None);
    for row in &found {
        let n: Row = row.integer(0)?;
        last = Some(n);
        let answer = row.optional_text(2)?.unwrap_or_default();
        let struck = answer_without(&answer, user).map_err(Failure::from);
        if let Some(answer) = pool.defects().readable(|| row.named("ask", 1), struck)?.flatten() {
            rows.push(n);
            answers.push(Text(answer));
        }
    }
    if !rows.is_empty() {
        let strike = async |changing: Changing| changing.execute(STRIKE, &[&rows, &answers]).await;
        pool.change(strike).await?;
    }
    Ok(last)
}
