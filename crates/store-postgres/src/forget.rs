//! Erasure of a user from all records.

use greenroom_store_codec::keys::user_text;

use crate::changes::{Changing, PART, Part};
use crate::conversations::{Numbers, drop_some};
use crate::pool::{Failure, Pool};
use crate::text::Text;
use crate::{acted, log_writes, retention};

pub(crate) const OF_OWNER: &str =
    "SELECT n, memory FROM conversations WHERE owner = $1 ORDER BY updated, n LIMIT 1";

/// Deletes a user's conversations, generations and log records, and removes the user from facts of
/// executions, in parts. Returns the number of conversations.
pub(crate) async fn forget_user(pool: &Pool, user: &str) -> Result<u64, Failure> {
    let conversations = forget_conversations(pool, user).await?;
    retention::forget_generations(pool, user).await?;
    log_writes::forget(pool, user).await?;
    acted::forget(pool, user).await?;
    Ok(conversations)
}

async fn forget_conversations(pool: &Pool, user: &str) -> Result<u64, Failure> {
    let owner = Text(user_text(Some(user)));
    let forget = async |mut changing: Changing| {
        let change = changing.begin().await?;
        let (mut rows, mut part) = (0, Part { changed: 0, is_last: false });
        while rows < PART {
            let Some(row) = change.row(OF_OWNER, &[&owner]).await? else {
                part.is_last = true;
                break;
            };
            let left = PART - rows;
            let dropped = drop_some(&change, Numbers::of(&row)?, left).await?;
            part.changed += u64::from(dropped < left);
            // a conversation counts as a row: there may be many without messages
            rows += dropped + usize::from(dropped < left);
        }
        change.commit().await?;
        Ok(part)
    };
    pool.change_in_parts(forget).await
}
