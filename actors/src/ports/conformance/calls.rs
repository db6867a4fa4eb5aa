//! Rules of asks of calls, and of what asks of all kinds have in common.

use std::sync::Arc;

use serde_json::json;

use super::asks::{self, listed, open_ones};
use super::bench::Bench;
use super::generations::{completed, record, with_steps, working};
use super::read;
use crate::domain::assignment::{AskRules, Assignee, Escalation};
use crate::domain::ids::ExecutionId;
use crate::domain::principal::{FORGOTTEN, Principal};
use crate::domain::time::Timestamp;
use crate::ports::store::{
    AnswerKey, Ask, AskAnswer, AskChange, AskContent, AskFilter, AskKind, AskRevision, AskState,
    AskSubject, AskedCall, AskedOf, AskedStep, Claim, ContinuationChange, GenerationRecord,
    GenerationWrite, NewAsk, OpenAskCounts, Status, StepOrigin,
};

pub(super) async fn run(bench: &impl AsyncFn() -> Bench) {
    rule!(asks_open_and_close_with_the_generation, bench().await);
    rule!(asks_name_the_step_that_asked_the_agent, bench().await);
    rule!(details_and_answers_come_back, bench().await);
    rule!(asks_are_due_in_order_until_they_close, bench().await);
    rule!(open_asks_are_counted, bench().await);
    rule!(an_ask_is_revised_at_its_revision, bench().await);
    rule!(asks_are_filtered_by_agent_assignment_and_claim, bench().await);
    rule!(a_user_is_removed_from_claims_and_answers, bench().await);
    rule!(a_user_is_removed_from_assignments, bench().await);
}

/// Returns an ask of a call.
pub(super) fn ask(id: &str, opened: i64) -> NewAsk {
    NewAsk {
        kind: AskKind::Approval,
        place: Arc::from(format!("call-{id}")),
        tool_name: Some(Arc::from("pay")),
        ..asks::ask(id, opened, None)
    }
}

pub(super) fn open(ask: NewAsk) -> AskChange {
    AskChange::Open(ask)
}

fn close(id: &str, at: i64, answer: Option<AskAnswer>) -> AskChange {
    let (id, state, at) = (Arc::from(id), AskState::Answered, Timestamp(at));
    AskChange::Close { id, state, at, answer: answer.map(Arc::new) }
}

fn answer(by: &str) -> AskAnswer {
    let by = Some(Arc::new(Principal::verified(by)));
    let key = Some(AnswerKey { scope: Arc::from("scope"), body: Arc::from("body") });
    let data = Arc::new(json!({ "approved": true, "text": "grün \u{0000}" }));
    AskAnswer { by, data, key }
}

/// Returns a write that changes asks and the continuation.
pub(super) fn put(record: &GenerationRecord, asks: Vec<AskChange>) -> GenerationWrite {
    let continuation = ContinuationChange::Put { body: Arc::from(r#"{"turn":1}"#), asks };
    GenerationWrite { continuation, ..with_steps(record, &[]) }
}

fn remove(record: &GenerationRecord, asks: Vec<AskChange>) -> GenerationWrite {
    let continuation = ContinuationChange::Remove { asks };
    GenerationWrite { continuation, ..with_steps(record, &[]) }
}

async fn asks_open_and_close_with_the_generation(bench: Bench) {
    let mut g1 = working("g1");
    g1.user_id = Some("ann".to_owned());
    let x = NewAsk { deadline: Some(Timestamp(90)), ..ask("x", 10) };
    record(&bench, put(&g1, vec![open(x), open(ask("y", 11))])).await;
    let shown = Ask {
        id: Arc::from("x"),
        kind: AskKind::Approval,
        state: AskState::Open,
        subject: AskSubject::Call(AskedCall {
            generation_id: Arc::from("g1"),
            agent_id: Arc::from("clerk"),
            tool_call_id: Arc::from("call-x"),
            tool_name: Arc::from("pay"),
            step: None,
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
    assert_eq!(read(bench.store.ask("x")).await, Some(shown.clone()), "an ask of a call");
    assert_eq!(listed(&bench, &open_ones()).await, ["x", "y"], "by deadline");

    record(&bench, with_steps(&g1, &[])).await;
    assert_eq!(listed(&bench, &open_ones()).await, ["x", "y"], "kept by other writes");
    let changes = vec![
        close("x", 20, None),
        open(ask("x", 21)),
        open(ask("z", 22)),
        close("z", 23, Some(answer("ann"))),
        close("unknown", 24, None),
    ];
    record(&bench, put(&g1, changes)).await;
    let closed = Ask { state: AskState::Answered, closed_at: Some(Timestamp(20)), ..shown };
    assert_eq!(read(bench.store.ask("x")).await, Some(closed), "it is not opened again");
    assert_eq!(listed(&bench, &open_ones()).await, ["y"]);
    assert_eq!(read(bench.store.ask_content("z")).await.answer, Some(answer("ann")), "at once");
    let of = async |id| {
        let own = read(bench.store.asks_of_generation(id)).await.into_iter();
        own.map(|ask| ask.id.to_string()).collect::<Vec<_>>()
    };
    record(&bench, put(&working("g2"), vec![open(ask("other", 25))])).await;
    assert_eq!(of("g1").await, ["x", "y", "z"], "as they opened, closed ones too");
    assert_eq!(of("unknown").await, [""; 0]);
    record(&bench, remove(&working("g2"), vec![close("other", 26, None)])).await;
    record(&bench, remove(&completed("g1"), vec![close("y", 30, None)])).await;
    assert_eq!(
        listed(&bench, &AskFilter::default()).await,
        ["y", "other", "z", "x"],
        "last closed first"
    );
}

async fn asks_name_the_step_that_asked_the_agent(mut bench: Bench) {
    let first = bench.creation("a");
    bench.take(&first).await;
    let of_step = |id: &str, execution: &str| {
        let execution_id = ExecutionId::trusted(execution);
        let origin = Some(StepOrigin { execution_id, path: Arc::from("all/draft") });
        GenerationRecord { origin, ..working(id) }
    };
    let workflow_id = Arc::clone(&first.header.workflow_id);
    let step = AskedStep {
        execution_id: ExecutionId::trusted("a"),
        workflow_id: Arc::clone(&workflow_id),
        path: Arc::from("all/draft"),
    };
    let rows = [
        (of_step("g1", "a"), "x", Some(step)),
        (of_step("g2", "unknown"), "y", None),
        (working("g3"), "z", None),
    ];
    for (generation, id, step) in rows {
        record(&bench, put(&generation, vec![open(ask(id, 10))])).await;
        let found = read(bench.store.ask(id)).await.expect("it is stored");
        let named = match found.subject {
            AskSubject::Call(call) => call.step,
            AskSubject::Step(of_execution) => Some(of_execution),
        };
        assert_eq!(named, step, "{id}");
    }
    let of_workflow = |id: &str| AskFilter { workflow_id: Some(id.to_owned()), ..open_ones() };
    assert_eq!(listed(&bench, &of_workflow(&workflow_id)).await, ["x"]);
    assert_eq!(listed(&bench, &of_workflow("other")).await, [""; 0]);
}

async fn details_and_answers_come_back(mut bench: Bench) {
    let details = Some(Arc::new(json!({ "input": { "amount": 12.5, "to": "zoë \u{0000}" } })));
    let x = NewAsk { details: details.clone(), ..ask("x", 10) };
    record(&bench, put(&working("g1"), vec![open(x), open(ask("y", 11))])).await;
    let of = async |id| read(bench.store.ask_content(id)).await;
    let content = AskContent { details: details.clone(), answer: None };
    assert_eq!(of("x").await, content, "without an answer");
    assert_eq!(of("y").await, AskContent::default(), "without details");
    assert_eq!(of("unknown").await, AskContent::default());

    let unknown = AskAnswer { by: None, data: Arc::new(json!(null)), key: None };
    let changes = vec![close("x", 20, Some(answer("ann"))), close("y", 20, Some(unknown.clone()))];
    record(&bench, put(&working("g1"), changes)).await;
    assert_eq!(of("x").await, AskContent { details, answer: Some(answer("ann")) });
    assert_eq!(of("y").await, AskContent { details: None, answer: Some(unknown) });
    let again = vec![close("x", 30, Some(answer("bob")))];
    record(&bench, put(&working("g1"), again)).await;
    assert_eq!(of("x").await.answer, Some(answer("ann")), "answered once");

    let mut first = bench.creation("a");
    (first.status, first.asks) = (Status::Suspended, vec![open(asks::ask("s", 1, None))]);
    bench.take(&first).await;
    let content = read(bench.store.ask_content("s")).await;
    assert_eq!(content, AskContent::default(), "facts have those of executions");
}

async fn due_at(bench: &Bench, now: i64, limit: usize) -> Vec<String> {
    let due = read(bench.store.due_asks(Timestamp(now), None, limit)).await;
    due.asks.iter().map(|ask| ask.id.to_string()).collect()
}

/// Returns all that is due, read in pages.
async fn due_in_pages(bench: &Bench, now: i64, limit: usize) -> Vec<String> {
    let (mut after, mut found) = (None, Vec::new());
    loop {
        let page = read(bench.store.due_asks(Timestamp(now), after, limit)).await;
        assert!(page.asks.len() <= limit);
        found.extend(page.asks.iter().map(|ask| ask.id.to_string()));
        let Some(next) = page.next else { return found };
        assert!(after < Some(next), "pages go forward");
        after = Some(next);
    }
}

async fn asks_are_due_in_order_until_they_close(mut bench: Bench) {
    let due = |id, at| open(NewAsk { next_due: Some(Timestamp(at)), ..ask(id, 1) });
    let asks = vec![due("late", 30), due("soon", 10), open(ask("never", 1)), due("then", 20)];
    record(&bench, put(&working("g1"), asks)).await;
    let mut first = bench.creation("a");
    let of_step = NewAsk { next_due: Some(Timestamp(15)), ..asks::ask("step", 1, None) };
    (first.status, first.asks) = (Status::Suspended, vec![open(of_step)]);
    bench.take(&first).await;

    assert_eq!(due_at(&bench, 9, 10).await, [""; 0], "nothing yet");
    assert_eq!(due_at(&bench, 10, 10).await, ["soon"], "at that time");
    assert_eq!(due_at(&bench, 20, 10).await, ["soon", "step", "then"], "of both kinds");
    assert_eq!(due_at(&bench, 99, 2).await, ["soon", "step"], "at most the limit");
    record(&bench, put(&working("g1"), ["s1", "s2", "s3"].map(|id| due(id, 20)).into())).await;
    let all = ["soon", "step", "then", "s1", "s2", "s3", "late"];
    for limit in [1, 2, 3, 7, 8] {
        assert_eq!(due_in_pages(&bench, 30, limit).await, all, "pages of {limit}");
    }
    assert_eq!(due_in_pages(&bench, 20, 2).await, all[..6], "no later ones");
    let closed = ["s1", "s2", "s3"].map(|id| close(id, 40, None));
    record(&bench, put(&working("g1"), closed.into())).await;
    let moved = AskRevision {
        id: Arc::from("soon"),
        revision: 0,
        rules: AskRules::default(),
        claim: None,
        next_due: Some(Timestamp(40)),
    };
    assert_eq!(bench.store.revise_ask(moved).await, Ok(true));
    assert_eq!(due_at(&bench, 99, 10).await, ["step", "then", "late", "soon"], "moved");
    record(&bench, put(&working("g1"), vec![close("then", 50, None)])).await;
    assert_eq!(due_at(&bench, 99, 10).await, ["step", "late", "soon"], "not after it closed");
}

async fn open_asks_are_counted(mut bench: Bench) {
    let counts = async |bench: &Bench| read(bench.store.open_ask_counts()).await;
    assert_eq!(counts(&bench).await, OpenAskCounts::default(), "none");
    let input = NewAsk { kind: AskKind::Input, ..ask("i", 9) };
    let asks = vec![open(ask("x", 5)), open(input), open(ask("y", 7))];
    record(&bench, put(&working("g1"), asks)).await;
    let mut first = bench.creation("a");
    (first.status, first.asks) = (Status::Suspended, vec![open(asks::ask("s", 6, None))]);
    bench.take(&first).await;
    let all = OpenAskCounts {
        by_kind: vec![(AskKind::Step, 1), (AskKind::Approval, 2), (AskKind::Input, 1)],
        oldest: Some(Timestamp(5)),
    };
    assert_eq!(counts(&bench).await, all);
    record(&bench, put(&working("g1"), vec![close("x", 9, None), close("y", 9, None)])).await;
    let open = OpenAskCounts {
        by_kind: vec![(AskKind::Step, 1), (AskKind::Input, 1)],
        oldest: Some(Timestamp(6)),
    };
    assert_eq!(counts(&bench).await, open, "without closed ones");
}

fn assigned(to: &[&str]) -> AskRules {
    let to = to.iter().map(|text| text.parse::<Assignee>().expect("an assignee"));
    AskRules { to: to.collect(), remind_ms: vec![5], ..AskRules::default() }
}

fn claimed(by: &str, until: i64) -> Option<Claim> {
    Some(Claim { by: Arc::from(by), until: Timestamp(until) })
}

fn revision(id: &str, revision: u64, rules: AskRules, claim: Option<Claim>) -> AskRevision {
    AskRevision { id: Arc::from(id), revision, rules, claim, next_due: None }
}

async fn an_ask_is_revised_at_its_revision(bench: Bench) {
    let x = NewAsk { rules: assigned(&["user:ann", "!self"]), ..ask("x", 1) };
    record(&bench, put(&working("g1"), vec![open(x)])).await;
    let first = read(bench.store.ask("x")).await.expect("it is stored");
    assert_eq!((first.revision, &first.rules), (0, &assigned(&["user:ann", "!self"])));
    assert_eq!(read(bench.store.ask_rules("x")).await.as_ref(), Some(&first.rules));
    assert_eq!(read(bench.store.ask_rules("unknown")).await, None);
    record(&bench, put(&working("g2"), vec![open(ask("everyone", 1))])).await;
    assert_eq!(read(bench.store.ask_rules("everyone")).await, Some(AskRules::default()));

    let to_role = assigned(&["role:support"]);
    let change = revision("x", 0, to_role.clone(), claimed("bob", 50));
    assert_eq!(bench.store.revise_ask(change.clone()).await, Ok(true));
    let second = Ask { revision: 1, rules: to_role, claim: claimed("bob", 50), ..first };
    assert_eq!(read(bench.store.ask("x")).await, Some(second.clone()), "rules and claim");
    assert_eq!(read(bench.store.ask_rules("x")).await.as_ref(), Some(&second.rules));
    assert_eq!(bench.store.revise_ask(change).await, Ok(false), "an older revision");
    let early = revision("x", 2, AskRules::default(), None);
    assert_eq!(bench.store.revise_ask(early).await, Ok(false), "a later revision");
    let unknown = revision("unknown", 0, AskRules::default(), None);
    assert_eq!(bench.store.revise_ask(unknown).await, Ok(false), "an unknown ask");
    assert_eq!(read(bench.store.ask("x")).await, Some(second.clone()), "nothing has changed");

    let released = revision("x", 1, AskRules::default(), None);
    assert_eq!(bench.store.revise_ask(released).await, Ok(true));
    let third = Ask { revision: 2, rules: AskRules::default(), claim: None, ..second };
    assert_eq!(read(bench.store.ask("x")).await, Some(third), "without rules and claim");
    record(&bench, put(&working("g1"), vec![close("x", 9, None)])).await;
    let late = revision("x", 2, AskRules::default(), claimed("bob", 50));
    assert_eq!(bench.store.revise_ask(late).await, Ok(false), "it is closed");
}

async fn asks_are_filtered_by_agent_assignment_and_claim(mut bench: Bench) {
    for (id, agent, rules) in [
        ("g1", "clerk", assigned(&["user:ann"])),
        ("g2", "cook", assigned(&["role:support", "!self"])),
        ("g3", "clerk", AskRules::default()),
    ] {
        let agent_id = agent.to_owned();
        let of_agent =
            GenerationRecord { agent_id, user_id: Some("bob".to_owned()), ..working(id) };
        let one = NewAsk { rules, ..ask(&format!("{id}-x"), 1) };
        record(&bench, put(&of_agent, vec![open(one)])).await;
    }
    let mut first = bench.creation("a");
    let of_step = NewAsk { rules: assigned(&["user:ann"]), ..asks::ask("step", 2, None) };
    (first.status, first.asks) = (Status::Suspended, vec![open(of_step)]);
    bench.take(&first).await;
    let claims = [("g2-x", claimed("cem", 50)), ("step", claimed("ann", 90))];
    for (id, claim) in claims {
        let rules = read(bench.store.ask(id)).await.expect("it is stored").rules;
        assert_eq!(bench.store.revise_ask(revision(id, 0, rules, claim)).await, Ok(true));
    }

    let open = open_ones;
    let of_agent = |agent: &str| AskFilter { agent_id: Some(agent.to_owned()), ..open() };
    let to = |to| AskFilter { to: Some(to), ..open() };
    let anyone = |user: Option<&str>, roles: &[&str]| {
        let roles = roles.iter().map(|role| (*role).to_owned()).collect();
        to(AskedOf::Answerable { user: user.map(str::to_owned), roles })
    };
    let claimed_at = |now, is_claimed| {
        let (now, is_claimed) = (Timestamp(now), Some(is_claimed));
        AskFilter { now, is_claimed, ..open() }
    };
    let of_order = AskFilter { workflow_id: Some("order".to_owned()), ..open() };
    let rows: [(AskFilter, &[&str]); 13] = [
        (of_agent("clerk"), &["g1-x", "g3-x"]),
        (of_agent("cook"), &["g2-x"]),
        (of_agent("order"), &[]),
        (of_order.clone(), &["step"]),
        (AskFilter { agent_id: Some("clerk".to_owned()), ..of_order }, &[]),
        (to(AskedOf::Unassigned), &["g3-x"]),
        (to(AskedOf::User("ann".to_owned())), &["g1-x", "step"]),
        (to(AskedOf::Role("support".to_owned())), &["g2-x"]),
        (anyone(Some("ann"), &[]), &["g1-x", "g3-x", "step"]),
        (anyone(Some("bob"), &["support"]), &["g3-x"]),
        (claimed_at(49, true), &["g2-x", "step"]),
        (claimed_at(50, true), &["step"]),
        (claimed_at(50, false), &["g1-x", "g2-x", "g3-x"]),
    ];
    for (filter, expected) in rows {
        assert_eq!(listed(&bench, &filter).await, expected, "{filter:?}");
        let one_by_one = asks::paged(&bench, &filter, 1).await.concat();
        assert_eq!(one_by_one, expected, "one by one: {filter:?}");
    }
}

async fn a_user_is_removed_from_claims_and_answers(bench: Bench) {
    let asks = ["x", "y", "z"].map(|id| open(ask(id, 1))).to_vec();
    record(&bench, put(&working("g1"), asks)).await;
    for (id, by) in [("x", "lea"), ("y", "ann"), ("z", "lea")] {
        let claim = revision(id, 0, AskRules::default(), claimed(by, 50));
        assert_eq!(bench.store.revise_ask(claim).await, Ok(true));
    }
    let of = |id| open(ask(id, 2));
    let answers = vec![
        of("by-lea"),
        of("by-ann"),
        close("by-lea", 3, Some(answer("lea"))),
        close("by-ann", 3, Some(answer("ann"))),
        close("z", 3, None),
    ];
    record(&bench, put(&working("g2"), answers)).await;
    assert_eq!(bench.store.forget_user("lea".to_owned()).await, Ok(0), "no conversations");
    let claim_of = async |id| {
        let ask = read(bench.store.ask(id)).await.expect("it is kept");
        (ask.claim.map(|claim| claim.by.to_string()), ask.revision)
    };
    assert_eq!(claim_of("x").await, (None, 2), "the claim ends");
    assert_eq!(claim_of("y").await, (Some("ann".to_owned()), 1), "another one stays");
    assert_eq!(claim_of("z").await, (None, 2), "of a closed one, too");
    let answer_of = async |id| read(bench.store.ask_content(id)).await.answer;
    let by = Some(Arc::new(Principal::verified(FORGOTTEN)));
    let struck = AskAnswer { by, data: Arc::new(json!(null)), key: None };
    assert_eq!(answer_of("by-lea").await, Some(struck));
    assert_eq!(answer_of("by-ann").await, Some(answer("ann")));
}

async fn a_user_is_removed_from_assignments(bench: Bench) {
    let of = |id: &str, to: &[&str], later: &[&str]| {
        let named = |to: &[&str]| to.iter().map(|it| it.parse().expect("an assignee")).collect();
        let escalate = Some(Escalation { after_ms: 9, to: named(later) });
        let rules = AskRules { to: named(to), escalate, ..AskRules::default() };
        open(NewAsk { rules, ..ask(id, 1) })
    };
    let odd = "user:l\"ea\" \\ zoë";
    let asks = vec![
        of("alone", &["user:lea"], &[]),
        of("later", &["role:lea", "user:ann"], &["user:lea"]),
        of("others", &["user:ann", "user:xlea", "user:lea.x"], &["!self"]),
        of("odd", &[odd], &[]),
        open(ask("everyone", 1)),
    ];
    record(&bench, put(&working("g1"), asks)).await;
    let shown = async |id| {
        let ask = read(bench.store.ask(id)).await.expect("it is kept");
        let users: Vec<_> = ask.rules.users().map(ToString::to_string).collect();
        (users.join(" "), ask.revision)
    };
    for user in ["lea", "l\"ea\" \\ zoë"] {
        assert_eq!(bench.store.forget_user(user.to_owned()).await, Ok(0), "no conversations");
    }
    let rows = [
        ("alone", FORGOTTEN, 1),
        ("later", "ann (forgotten)", 1),
        ("others", "ann xlea lea.x", 0),
        ("odd", FORGOTTEN, 1),
        ("everyone", "", 0),
    ];
    for (id, users, revision) in rows {
        assert_eq!(shown(id).await, (users.to_owned(), revision), "{id}");
    }
}
