//! One page of a bulk operation.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::try_join_all;
use futures_util::stream::{self, StreamExt as _};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::family::{Family, Sorted};
use super::{BulkAction, BulkOperation};
use crate::commands::ExecutionCommand;
use crate::domain::ids::ExecutionId;
use crate::domain::machine::Resume;
use crate::domain::status::Status;
use crate::domain::time::Timestamp;
use crate::ports::store::{Cursor, ExecutionFilter, Projection};
use crate::replay::ReplayError;
use crate::requests::{
    Cancelled, ControlError, IdempotencyKey, ResumeError, StartError, Target, TraceOrigin,
    Unavailable,
};
use crate::runtime::Runtime;
use crate::runtime::replay::{ReplayDefinition, ReplayExecution};

/// Number of executions in a page.
const PAGE: usize = 200;

/// Maximum number of pages read before progress is recorded: pages of a search may be empty.
const PAGES_AT_ONCE: usize = 20;

/// Number of changed executions that are recorded by id: the state keeps them.
const CHANGED_MAX: u64 = 10_000;

/// Number of executions that get their command at once.
const AT_ONCE: usize = 16;

/// Maximum number of failures that are recorded with their reasons.
const FAILURES_MAX: usize = 20;

/// Attempts of a command that the server cannot take now, and the time between them.
const ATTEMPTS: u32 = 60;
const BETWEEN: Duration = Duration::from_millis(500);

/// Place and counts of an operation, recorded after each page.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Progress {
    /// Number of ids taken; of a filter, of the action's statuses.
    taken: usize,
    /// Place in the list of the status: creation time (or end) and row.
    after: Option<(i64, i64)>,
    pub(super) matched: u64,
    pub(super) done: u64,
    pub(super) skipped: u64,
    pub(super) failed: u64,
    /// Number of unfinished executions that those cancelled had started.
    pub(super) children: u64,
    /// Number of cancelled executions that compensate before they end.
    pub(super) compensating: u64,
    pub(super) failures: Vec<Failure>,
    /// Executions that the last page changed, up to [`CHANGED_MAX`] of the operation.
    pub(super) changed: Vec<Changed>,
    pub(super) is_over: bool,
}

/// Execution that the command has changed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Changed {
    pub(super) execution_id: ExecutionId,
    /// The execution that replays it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) replay_id: Option<ExecutionId>,
}

/// Execution that the command failed for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Failure {
    pub(super) execution_id: ExecutionId,
    pub(super) message: String,
}

impl Progress {
    pub(super) fn counts(&self) -> Value {
        let Self { matched, done, skipped, failed, children, compensating, .. } = self;
        json!({
            "matched": matched, "done": done, "skipped": skipped, "failed": failed,
            "children": children, "compensating": compensating,
        })
    }

    fn change(&mut self, execution_id: ExecutionId, replay_id: Option<ExecutionId>) {
        self.done += 1;
        if self.done <= CHANGED_MAX {
            self.changed.push(Changed { execution_id, replay_id });
        }
    }

    fn fail(&mut self, execution_id: ExecutionId, message: String) {
        self.failed += 1;
        if self.failures.len() < FAILURES_MAX {
            self.failures.push(Failure { execution_id, message });
        }
    }
}

/// Result of a command.
enum Acted {
    Done,
    /// It may compensate before it ends.
    Cancelled {
        compensates: bool,
    },
    /// With the id of the replay.
    Replayed(ExecutionId),
    /// The execution has changed, so that the command no longer fits.
    Skipped,
    Failed(String),
}

impl BulkOperation {
    pub(super) fn definition(&self) -> ReplayDefinition {
        if self.current_definition { ReplayDefinition::Current } else { ReplayDefinition::Original }
    }

    pub(super) fn target_of(&self, execution: &Projection) -> Target {
        Target {
            workflow_id: execution.header.workflow_id.to_string(),
            execution_id: execution.header.id.clone(),
            visibility: self.visibility(),
        }
    }
}

impl Runtime {
    /// Reads the next executions of an operation. Unknown ids are failures.
    pub(super) async fn page_of_bulk(
        &self,
        operation: &BulkOperation,
        progress: &mut Progress,
        limit: usize,
    ) -> Result<Vec<Projection>, Unavailable> {
        if operation.execution_ids.is_empty() {
            self.page_of_filter(operation, progress, limit).await
        } else {
            self.page_of_ids(operation, progress, limit).await
        }
    }

    async fn page_of_filter(
        &self,
        BulkOperation { action, filter, visible_to, .. }: &BulkOperation,
        progress: &mut Progress,
        limit: usize,
    ) -> Result<Vec<Projection>, Unavailable> {
        let is_sought = |status: &&Status| filter.status.is_none_or(|sought| sought == **status);
        let mut statuses = action.statuses().iter().filter(is_sought).skip(progress.taken);
        let is_of_another =
            visible_to.as_deref().zip(filter.user_id.as_deref()).is_some_and(|(a, b)| a != b);
        let Some(status) = statuses.next().filter(|_| !is_of_another) else {
            progress.is_over = true;
            return Ok(Vec::new());
        };
        let user_id = visible_to.as_deref().map(str::to_owned).or_else(|| filter.user_id.clone());
        let filter = ExecutionFilter {
            status: Some(*status),
            user_id,
            is_exhaustive: true,
            ..filter.clone()
        };
        let after = progress.after.map(|(at, row)| Cursor { at: Timestamp(at), row });
        let (page, next) = self.list(&filter, after, limit).await?;
        progress.after = next.map(|next| (next.at.0, next.row));
        if next.is_none() {
            progress.taken += 1;
            progress.is_over = statuses.next().is_none();
        }
        Ok(page)
    }

    async fn page_of_ids(
        &self,
        operation: &BulkOperation,
        progress: &mut Progress,
        limit: usize,
    ) -> Result<Vec<Projection>, Unavailable> {
        let ids: Vec<_> = operation.execution_ids.iter().skip(progress.taken).take(limit).collect();
        let visibility = operation.visibility();
        let mut read = Vec::new();
        for some in ids.chunks(AT_ONCE) {
            let described = some.iter().map(|id| self.shared.store.describe(id));
            read.extend(try_join_all(described).await?);
        }
        let mut page = Vec::new();
        for (id, found) in ids.into_iter().zip(read) {
            progress.taken += 1;
            let is_reached = |it: &Projection| {
                visibility.allows(it.header.user_id.as_deref()) && operation.allows(it)
            };
            let found = found.filter(is_reached);
            match found {
                Some(execution) => page.push(execution),
                None => progress.fail(id.clone(), "execution not found".to_owned()),
            }
        }
        progress.is_over = progress.taken >= operation.execution_ids.len();
        Ok(page)
    }

    /// Gives the command to the next page of executions.
    pub(super) async fn take_page(
        &self,
        operation: &BulkOperation,
        id: &ExecutionId,
        mut progress: Progress,
    ) -> Result<Progress, Unavailable> {
        let mut page = self.page_of_bulk(operation, &mut progress, PAGE).await?;
        for _ in 1..PAGES_AT_ONCE {
            if progress.is_over || !page.is_empty() {
                break;
            }
            page = self.page_of_bulk(operation, &mut progress, PAGE).await?;
        }
        progress.matched += page.len() as u64;
        progress.changed.clear();
        let Sorted { fitting, skipped, .. } = self.sort(operation, page).await?;
        progress.skipped += skipped;
        let (mut family, mut cancelled) = (Family::default(), HashSet::new());
        if operation.action == BulkAction::Cancel {
            // read before they are cancelled as well
            self.add_children(&fitting, &mut family).await?;
        }
        let commands = fitting.into_iter().map(|execution| async move {
            let acted = self.act_when_possible(operation, id, &execution).await;
            (execution.header.id.clone(), acted)
        });
        let mut acted = stream::iter(commands).buffered(AT_ONCE);
        while let Some((execution_id, acted)) = acted.next().await {
            match acted {
                Acted::Done => progress.change(execution_id, None),
                Acted::Cancelled { compensates } => {
                    progress.compensating += u64::from(compensates);
                    cancelled.insert(execution_id.clone());
                    progress.change(execution_id, None);
                }
                Acted::Replayed(replay_id) => progress.change(execution_id, Some(replay_id)),
                Acted::Skipped => progress.skipped += 1,
                Acted::Failed(message) => progress.fail(execution_id, message),
            }
        }
        progress.children += family.count_of(&cancelled);
        Ok(progress)
    }

    /// Gives the command to an execution; waits for a while if the server cannot take it now.
    async fn act_when_possible(
        &self,
        operation: &BulkOperation,
        id: &ExecutionId,
        execution: &Projection,
    ) -> Acted {
        let mut attempts = 1;
        loop {
            match self.act(operation, id, execution).await {
                Ok(acted) => return acted,
                Err(unavailable) if attempts == ATTEMPTS => {
                    return Acted::Failed(unavailable.to_string());
                }
                Err(_) => {
                    attempts += 1;
                    tokio::time::sleep(BETWEEN).await;
                }
            }
        }
    }

    async fn act(
        &self,
        operation: &BulkOperation,
        id: &ExecutionId,
        execution: &Projection,
    ) -> Result<Acted, Unavailable> {
        let header = &execution.header;
        let target = operation.target_of(execution);
        let by = operation.by.clone();
        let reason = || operation.reason.clone().unwrap_or_else(|| format!("Bulk operation {id}"));
        match operation.action {
            BulkAction::Suspend => {
                let suspended = self.suspend(&target, Some(reason()), by).await;
                controlled(suspended.map(|_| Acted::Done))
            }
            BulkAction::Cancel => {
                let cancelled = self.cancel(&target, Some(reason()), by).await;
                let acted = |it: Cancelled| Acted::Cancelled { compensates: it.compensates };
                controlled(cancelled.map(acted))
            }
            BulkAction::Resume => {
                let suspension = execution.suspension.as_ref().and_then(|it| it.id.clone());
                let resume = Resume {
                    suspension_id: suspension.map(|id| id.to_string()),
                    by: by.map(Arc::new),
                    ..Resume::default()
                };
                let subject = Some((&target).into());
                let command = |answer| ExecutionCommand::pass_resume(subject, resume, None, answer);
                match self.change(&target, command).await {
                    Ok::<u64, _>(_) => Ok(Acted::Done),
                    Err(ResumeError::Unavailable(why)) => Err(why),
                    Err(
                        ResumeError::NotFound
                        | ResumeError::NotSuspended
                        | ResumeError::SuspensionPassed { .. },
                    ) => Ok(Acted::Skipped),
                    Err(error) => Ok(Acted::Failed(error.to_string())),
                }
            }
            BulkAction::Replay => {
                // two operations at once replay an execution once
                let scope = match operation.again {
                    true => format!("bulk {id} {}", header.id),
                    false => format!("bulk replay {}", header.id),
                };
                let key = IdempotencyKey { scope: Arc::from(scope), body_hash: Arc::from("") };
                let request = ReplayExecution {
                    step_id: None,
                    resume_data: None,
                    input: None,
                    definition: operation.definition(),
                    execution_id: None,
                    by,
                    answerer: None,
                    idempotency: Some(key),
                    trace: TraceOrigin::New,
                };
                match self.begin_replay(&target, request).await {
                    Ok(replay) => Ok(Acted::Replayed(replay.new)),
                    Err(ReplayError::Start(StartError::Unavailable(why))) => Err(why),
                    Err(ReplayError::NotFound) => Ok(Acted::Skipped),
                    Err(error) => Ok(Acted::Failed(error.to_string())),
                }
            }
        }
    }
}

fn controlled(result: Result<Acted, ControlError>) -> Result<Acted, Unavailable> {
    match result {
        Ok(acted) => Ok(acted),
        Err(ControlError::NotFound | ControlError::Already(_) | ControlError::Compensating) => {
            Ok(Acted::Skipped)
        }
        Err(ControlError::Unavailable(why)) => Err(why),
    }
}
