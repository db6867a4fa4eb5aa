//! Lists of executions.

use std::sync::Arc;

use futures_util::future::join_all;

use crate::domain::fact::{Others, Suspension};
use crate::domain::ids::ExecutionId;
use crate::domain::time::Timestamp;
use crate::ports::store::{Cursor, ExecutionFilter, Projection, Row};
use crate::requests::{Target, Unavailable};
use crate::runtime::Runtime;
use crate::visibility::Visibility;

/// Place before the newest execution.
const NEWEST: Cursor = Cursor { at: Timestamp(i64::MAX), row: Row::MAX };

impl Runtime {
    /// Returns executions, newest first, and the position of the next page.
    pub async fn list(
        &self,
        filter: &ExecutionFilter,
        after: Option<Cursor>,
        limit: usize,
    ) -> Result<(Vec<Projection>, Option<Cursor>), Unavailable> {
        let (mut rows, next) = match filter.ids() {
            Some(begin) => self.list_of_prefix(begin, filter, after, limit).await?,
            None => self.shared.store.list(filter, after, limit).await?,
        };
        join_all(rows.iter_mut().map(|row| self.name_suspensions(row))).await;
        Ok((rows, next))
    }

    /// Lists executions by a prefix of their ids: first the one that has it as its whole id, which
    /// the store might not reach among many.
    async fn list_of_prefix(
        &self,
        begin: &str,
        filter: &ExecutionFilter,
        after: Option<Cursor>,
        limit: usize,
    ) -> Result<(Vec<Projection>, Option<Cursor>), Unavailable> {
        let exact = match ExecutionId::parse(begin) {
            Ok(id) if after.is_none() => self.shared.store.describe(&id).await?,
            Ok(_) | Err(_) => None,
        };
        let exact = exact.filter(|it| filter.admits(it));
        let room = limit - usize::from(exact.is_some() && limit > 0);
        let (mut rows, mut next) = match room {
            0 => (Vec::new(), Some(NEWEST).filter(|_| limit > 0)),
            _ => self.shared.store.list(filter, after, room).await?,
        };
        if let Some(place) = rows.iter().position(|it| it.header.id.as_str() == begin) {
            rows.remove(place);
            if next.is_some() {
                let (one, after) = self.shared.store.list(filter, next, 1).await?;
                rows.extend(one);
                next = after;
            }
        }
        rows.splice(0..0, exact);
        Ok((rows, next))
    }

    /// Completes a row of an older version, which lacks ids of suspensions and all but the first.
    /// They follow from the facts; the next change of the execution stores them.
    async fn name_suspensions(&self, row: &mut Projection) {
        if row.suspension.as_ref().is_none_or(|shown| shown.id.is_some()) {
            return;
        }
        let target = Target {
            workflow_id: row.header.workflow_id.to_string(),
            execution_id: row.header.id.clone(),
            visibility: Visibility::Everything,
        };
        // Without the facts the row is shown as it is.
        let Ok(state) = self.describe(&target).await else { return };
        let mut all = state.suspensions.into_iter().map(Suspension::listed);
        row.suspension = all.next().map(Arc::new).filter(|_| state.suspension.is_some());
        let suspensions: Vec<_> = all.collect();
        if !suspensions.is_empty() {
            row.others = Some(Arc::new(Others { suspensions, omitted: 0 }));
        }
    }
}
