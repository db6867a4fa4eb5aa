//! Outcomes of executions over time.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use futures_util::future::try_join_all;

use crate::domain::status::Status;
use crate::domain::time::Timestamp;
use crate::ports::store::{EndRange, ExecutionEnd};
use crate::requests::Unavailable;
use crate::runtime::Runtime;
use crate::runtime::bulk::workflow::BULK_WORKFLOW;

/// Maximum number of ends with one status that are counted: about ten milliseconds.
pub const OUTCOMES_COUNTED_MAX: usize = 5_000;

/// Request for outcomes of a period, which is divided into equal parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutcomesRequest {
    pub period: Range<Timestamp>,
    /// Number of parts, at least 1.
    pub parts: usize,
    /// Without it, those of bulk operations are not counted.
    pub workflow_id: Option<String>,
    pub user_id: Option<String>,
}

/// Outcomes of the executions that ended within a period.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcomes {
    /// Length of a part, in milliseconds. The last part may be shorter.
    pub part_ms: u64,
    pub total: Tally,
    pub workflows: BTreeMap<Arc<str>, Tally>,
    /// Time from which on all ends with a status were counted: the begin of the period, or a later
    /// time if there were more than [`OUTCOMES_COUNTED_MAX`].
    pub counted_from: [(Status, Timestamp); 3],
}

impl Outcomes {
    /// Returns the outcomes of a period in which nothing ended.
    #[must_use]
    pub fn of_none(request: &OutcomesRequest) -> Self {
        counted(request, std::iter::empty())
    }
}

/// Counts of ends.
#[derive(Debug, Clone, PartialEq)]
pub struct Tally {
    pub parts: Vec<Part>,
    /// Failures by the step that failed the execution; others have none.
    pub failed_steps: BTreeMap<Arc<str>, u64>,
    /// Durations of completed executions, with their waits.
    pub durations: Durations,
}

/// Counts of one part of the period.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Part {
    pub completed: u64,
    pub error: u64,
    pub cancelled: u64,
    /// Durations of completed executions, with their waits.
    pub durations: Durations,
}

/// Durations, in milliseconds.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Durations(Vec<u64>);

impl Durations {
    /// Returns the smallest duration that at least this share of all does not exceed; `None`
    /// without any.
    #[must_use]
    pub fn quantile(&self, percent: usize) -> Option<u64> {
        let place = (self.0.len() * percent).div_ceil(100).saturating_sub(1);
        self.0.get(place).copied()
    }
}

impl Runtime {
    /// Counts the executions that ended within a period, by outcome, time and workflow. At most
    /// [`OUTCOMES_COUNTED_MAX`] of each status are counted, the last ones.
    pub async fn outcomes(&self, request: &OutcomesRequest) -> Result<Outcomes, Unavailable> {
        let store = &self.shared.store;
        let ended = [Status::Completed, Status::Error, Status::Cancelled];
        let ranges = ended.map(|status| EndRange { status, period: request.period.clone() });
        // one more, to detect further ones
        let reads = ranges.iter().map(|range| store.ends(range, OUTCOMES_COUNTED_MAX + 1));
        let read = try_join_all(reads).await?;
        Ok(counted(request, ended.into_iter().zip(read)))
    }
}

fn counted(
    request: &OutcomesRequest,
    ends: impl Iterator<Item = (Status, Vec<ExecutionEnd>)>,
) -> Outcomes {
    let Range { start, end } = request.period;
    let length = u64::try_from(end.0.saturating_sub(start.0)).unwrap_or(0);
    let parts = request.parts.max(1);
    let part_ms = length.div_ceil(parts as u64).max(1);
    let empty = Tally {
        parts: vec![Part::default(); parts],
        failed_steps: BTreeMap::new(),
        durations: Durations::default(),
    };
    let mut outcomes = Outcomes {
        part_ms,
        total: empty.clone(),
        workflows: BTreeMap::new(),
        counted_from: [Status::Completed, Status::Error, Status::Cancelled]
            .map(|status| (status, start)),
    };
    for (status, mut ends) in ends {
        if ends.len() > OUTCOMES_COUNTED_MAX {
            ends.truncate(OUTCOMES_COUNTED_MAX);
            // others may have ended in the same millisecond
            let counted_from = ends.last().map_or(start, |oldest| oldest.ended_at.plus_ms(1));
            for (_, from) in outcomes.counted_from.iter_mut().filter(|(of, _)| *of == status) {
                *from = counted_from;
            }
            ends.retain(|ended| ended.ended_at >= counted_from);
        }
        let is_of_caller =
            |workflow: &str| request.workflow_id.is_some() || workflow != BULK_WORKFLOW;
        let is_sought = |wanted: &Option<String>, found: Option<&str>| {
            wanted.as_deref().is_none_or(|wanted| found == Some(wanted))
        };
        for ended in ends {
            if is_sought(&request.workflow_id, Some(&ended.workflow_id))
                && is_of_caller(&ended.workflow_id)
                && is_sought(&request.user_id, ended.user_id.as_deref())
            {
                let since = u64::try_from(ended.ended_at.0 - start.0).unwrap_or(0);
                let part = usize::try_from(since / part_ms).unwrap_or(usize::MAX);
                outcomes.total.add(status, &ended, part);
                let tally = outcomes.workflows.entry(Arc::clone(&ended.workflow_id));
                tally.or_insert_with(|| empty.clone()).add(status, &ended, part);
            }
        }
    }
    outcomes.total.sort();
    outcomes.workflows.values_mut().for_each(Tally::sort);
    outcomes
}

impl Tally {
    fn add(&mut self, status: Status, ended: &ExecutionEnd, part: usize) {
        let Some(part) = self.parts.get_mut(part) else { return };
        match status {
            Status::Completed => {
                let lasted = ended.ended_at.0.saturating_sub(ended.created_at.0);
                let lasted = u64::try_from(lasted).unwrap_or(0);
                part.completed += 1;
                part.durations.0.push(lasted);
                self.durations.0.push(lasted);
            }
            Status::Error => {
                part.error += 1;
                if let Some(step) = &ended.failed_step {
                    *self.failed_steps.entry(Arc::clone(step)).or_default() += 1;
                }
            }
            Status::Cancelled => part.cancelled += 1,
            Status::Running | Status::Suspended => {}
        }
    }

    fn sort(&mut self) {
        let parts = self.parts.iter_mut().map(|part| &mut part.durations);
        parts.chain([&mut self.durations]).for_each(|durations| durations.0.sort_unstable());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(workflow: &str, ended_at: i64, failed_step: Option<&str>) -> ExecutionEnd {
        ExecutionEnd {
            workflow_id: workflow.into(),
            user_id: (ended_at % 2 == 0).then(|| "ann".into()),
            created_at: Timestamp(0),
            ended_at: Timestamp(ended_at),
            failed_step: failed_step.map(Into::into),
        }
    }

    fn request() -> OutcomesRequest {
        let period = Timestamp(1_000)..Timestamp(1_010);
        OutcomesRequest { period, parts: 4, workflow_id: None, user_id: None }
    }

    fn counts(tally: &Tally) -> Vec<(u64, u64, u64)> {
        tally.parts.iter().map(|part| (part.completed, part.error, part.cancelled)).collect()
    }

    #[test]
    fn ends_are_counted_by_time_workflow_and_step() {
        let ends = || {
            [
                (Status::Completed, vec![ended("a", 1_009, None), ended("b", 1_000, None)]),
                (Status::Error, vec![ended("a", 1_004, Some("pay")), ended("a", 1_003, None)]),
                (Status::Cancelled, vec![ended("b", 1_002, None)]),
            ]
            .into_iter()
        };
        let all = counted(&request(), ends());
        assert_eq!(all.part_ms, 3);
        assert_eq!(counts(&all.total), [(1, 0, 1), (0, 2, 0), (0, 0, 0), (1, 0, 0)]);
        assert_eq!(counts(&all.workflows["b"]), [(1, 0, 1), (0, 0, 0), (0, 0, 0), (0, 0, 0)]);
        assert_eq!(all.workflows["a"].failed_steps, BTreeMap::from([("pay".into(), 1)]));
        assert_eq!(all.total.durations.quantile(50), Some(1_000));
        assert_eq!(all.total.durations.quantile(95), Some(1_009));
        assert_eq!(all.total.parts[1].durations.quantile(95), None);
        assert!(all.counted_from.iter().all(|(_, from)| *from == Timestamp(1_000)));

        let (a, ann) = (Some("a".to_owned()), Some("ann".to_owned()));
        let of = |workflow_id, user_id| {
            let request = OutcomesRequest { workflow_id, user_id, ..request() };
            counts(&counted(&request, ends()).total)
        };
        assert_eq!(of(a.clone(), None), [(0, 0, 0), (0, 2, 0), (0, 0, 0), (1, 0, 0)]);
        assert_eq!(of(a, ann), [(0, 0, 0), (0, 1, 0), (0, 0, 0), (0, 0, 0)]);
        let operation = || [(Status::Completed, vec![ended(BULK_WORKFLOW, 1_000, None)])];
        for (workflow_id, expected) in [(None, 0), (Some(BULK_WORKFLOW.to_owned()), 1)] {
            let request = OutcomesRequest { workflow_id, ..request() };
            let counted = counted(&request, operation().into_iter());
            assert_eq!(counts(&counted.total)[0].0, expected);
        }
    }

    #[test]
    fn of_too_many_ends_the_last_ones_are_counted() {
        // two in each millisecond, newest first
        let many = (0..=OUTCOMES_COUNTED_MAX as i64).rev().map(|n| ended("a", 1_000 + n / 2, None));
        let period = Timestamp(0)..Timestamp(9_000);
        let request = OutcomesRequest { period, parts: 1, ..request() };
        let some = counted(&request, [(Status::Error, many.collect())].into_iter());
        assert_eq!(counts(&some.total), [(0, OUTCOMES_COUNTED_MAX as u64 - 1, 0)]);
        let from = some.counted_from.map(|(_, from)| from.0);
        assert_eq!(from, [0, 1_001, 0]);
    }
}
