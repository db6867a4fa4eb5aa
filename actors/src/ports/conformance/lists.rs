//! Rules of lists of executions.

use std::sync::Arc;

use super::bench::{Bench, Draft, completed, step_started};
use super::{pages, read};
use crate::domain::fact::Parent;
use crate::domain::ids::ExecutionId;
use crate::domain::slot::SlotSet;
use crate::domain::time::Timestamp;
use crate::ports::store::{
    Cursor, EndRange, ExecutionEnd, ExecutionFilter, ExecutionStart, Failure, Projection,
    ReplayedFrom, StartRange, Status,
};

pub(super) async fn lists_are_filtered_and_paged(mut bench: Bench) {
    // three statuses, two workflows, two users and anonymous, pairs created at the same time
    let mut drafts = Vec::new();
    for i in 0..60_i64 {
        let mut draft = bench.creation(&format!("e{i:02}"));
        draft.header.workflow_id = Arc::from(["order", "refund"][usize::from(i % 4 == 0)]);
        draft.header.definition_hash = Arc::from(["d1", "d2"][usize::from(i % 6 == 0)]);
        draft.header.trace.via = match i % 4 {
            1 => Some(Arc::from("mcp")),
            2 => Some(Arc::from("mcp:desk")),
            _ => None,
        };
        draft.header.created_at = Timestamp(1000 + i / 2);
        // ends are in another order, and some at the same time
        draft.at = Timestamp(2000 + (i * 7) % 40);
        draft.replayed_from = (i % 7 == 0).then(|| ReplayedFrom {
            execution: ExecutionId::trusted(["e01", "e02"][usize::from(i % 2 == 0)]),
            step_id: Arc::from("ask"),
        });
        draft.header.parent = (i % 9 == 0).then(|| Parent {
            execution: ExecutionId::trusted(["e03", "e04"][usize::from(i % 2 == 0)]),
            path: Arc::from("call"),
        });
        draft.header.user_id = match i % 3 {
            0 => None,
            1 => Some(Arc::from("u1")),
            _ => Some(Arc::from("u2")),
        };
        draft.status = match i % 5 {
            0 => Status::Running,
            1 => Status::Suspended,
            2 => Status::Error,
            _ => Status::Completed,
        };
        draft.error = (draft.status == Status::Error).then(|| Failure {
            message: Arc::from(format!("Not found {i}, {}%", i * 10)),
            step_id: (i % 2 == 0).then(|| Arc::from("pay")),
            path: None,
            class: None,
        });
        bench.take(&draft).await;
        drafts.push(draft);
    }
    // some change, so that lists must not show them with their old status
    for draft in drafts.iter_mut().filter(|draft| draft.status == Status::Suspended).step_by(2) {
        let mut next = bench.continuation(draft, vec![completed(2)]);
        next.status = Status::Cancelled;
        bench.take(&next).await;
        *draft = next;
    }

    ends_are_those_of_a_range(&bench, &drafts).await;
    starts_are_those_of_a_range(&bench, &drafts).await;
    for filter in every_filter() {
        let mut expected: Vec<&Draft> = drafts.iter().filter(|d| matches(&filter, d)).collect();
        expected.sort_by_key(|draft| {
            let at = if filter.is_of_ends() { draft.at } else { draft.header.created_at };
            std::cmp::Reverse((at, draft.row))
        });
        let expected: Vec<Projection> = expected.into_iter().map(Draft::projection).collect();
        for limit in [1, 7, 60] {
            let listed = list_all(&bench, &filter, limit).await;
            assert_eq!(listed, expected, "{filter:?} in pages of {limit}");
        }
    }
    let none = read(bench.store.list(&ExecutionFilter::default(), None, 0)).await;
    assert_eq!(none, (Vec::new(), None), "a page of none");
}

async fn ends_are_those_of_a_range(bench: &Bench, drafts: &[Draft]) {
    for status in [Status::Error, Status::Completed, Status::Cancelled] {
        for (from, to) in [(0, 9_000), (2_010, 2_030), (2_013, 2_013)] {
            let mut within: Vec<&Draft> = drafts
                .iter()
                .filter(|draft| draft.status == status && (from..to).contains(&draft.at.0))
                .collect();
            within.sort_by_key(|draft| std::cmp::Reverse((draft.at, draft.row)));
            let expected: Vec<ExecutionEnd> = within.into_iter().map(end_of).collect();
            for limit in [0, 3, 100] {
                let period = Timestamp(from)..Timestamp(to);
                let ends = read(bench.store.ends(&EndRange { status, period }, limit)).await;
                let expected = &expected[..expected.len().min(limit)];
                assert_eq!(ends, expected, "{} from {from}, {limit}", status.as_str());
            }
        }
    }
}

async fn starts_are_those_of_a_range(bench: &Bench, drafts: &[Draft]) {
    for status in Status::ALL {
        for workflow in ["order", "refund", "nope"] {
            let is_within =
                |draft: &&Draft| draft.status == status && *draft.header.workflow_id == *workflow;
            let mut within: Vec<&Draft> = drafts.iter().filter(is_within).collect();
            within.sort_by_key(|draft| std::cmp::Reverse((draft.header.created_at, draft.row)));
            let start = |draft: &Draft| ExecutionStart {
                user_id: draft.header.user_id.clone(),
                definition_hash: Arc::clone(&draft.header.definition_hash),
                created_at: draft.header.created_at,
            };
            let expected: Vec<_> = within.into_iter().map(start).collect();
            let range = StartRange { workflow_id: workflow.to_owned(), status };
            for limit in [0, 3, 100] {
                let starts = read(bench.store.starts(&range, limit)).await;
                assert_eq!(starts, expected[..expected.len().min(limit)], "{range:?}, {limit}");
            }
        }
    }
}

fn end_of(draft: &Draft) -> ExecutionEnd {
    ExecutionEnd {
        workflow_id: Arc::clone(&draft.header.workflow_id),
        user_id: draft.header.user_id.clone(),
        created_at: draft.header.created_at,
        ended_at: draft.at,
        failed_step: draft.error.as_ref().and_then(|error| error.step_id.clone()),
    }
}

fn every_filter() -> Vec<ExecutionFilter> {
    let mut filters = Vec::new();
    for workflow in [None, Some("order"), Some("nope")] {
        for status in Status::ALL.into_iter().map(Some).chain([None]) {
            for user in [None, Some("u1")] {
                for (from, to) in
                    [(None, None), (Some(1005), None), (None, Some(1020)), (Some(1005), Some(1006))]
                {
                    filters.push(ExecutionFilter {
                        workflow_id: workflow.map(str::to_owned),
                        status,
                        user_id: user.map(str::to_owned),
                        from: from.map(Timestamp),
                        to: to.map(Timestamp),
                        ..ExecutionFilter::default()
                    });
                }
            }
        }
    }
    let of_replays = |filter: &ExecutionFilter| {
        let replay_of = Some("e01".to_owned());
        ExecutionFilter { replay_of, ..filter.clone() }
    };
    let replays: Vec<_> = filters.iter().map(of_replays).collect();
    filters.extend(replays);
    let searches = |filter: &ExecutionFilter| {
        let text = |text: &str| Some(text.to_owned());
        let none = ExecutionFilter::default();
        let searched = [
            ExecutionFilter { parent_id: text("e03"), ..none.clone() },
            ExecutionFilter { id_prefix: text("e1"), ..none.clone() },
            ExecutionFilter { id_prefix: text("e12"), parent_id: text("e04"), ..none.clone() },
            ExecutionFilter { error: text("FOUND 2"), ..none.clone() },
            ExecutionFilter { error: text("100%"), ..none.clone() },
            ExecutionFilter { error: text("found"), id_prefix: text("e2"), ..none.clone() },
            ExecutionFilter { parent_id: text("e04"), error: text("found"), ..none.clone() },
            ExecutionFilter { definition_hash: text("d2"), ..none.clone() },
            ExecutionFilter { definition_hash: text("d2"), id_prefix: text("e1"), ..none.clone() },
            ExecutionFilter { via: text("mcp"), ..none.clone() },
            ExecutionFilter { via: text("mcp:desk"), id_prefix: text("e1"), ..none },
        ];
        searched.map(|it| {
            let ExecutionFilter { parent_id, id_prefix, error, definition_hash, via, .. } = it;
            ExecutionFilter { parent_id, id_prefix, error, definition_hash, via, ..filter.clone() }
        })
    };
    let searches: Vec<_> = filters.iter().step_by(11).flat_map(searches).collect();
    filters.extend(searches);
    let of_ends = |filter: &ExecutionFilter| {
        let times = [(Some(2010), None), (None, Some(2020)), (Some(2010), Some(3015))];
        times.map(|(from, to)| ExecutionFilter {
            ended_from: from.map(Timestamp),
            ended_to: to.map(Timestamp),
            ..filter.clone()
        })
    };
    let ends: Vec<_> = filters.iter().flat_map(of_ends).collect();
    filters.extend(ends);
    filters
}

fn matches(filter: &ExecutionFilter, draft: &Draft) -> bool {
    let header = &draft.header;
    let ended = draft.status.is_terminal().then_some(draft.at);
    let replayed = draft.replayed_from.as_ref().map(|from| from.execution.as_str());
    let parent = header.parent.as_ref().map(|parent| parent.execution.as_str());
    let failure = draft.error.as_ref().map(|error| error.message.to_lowercase());
    let failure = failure.unwrap_or_default();
    filter.workflow_id.as_deref().is_none_or(|id| *id == *header.workflow_id)
        && filter.status.is_none_or(|status| status == draft.status)
        && filter.user_id.as_deref().is_none_or(|id| header.user_id.as_deref() == Some(id))
        && filter.from.is_none_or(|from| from <= header.created_at)
        && filter.to.is_none_or(|to| header.created_at < to)
        && filter.ended_from.is_none_or(|from| ended.is_some_and(|at| from <= at))
        && filter.ended_to.is_none_or(|to| ended.is_some_and(|at| at < to))
        && filter.replay_of.as_deref().is_none_or(|id| replayed == Some(id))
        && filter.parent_id.as_deref().is_none_or(|id| parent == Some(id))
        && filter.id_prefix.as_deref().is_none_or(|begin| header.id.as_str().starts_with(begin))
        && filter.error.as_deref().is_none_or(|text| failure.contains(&text.to_lowercase()))
        && filter.definition_hash.as_deref().is_none_or(|id| *id == *header.definition_hash)
        && filter.via.as_deref().is_none_or(|via| header.trace.via.as_deref() == Some(via))
}

async fn list_all(bench: &Bench, filter: &ExecutionFilter, limit: usize) -> Vec<Projection> {
    let pages = pages::every("executions", async |after: Option<Cursor>| {
        let (page, next) = read(bench.store.list(filter, after, limit)).await;
        assert!(page.len() <= limit, "a page has at most {limit} rows");
        (page, next)
    });
    pages.await.into_iter().flatten().collect()
}

pub(super) async fn running_executions_are_listed(mut bench: Bench) {
    let mut rows = Vec::new();
    for (id, status) in [
        ("a", Status::Running),
        ("b", Status::Suspended),
        ("c", Status::Running),
        ("d", Status::Running),
        ("e", Status::Completed),
    ] {
        let mut draft = bench.creation(id);
        draft.status = status;
        bench.take(&draft).await;
        rows.push(draft);
    }
    for (place, status) in [(1, Status::Running), (2, Status::Cancelled)] {
        let mut next = bench.continuation(&rows[place], vec![step_started(2)]);
        next.status = status;
        bench.take(&next).await;
    }
    let found = |place: usize| (rows[place].row, rows[place].header.id.clone());
    let all = read(bench.store.running(&SlotSet::all(), 0, 10)).await;
    assert_eq!(all, [found(0), found(1), found(3)], "running now, oldest first");
    let first = read(bench.store.running(&SlotSet::all(), 0, 2)).await;
    assert_eq!(first, [found(0), found(1)], "the first page");
    let rest = read(bench.store.running(&SlotSet::all(), rows[1].row, 2)).await;
    assert_eq!(rest, [found(3)], "the page after it");
}
