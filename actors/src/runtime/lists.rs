//! Lists of executions.

use std::sync::Arc;

use futures_util::future::join_all;

use crate::domain::fact::Others;
use crate::ports::store::{Cursor, ExecutionFilter, Projection};
use crate::requests::{Target, Unavailable};
use crate::runtime::Runtime;
use crate::visibility::Visibility;

impl Runtime {
    /// Returns executions, newest first, and the position of the next page.
    pub async fn list(
        &self,
        filter: &ExecutionFilter,
        after: Option<Cursor>,
        limit: usize,
    ) -> Result<(Vec<Projection>, Option<Cursor>), Unavailable> {
        let listed = self.shared.store.list(filter, after, limit).await.map_err(Unavailable::from);
        let (mut rows, next) = listed?;
        join_all(rows.iter_mut().map(|row| self.name_suspensions(row))).await;
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
        let mut all = state.suspensions.into_iter();
        row.suspension = all.next().map(Arc::new).filter(|_| state.suspension.is_some());
        let suspensions: Vec<_> = all.collect();
        if !suspensions.is_empty() {
            row.others = Some(Arc::new(Others { suspensions, omitted: 0 }));
        }
    }
}
