//! Rebuilds an execution from its rows. Needs no actor: any process may read.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;

use crate::domain::ids::ExecutionId;
use crate::domain::machine::Machine;
use crate::execution::snapshot::{SnapshotMark, read_snapshot};
use crate::observe::log_record::LogScope;
use crate::ports::crash_marks::MarkedWork;
use crate::ports::store::{Header, Row, StoredExecution};
use crate::requests::Unavailable;
use crate::shared::Shared;

/// An execution, rebuilt from its rows.
pub(crate) struct Restored {
    pub(crate) row: Row,
    pub(crate) revision: u64,
    pub(crate) header: Arc<Header>,
    pub(crate) machine: Machine,
    /// The snapshot that it was rebuilt from; the default when all facts were applied.
    pub(crate) snapshot: SnapshotMark,
}

/// Rebuilds an execution; `None` if it is not stored. It is marked meanwhile, since a process may
/// die on it; one that earlier processes died on is refused.
pub(crate) async fn restore(
    shared: &Shared,
    id: &ExecutionId,
) -> Result<Option<Restored>, Unavailable> {
    if shared.quarantine.is_unreadable(id) {
        let why = format!("{} (earlier processes died while reading it)", name_of(id));
        return Err(Unavailable::Corrupt(Arc::from(why)));
    }
    let restoring = async {
        // A panic on one record must not end the reader of all the others.
        let restored = AssertUnwindSafe(rebuild(shared, id)).catch_unwind().await;
        restored.unwrap_or_else(|_| Err(shared.corrupt(name_of(id), "it cannot be rebuilt")))
    };
    LogScope::of_execution(id).during(restoring).await
}

async fn rebuild(shared: &Shared, id: &ExecutionId) -> Result<Option<Restored>, Unavailable> {
    let stored = shared.store.load(id).await?;
    let Some(stored) = stored else { return Ok(None) };
    let plan = shared.plan(&stored.projection.header.definition_hash).await;
    let plan = plan.map_err(|why| match why {
        // The execution is named as the corrupt record; the definition is already logged.
        Unavailable::Corrupt(definition) => {
            Unavailable::Corrupt(Arc::from(format!("{} with {definition}", name_of(id))))
        }
        other => other,
    })?;
    let StoredExecution { row, revision, projection, snapshot, facts } = stored;
    let last_seq = projection.last_seq;
    let header = projection.header;
    let mark = || shared.quarantine.mark(id, last_seq, MarkedWork::Load);
    let facts = match snapshot {
        Some((_, bytes)) => {
            let marked = mark();
            let read = read_snapshot(&bytes).and_then(|state| {
                let mark = SnapshotMark::of(&state, bytes.len());
                Some((Machine::restore(Arc::clone(&plan), state, &facts).ok()?, mark))
            });
            if let Some((machine, snapshot)) =
                read.filter(|(machine, _)| machine.state().last_seq() == last_seq)
            {
                return Ok(Some(Restored { row, revision, header, machine, snapshot }));
            }
            drop(marked);
            log::debug!("cannot use the snapshot of execution {id}: applying all facts instead");
            shared.store.facts(id, 0, usize::MAX).await?
        }
        None => facts,
    };
    let _marked = mark();
    let machine = Machine::replay(plan, id.clone(), &facts)
        .map_err(|why| shared.corrupt(name_of(id), &why.to_string()))?;
    Ok(Some(Restored { row, revision, header, machine, snapshot: SnapshotMark::default() }))
}

fn name_of(id: &ExecutionId) -> String {
    format!("execution {id}")
}
