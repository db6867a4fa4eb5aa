//! Erasure of a user from all records.

use greenroom_store_codec::columns::Columns as _;
use greenroom_store_codec::keys::user_text;
use greenroom_store_codec::numbers::limit_of;

use crate::changes::{Changing, Part};
use crate::conversations::drop_some;
use crate::pool::{Failure, Pool};
use crate::text::Text;
use crate::{acted, asked_users, log_writes, retention};

/// Maximum number of conversations that a part locks.
const LOCKED_MAX: usize = 100;

pub(crate) const OF_OWNER: &str =
    "SELECT n, agent, id FROM conversations WHERE owner = $1 LIMIT $2";

/// Deletes a user's conversations, generations and log records, and removes the user from facts of
/// executions and from asks, in parts. Returns the number of conversations.
pub(crate) async fn forget_user(pool: &Pool, user: &str) -> Result<u64, Failure> {
    let conversations = forget_conversations(pool, user).await?;
    retention::forget_generations(pool, user).await?;
    log_writes::forget(pool, user).await?;
    acted::forget(pool, user).await?;
    asked_users::forget(pool, user).await?;
    Ok(conversations)
}

async fn forget_conversations(pool: &Pool, user: &str) -> Result<u64, Failure> {
    let owner = Text(user_text(Some(user)));
    let forget = async |mut changing: Changing| {
        let change = changing.begin().await?;
        let found = change.rows(OF_OWNER, &[&owner, &limit_of(LOCKED_MAX)]).await?;
        let mut numbers = Vec::with_capacity(found.len());
        for row in &found {
            numbers.push((row.string(1)?, row.string(2)?, row.integer(0)?));
        }
        // all who lock several conversations do so in this order
        numbers.sort();
        let numbers: Vec<_> = numbers.into_iter().map(|(_, _, number)| number).collect();
        let dropped = drop_some(&change, &numbers).await?;
        let part = Part { changed: dropped.conversations, is_last: numbers.is_empty() };
        change.commit().await?;
        Ok(part)
    };
    pool.change_in_parts(forget).await
}
