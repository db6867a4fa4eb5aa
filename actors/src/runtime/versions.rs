//! Versions of a workflow: its executions by the definition that they began with.

use std::collections::HashMap;
use std::sync::Arc;

use futures_util::future::try_join_all;

use crate::domain::plan::Plan;
use crate::domain::status::Status;
use crate::domain::time::Timestamp;
use crate::ports::store::{ExecutionStart, StartRange};
use crate::requests::Unavailable;
use crate::runtime::Runtime;

/// Maximum number of executions with one status that are counted: about ten milliseconds.
pub const VERSIONS_COUNTED_MAX: usize = 2_000;

/// Versions of a workflow that its executions began with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Versions {
    /// The registered version first, then those that were started last.
    pub versions: Vec<Version>,
    /// Statuses of which only the last [`VERSIONS_COUNTED_MAX`] executions were counted, with the
    /// time from which on all were.
    pub counted_from: Vec<(Status, Timestamp)>,
}

/// A version of a workflow, and its counted executions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    pub definition_hash: Arc<str>,
    /// True for the version that new executions begin with.
    pub is_registered: bool,
    /// Counts by status, without zeros.
    pub counts: Vec<(Status, u64)>,
    /// Times of the first and the last start that was counted.
    pub started: Option<(Timestamp, Timestamp)>,
}

impl Runtime {
    /// Counts the executions of a workflow, or those of one user among them, by version and status. At
    /// most [`VERSIONS_COUNTED_MAX`] of each status are read, those that started last.
    pub async fn versions(
        &self,
        workflow_id: &str,
        user_id: Option<&str>,
    ) -> Result<Versions, Unavailable> {
        let ranges =
            Status::ALL.map(|status| StartRange { workflow_id: workflow_id.to_owned(), status });
        // one more, to detect further ones
        let store = &self.shared.store;
        let reads = ranges.iter().map(|range| store.starts(range, VERSIONS_COUNTED_MAX + 1));
        let starts = try_join_all(reads).await?;
        let registered = self.shared.plan_to_start(workflow_id);
        let registered = registered.as_ref().map(|plan| &plan.hash);
        Ok(Versions::of(registered, user_id, Status::ALL.into_iter().zip(starts)))
    }

    /// Returns a stored version of a workflow; `None` if there is none with this hash.
    pub async fn version(
        &self,
        workflow_id: &str,
        definition_hash: &str,
    ) -> Result<Option<Arc<Plan>>, Unavailable> {
        let hash = Arc::from(definition_hash);
        let registered = self.shared.plan_to_start(workflow_id).filter(|plan| plan.hash == hash);
        if registered.is_some() || self.shared.store.definition(&hash).await?.is_none() {
            return Ok(registered);
        }
        let plan = self.shared.plan(&hash).await?;
        Ok(Some(plan).filter(|plan| plan.definition.id == workflow_id))
    }

    /// Returns the versions of a workflow of which the caller sees no executions.
    #[must_use]
    pub fn versions_without_executions(&self, workflow_id: &str) -> Versions {
        let registered = self.shared.plan_to_start(workflow_id);
        let registered = registered.as_ref().map(|plan| &plan.hash);
        Versions::of(registered, None, std::iter::empty())
    }
}

impl Versions {
    /// Counts starts, or those of one user, of each status the newest first.
    fn of(
        registered: Option<&Arc<str>>,
        user_id: Option<&str>,
        lists: impl Iterator<Item = (Status, Vec<ExecutionStart>)>,
    ) -> Self {
        let mut known: HashMap<Arc<str>, Version> = HashMap::new();
        if let Some(hash) = registered {
            known.insert(Arc::clone(hash), Version::new(hash, true));
        }
        let mut counted_from = Vec::new();
        for (status, mut starts) in lists {
            if starts.len() > VERSIONS_COUNTED_MAX {
                starts.truncate(VERSIONS_COUNTED_MAX);
                // others may have started in the same millisecond
                if let Some(from) = starts.last().map(|oldest| oldest.created_at.plus_ms(1)) {
                    starts.retain(|start| start.created_at >= from);
                    counted_from.push((status, from));
                }
            }
            let is_sought = |start: &ExecutionStart| {
                user_id.is_none_or(|user| start.user_id.as_deref() == Some(user))
            };
            for start in starts.into_iter().filter(is_sought) {
                let ExecutionStart { definition_hash: hash, created_at, .. } = start;
                let version =
                    known.entry(Arc::clone(&hash)).or_insert_with(|| Version::new(&hash, false));
                version.add(status, created_at);
            }
        }
        let mut versions: Vec<_> = known.into_values().collect();
        versions.sort_by(|a, b| {
            let rank = |it: &Version| (it.is_registered, it.started.map(|(_, last)| last));
            rank(b).cmp(&rank(a)).then_with(|| a.definition_hash.cmp(&b.definition_hash))
        });
        Self { versions, counted_from }
    }
}

impl Version {
    fn new(hash: &Arc<str>, is_registered: bool) -> Self {
        let definition_hash = Arc::clone(hash);
        Self { definition_hash, is_registered, counts: Vec::new(), started: None }
    }

    fn add(&mut self, status: Status, started_at: Timestamp) {
        match self.counts.iter_mut().find(|(of, _)| *of == status) {
            Some((_, count)) => *count += 1,
            None => self.counts.push((status, 1)),
        }
        let (first, last) = self.started.unwrap_or((started_at, started_at));
        self.started = Some((first.min(started_at), last.max(started_at)));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::domain::definition::{
        Body, Mapping as Values, StepDefinition, StepKind, WorkflowDefinition,
    };
    use crate::limits::RuntimeLimits;
    use crate::ports::store::ExecutionFilter;
    use crate::testkit::{World, registry_of, start};

    fn workflow_of(output: i64) -> WorkflowDefinition {
        let one = StepKind::Then { body: Body::Map(Values(json!(output))) };
        WorkflowDefinition::new("w", vec![StepDefinition::new("one", one)])
    }

    #[actix::test]
    async fn executions_are_counted_by_the_definition_they_began_with() {
        let mut world =
            World::launch(registry_of([workflow_of(1)]), RuntimeLimits::default()).await;
        let runtime = world.runtime.clone();
        let before = runtime.versions("w", None).await.unwrap();
        assert_eq!((before.versions.len(), before.versions[0].is_registered), (1, true));
        assert_eq!((&*before.versions[0].counts, before.versions[0].started), (&[][..], None));
        assert_eq!(before, runtime.versions_without_executions("w"));
        runtime.execute(start("w", "a", json!({}))).await.unwrap();
        runtime.execute(start("w", "b", json!({}))).await.unwrap();
        world.exchange(registry_of([workflow_of(2)])).await.unwrap();
        runtime.execute(start("w", "c", json!({}))).await.unwrap();

        let Versions { versions, counted_from } = runtime.versions("w", None).await.unwrap();
        let shown: Vec<_> =
            versions.iter().map(|it| (it.is_registered, it.counts.clone())).collect();
        let completed = |count| vec![(Status::Completed, count)];
        assert_eq!(shown, [(true, completed(1)), (false, completed(2))]);
        assert_eq!(counted_from, []);
        let old = ExecutionFilter {
            workflow_id: Some("w".to_owned()),
            definition_hash: Some(versions[1].definition_hash.to_string()),
            ..ExecutionFilter::default()
        };
        let (rows, _) = runtime.list(&old, None, 10).await.unwrap();
        let ids: Vec<_> = rows.iter().map(|row| row.header.id.as_str()).collect();
        assert_eq!(ids, ["b", "a"]);
        assert_eq!(runtime.versions("w", Some("ann")).await.unwrap().versions.len(), 1);
        for (place, workflow, output) in [(0, "w", Some(2)), (1, "w", Some(1)), (1, "x", None)] {
            let found = runtime.version(workflow, &versions[place].definition_hash).await.unwrap();
            let expected = output.map(workflow_of);
            assert_eq!(found.map(|plan| plan.definition.clone()), expected, "{place} {workflow}");
        }
        assert!(runtime.version("w", "none").await.unwrap().is_none());
    }
}
