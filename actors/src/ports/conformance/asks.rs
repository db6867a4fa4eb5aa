//! Rules of asks of executions, and of lists.

use std::sync::Arc;

use super::bench::{Bench, Draft, completed, step_started};
use super::{pages, read};
use crate::domain::assignment::AskRules;
use crate::domain::ids::ExecutionId;
use crate::domain::time::Timestamp;
use crate::ports::store::{
    Ask, AskChange, AskCursor, AskFilter, AskKind, AskState, AskSubject, AskedStep, MissingAsks,
    NewAsk, Status,
};

pub(super) async fn run(bench: &impl AsyncFn() -> Bench) {
    rule!(asks_open_and_close_with_the_facts, bench().await);
    rule!(open_asks_are_listed_by_deadline, bench().await);
    rule!(asks_are_filtered, bench().await);
    rule!(asks_are_deleted_with_their_execution, bench().await);
    rule!(asks_of_older_versions_are_filled_in, bench().await);
}

pub(super) fn ask(id: &str, opened: i64, deadline: Option<i64>) -> NewAsk {
    NewAsk {
        id: Arc::from(id),
        kind: AskKind::Step,
        place: Arc::from(format!("all/{id}")),
        tool_name: None,
        reason: Arc::from("may I?"),
        opened_at: Timestamp(opened),
        deadline: deadline.map(Timestamp),
        rules: AskRules::default(),
        next_due: None,
        details: None,
    }
}

fn open(id: &str, opened: i64, deadline: Option<i64>) -> AskChange {
    AskChange::Open(ask(id, opened, deadline))
}

fn close(id: &str, state: AskState, at: i64) -> AskChange {
    AskChange::Close { id: Arc::from(id), state, at: Timestamp(at), answer: None }
}

/// Appends to an execution, which stays suspended.
async fn change(bench: &mut Bench, before: &Draft, asks: Vec<AskChange>) -> Draft {
    let seq = before.last_seq + 1;
    let mut next = bench.continuation(before, vec![step_started(seq)]);
    (next.status, next.asks) = (Status::Suspended, asks);
    bench.take(&next).await;
    next
}

pub(super) async fn listed(bench: &Bench, filter: &AskFilter) -> Vec<String> {
    paged(bench, filter, usize::MAX).await.concat()
}

/// Returns the ids of all asks, page by page.
pub(super) async fn paged(bench: &Bench, filter: &AskFilter, limit: usize) -> Vec<Vec<String>> {
    pages::every("asks", async |after: Option<AskCursor>| {
        let page = read(bench.store.asks(filter, after, limit)).await;
        assert!(page.asks.len() <= limit, "at most the limit");
        (page.asks.iter().map(|ask| ask.id.to_string()).collect(), page.next)
    })
    .await
}

pub(super) fn open_ones() -> AskFilter {
    AskFilter { is_open: true, ..AskFilter::default() }
}

async fn asks_open_and_close_with_the_facts(mut bench: Bench) {
    let mut first = bench.creation("a");
    first.header.user_id = Some(Arc::from("ann"));
    (first.status, first.asks) = (Status::Suspended, vec![open("x", 10, Some(90))]);
    bench.take(&first).await;
    let shown = Ask {
        id: Arc::from("x"),
        kind: AskKind::Step,
        state: AskState::Open,
        subject: AskSubject::Step(AskedStep {
            execution_id: ExecutionId::trusted("a"),
            workflow_id: Arc::clone(&first.header.workflow_id),
            path: Arc::from("all/x"),
        }),
        user_id: Some(Arc::from("ann")),
        reason: Arc::from("may I?"),
        opened_at: Timestamp(10),
        deadline: Some(Timestamp(90)),
        closed_at: None,
        revision: 0,
        rules: AskRules::default(),
        claim: None,
    };
    assert_eq!(read(bench.store.ask("x")).await, Some(shown.clone()), "an ask");
    assert_eq!(read(bench.store.ask("y")).await, None, "no ask");

    let both = vec![open("y", 20, None), close("x", AskState::Answered, 25)];
    let second = change(&mut bench, &first, both).await;
    let answered =
        Ask { state: AskState::Answered, closed_at: Some(Timestamp(25)), ..shown.clone() };
    assert_eq!(read(bench.store.ask("x")).await, Some(answered.clone()), "answered");
    assert_eq!(listed(&bench, &open_ones()).await, ["y"], "those that are open");

    let again = vec![
        close("x", AskState::Withdrawn, 30),
        open("x", 31, None),
        close("unknown", AskState::Expired, 32),
        open("z", 33, None),
        close("z", AskState::Expired, 34),
    ];
    let third = change(&mut bench, &second, again).await;
    assert_eq!(read(bench.store.ask("x")).await, Some(answered), "closed once");
    let opened_and_closed = read(bench.store.ask("z")).await.map(|ask| (ask.state, ask.closed_at));
    assert_eq!(opened_and_closed, Some((AskState::Expired, Some(Timestamp(34)))), "in one append");

    let mut stale = bench.continuation(&second, vec![step_started(9)]);
    stale.asks = vec![close("y", AskState::Answered, 40)];
    assert!(bench.append(&stale).await.is_err());
    assert_eq!(listed(&bench, &open_ones()).await, ["y"], "a refusal changes nothing");
    change(&mut bench, &third, vec![close("y", AskState::Withdrawn, 50)]).await;
    assert_eq!(listed(&bench, &AskFilter::default()).await, ["y", "z", "x"], "last closed first");
    assert_eq!(listed(&bench, &open_ones()).await, [""; 0]);
}

async fn open_asks_are_listed_by_deadline(mut bench: Bench) {
    let mut first = bench.creation("a");
    first.status = Status::Suspended;
    first.asks = vec![
        open("late", 1, Some(900)),
        open("none-2", 4, None),
        open("soon", 5, Some(100)),
        open("none-1", 3, None),
        open("soon-older", 2, Some(100)),
        open("soon-too", 5, Some(100)),
    ];
    bench.take(&first).await;
    let ordered = ["soon-older", "soon", "soon-too", "late", "none-1", "none-2"];
    for limit in 1..=7 {
        let pages = paged(&bench, &open_ones(), limit).await;
        assert_eq!(pages.concat(), ordered, "in pages of {limit}");
    }
    let none = read(bench.store.asks(&open_ones(), None, 0)).await;
    assert_eq!((none.asks.len(), none.next), (0, None), "no page");
}

async fn asks_are_filtered(mut bench: Bench) {
    for (id, workflow, user) in
        [("a", "order", Some("ann")), ("b", "refund", Some("ann")), ("c", "order", None)]
    {
        let mut draft = bench.creation(id);
        draft.header.workflow_id = Arc::from(workflow);
        draft.header.user_id = user.map(Arc::from);
        draft.status = Status::Suspended;
        let function = NewAsk { kind: AskKind::Function, ..ask(&format!("{id}-f"), 2, None) };
        let failed = NewAsk {
            kind: AskKind::Compensation,
            place: Arc::from("manager:compensate"),
            ..ask(&format!("{id}-c"), 4, None)
        };
        draft.asks = vec![
            open(&format!("{id}-s"), 1, Some(100)),
            AskChange::Open(function),
            AskChange::Open(failed),
            open(&format!("{id}-e"), 3, Some(50)),
            close(&format!("{id}-e"), AskState::Expired, 60),
        ];
        bench.take(&draft).await;
    }
    let order = || Some("order".to_owned());
    let ann = || Some("ann".to_owned());
    let due_before = |at| Some(Timestamp(at));
    let open = open_ones;
    let rows: [(AskFilter, &[&str]); 10] = [
        (AskFilter { workflow_id: order(), ..open() }, &["a-s", "c-s", "a-f", "c-f", "a-c", "c-c"]),
        (AskFilter { user_id: ann(), ..open() }, &["a-s", "b-s", "a-f", "b-f", "a-c", "b-c"]),
        (AskFilter { workflow_id: order(), user_id: ann(), ..open() }, &["a-s", "a-f", "a-c"]),
        (AskFilter { kind: Some(AskKind::Function), ..open() }, &["a-f", "b-f", "c-f"]),
        (AskFilter { kind: Some(AskKind::Compensation), ..open() }, &["a-c", "b-c", "c-c"]),
        (AskFilter { due_before: due_before(101), user_id: ann(), ..open() }, &["a-s", "b-s"]),
        (AskFilter { due_before: due_before(100), ..open() }, &[]),
        (AskFilter { workflow_id: order(), ..AskFilter::default() }, &["c-e", "a-e"]),
        (AskFilter { user_id: ann(), ..AskFilter::default() }, &["b-e", "a-e"]),
        (AskFilter { kind: Some(AskKind::Function), ..AskFilter::default() }, &[]),
    ];
    for (filter, expected) in rows {
        assert_eq!(listed(&bench, &filter).await, expected, "{filter:?}");
        assert_eq!(paged(&bench, &filter, 1).await.concat(), expected, "one by one: {filter:?}");
    }
    let counts = read(bench.store.open_ask_counts()).await;
    let expected = [AskKind::Step, AskKind::Function, AskKind::Compensation].map(|kind| (kind, 3));
    assert_eq!(counts.by_kind, expected);
}

async fn asks_are_deleted_with_their_execution(mut bench: Bench) {
    let mut first = bench.creation("a");
    (first.status, first.asks) = (Status::Suspended, vec![open("x", 1, None)]);
    bench.take(&first).await;
    let mut ended = bench.continuation(&first, vec![completed(2)]);
    (ended.status, ended.asks) = (Status::Completed, vec![close("x", AskState::Withdrawn, 2)]);
    bench.take(&ended).await;
    assert_eq!(listed(&bench, &AskFilter::default()).await, ["x"]);
    assert_eq!(bench.store.drop_executions(vec![first.row]).await, Ok(1));
    assert_eq!(read(bench.store.ask("x")).await, None);
    assert_eq!(listed(&bench, &AskFilter::default()).await, [""; 0]);
}

async fn asks_of_older_versions_are_filled_in(mut bench: Bench) {
    let mut first = bench.creation("a");
    first.status = Status::Suspended;
    bench.take(&first).await;
    let second = change(&mut bench, &first, vec![open("x", 10, None), open("y", 11, None)]).await;
    let missing = |revision, asks: Vec<NewAsk>| MissingAsks {
        header: Arc::new(second.header.clone()),
        row: second.row,
        revision,
        asks,
        at: Timestamp(70),
    };
    let late = missing(second.revision - 1, vec![ask("z", 12, None)]);
    assert_eq!(bench.store.put_asks(late).await, Ok(false), "it has changed since");
    assert_eq!(listed(&bench, &open_ones()).await, ["x", "y"]);

    let now = || missing(second.revision, vec![ask("y", 11, None), ask("z", 12, None)]);
    for _ in 0..2 {
        assert_eq!(bench.store.put_asks(now()).await, Ok(true));
        assert_eq!(listed(&bench, &open_ones()).await, ["y", "z"]);
    }
    let withdrawn = read(bench.store.ask("x")).await.map(|ask| (ask.state, ask.closed_at));
    assert_eq!(withdrawn, Some((AskState::Withdrawn, Some(Timestamp(70)))));
    assert_eq!(read(bench.store.executions_without_asks(0, 10)).await, [], "all are known");
}
