//! Rules of erasing a user from executions.

use std::sync::Arc;

use serde_json::{Value, json};

use super::bench::{Bench, recorded, started};
use crate::domain::fact::{Fact, Others, Recorded, ResumedBy, Suspension};
use crate::domain::principal::{FORGOTTEN, Principal};
use crate::domain::time::Timestamp;

fn name_of(by: Option<&Arc<Principal>>) -> &str {
    by.map_or("", |by| &by.id)
}

/// Erases a user from records that nest deeper than a parser's default limit.
pub(super) async fn deeply_nested_facts_of_a_user_are_erased(mut bench: Bench) {
    let by = Some(Arc::new(Principal::verified("lea")));
    let deep = (0..300).fold(json!("lea"), |inner, _| json!([inner]));
    let mut first = bench.creation("deep");
    let (path, data) = (Arc::from("a"), Arc::new(deep));
    let completed = Fact::StepResumed { path, data, by: ResumedBy::Deadline, id: None };
    first.facts = vec![Recorded { by: by.clone(), ..started(1) }, recorded(2, completed.clone())];
    first.last_seq = 2;
    bench.take(&first).await;
    let third = Recorded { by, ..recorded(3, completed.clone()) };
    let second = bench.continuation(&first, vec![third]);
    bench.take(&second).await;
    assert_eq!(bench.store.forget_user("lea".to_owned()).await, Ok(0));
    let facts = bench.facts("deep", 0, 10).await;
    let named: Vec<_> = facts.iter().map(|it| name_of(it.by.as_ref())).collect();
    assert_eq!(named, [FORGOTTEN, "", FORGOTTEN]);
    assert_eq!(facts[1].fact, completed);
}

/// Erases name and data of a user wherever they are stored.
pub(super) async fn facts_and_history_of_a_user_are_erased(mut bench: Bench) {
    let by = |id: &str| Some(Arc::new(Principal::verified(id)));
    let done = |seq: u64, id: &str| {
        let (path, data) = (Arc::from("a"), Arc::new(json!({ "note": id })));
        let fact = Fact::StepResumed { path, data, by: ResumedBy::Caller, id: None };
        Recorded { by: by(id), ..recorded(seq, fact) }
    };
    let held = |id: &str| Suspension {
        id: Some(Arc::from("5f1e")),
        reason: Arc::from("stop"),
        suspended_at: Timestamp(1000),
        step_id: Arc::from("a"),
        path: Arc::from("a"),
        step_index: 0,
        payload: Some(Arc::new(json!({ "id": "lea", "verified": true }))),
        deadline: None,
        by: by(id),
        pause: false,
        payload_omitted: false,
    };
    let mut first = bench.creation("x");
    first.facts = vec![Recorded { by: by("lea"), ..started(1) }];
    bench.take(&first).await;
    let mut second =
        bench.continuation(&first, vec![done(2, "lea"), done(3, "ann"), done(4, "lea")]);
    second.suspension = Some(held("lea"));
    second.others = Some(Others { suspensions: vec![held("ann"), held("lea")], omitted: 0 });
    second.snapshot = Some(br#"{"by":{"id":"lea","verified":true}}"#.to_vec());
    bench.take(&second).await;
    assert_eq!(bench.store.forget_user("lea".to_owned()).await, Ok(0), "no conversations");
    let facts = bench.facts("x", 0, 10).await;
    let named: Vec<_> = facts.iter().map(|it| name_of(it.by.as_ref())).collect();
    assert_eq!(named, [FORGOTTEN, FORGOTTEN, "ann", FORGOTTEN]);
    let noted = facts.iter().filter_map(|it| {
        let Fact::StepResumed { data, .. } = &it.fact else { return None };
        Some(Value::clone(data))
    });
    let noted: Vec<_> = noted.collect();
    assert_eq!(noted, [json!(null), json!({ "note": "ann" }), json!(null)]);
    let stored = bench.load("x").await;
    assert_eq!(stored.snapshot, None, "the snapshot is removed");
    let shown = stored.projection.suspension.expect("it is suspended");
    assert_eq!(name_of(shown.by.as_ref()), FORGOTTEN);
    assert_eq!(shown.payload, held("x").payload, "payloads of steps are kept");
    let others = &stored.projection.others.expect("others wait").suspensions;
    let others: Vec<_> = others.iter().map(|it| name_of(it.by.as_ref())).collect();
    assert_eq!(others, ["ann", FORGOTTEN]);
    // the execution continues, and a returning user may act on it
    let third = bench.continuation(&second, vec![done(5, "lea")]);
    bench.take(&third).await;
    assert_eq!(name_of(bench.facts("x", 4, 1).await[0].by.as_ref()), "lea");
    assert_eq!(bench.store.forget_user("lea".to_owned()).await, Ok(0));
    assert_eq!(name_of(bench.facts("x", 4, 1).await[0].by.as_ref()), FORGOTTEN);
}
