//! Workflows whose conditions and values are closures.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use greenroom_actors::domain::expression;
use greenroom_actors::domain::status::Status;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::Scope;
use crate::builder::{
    Block, Compensation, Mapping, OnError, Retry, Step, Suspend, Tool, Workflow, map, tool,
};
use crate::step::{StepContext, StepError};
use crate::store::MemoryStore;
use crate::{Greenroom, RunError};

#[derive(Serialize, Deserialize)]
struct Priced {
    lines: Vec<String>,
    cents: u64,
}

async fn price(lines: Vec<String>) -> Result<Priced, StepError> {
    let cents = lines.len() as u64 * 40;
    Ok(Priced { lines, cents })
}

async fn count(_: Value, step: StepContext) -> Result<usize, StepError> {
    Ok(step.output::<Priced>("price")?.lines.len())
}

/// Prices lines, asks if they are expensive, reserves each, and pays in another workflow.
fn order() -> Workflow {
    let line = Block::new("line").step(Step::map("name", json!("item ~ '!'")));
    let gift = Block::new("gift").step(Step::map("wrap", json!("'wrapped'")));
    let long = Block::new("long").step(Step::map("cart", json!("'a cart'")));
    let round = Block::new("round").step(Step::map("grow", json!("data + data")));
    Workflow::new("order")
        .step(Step::call("price", price))
        .step(
            Step::map("approve", json!("resume | default(data.cents, true)")).suspend(
                Suspend::when(|cx: &Scope| Ok(cx.data::<Priced>()?.cents > 100))
                    .payload(|cx: &Scope| Ok(json!({ "cents": cx.data::<Priced>()?.cents }))),
            ),
        )
        .step(Step::for_each("each", |cx: &Scope| Ok(cx.output::<Priced>("price")?.lines), line))
        .step(Step::call("count", count))
        .step(Step::when("gift", |cx: &Scope| Ok(cx.data::<usize>()? > 2), gift))
        .step(
            Step::branch(
                "carried",
                [("input == ['box']", Block::new("box").step(Step::map("arm", json!("'an arm'"))))],
            )
            .case(|cx: &Scope| Ok(cx.output::<usize>("count")? > 2), long),
        )
        .step(Step::do_until("grown", round, |cx: &Scope| Ok(cx.data::<String>()?.len() > 20), 9))
        .step(
            Step::workflow("pay", "payment")
                .input(|cx: &Scope| Ok(json!({ "cents": cx.output::<u64>("approve")? }))),
        )
        .result(json!({ "each": "steps.each", "grown": "steps.grown", "paid": "steps.pay" }))
}

fn shop() -> Greenroom {
    let payment = Workflow::new("payment").step(Step::map("done", json!("input.cents")));
    let buy = Tool::function("buy", "d", json!({ "type": "object" }), |it, _| async { Ok(it) });
    Greenroom::new()
        .configure(|config| config.server.port = 0)
        .store(Arc::new(MemoryStore::new()))
        .workflow(payment)
        .define_tool(buy)
}

#[tokio::test]
async fn closures_decide_what_runs_and_with_which_values() {
    let server = shop().workflow(order()).start().await.unwrap();
    let handle = server.handle();
    let run = handle.start("order", &json!(["lamp", "sofa", "bed"])).await.unwrap();
    let state = run.settled().await.unwrap();
    assert_eq!(state.status, Status::Suspended);
    let payload = state.suspension.and_then(|it| it.payload.clone());
    assert_eq!(payload.as_deref(), Some(&json!({ "cents": 120 })));
    run.resume(&json!(99)).await.unwrap();
    let grown = "a cart".repeat(4);
    assert_eq!(
        run.result().await.unwrap(),
        json!({ "each": ["lamp!", "sofa!", "bed!"], "grown": grown, "paid": 99 })
    );
    server.stop().await.unwrap();
}

#[tokio::test]
async fn a_closure_that_fails_or_panics_fails_its_step() {
    fn panicking(_: &Scope) -> Result<bool, StepError> {
        panic!("no such luck")
    }
    struct Unwritable;
    impl serde::Serialize for Unwritable {
        fn serialize<S: serde::Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
            panic!("cannot be written")
        }
    }
    let block = || Block::new("b").step(Step::map("c", json!("1")));
    let rows = [
        (Step::for_each("a", |_: &Scope| Ok(Unwritable), block()), "panicked: cannot be written"),
        (
            Step::when("a", |cx: &Scope| Ok(cx.output::<Priced>("price")?.cents > 1), block()),
            "there is no output of step price here",
        ),
        (Step::when("a", panicking, block()), "panicked: no such luck"),
        (
            Step::when("a", |cx: &Scope| Ok(cx.input::<Priced>()?.cents > 1), block()),
            "input.cents: invalid type: string \"x\", expected u64",
        ),
    ];
    for (step, expected) in rows {
        let server = shop().workflow(Workflow::new("w").step(step)).start().await.unwrap();
        let input = json!({ "lines": [], "cents": "x" });
        let failed = server.handle().start("w", &input).await.unwrap().result().await.unwrap_err();
        let RunError::Failed(failure) = &failed else { panic!("{failed:?}") };
        assert!(failure.message.contains(expected), "{failed}");
        assert_eq!(failure.step_id.as_deref(), Some("a"));
        server.stop().await.unwrap();
    }
}

#[tokio::test]
async fn what_a_closure_says_of_its_failure_decides_what_follows() {
    fn sold_out(_: &Scope) -> Result<Value, StepError> {
        Err(StepError::terminal("no lamps").kind("sold_out"))
    }
    fn busy(_: &Scope) -> Result<Value, StepError> {
        Err(StepError::new("come back").kind("busy"))
    }
    let retry = || Retry::attempts(2).delay(Duration::from_millis(1));
    let shown =
        || OnError::Value(Mapping(json!({ "kind": "error.kind", "attempt": "error.attempt" })));
    let block = Block::new("b").step(Step::map("c", json!("1")));
    let is_sold_out = |_: &Scope| Err(StepError::new("no lamps").kind("sold_out"));
    let calls = || Step::then("a", tool("buy")).retry(retry());
    let pays = || Step::workflow("a", "payment").retry(retry());
    let rows = [
        (Step::when("a", is_sold_out, block), "sold_out", 1),
        (calls().args(sold_out), "sold_out", 1),
        (calls().args(busy), "busy", 2),
        (pays().input(sold_out), "sold_out", 1),
        (pays().input(busy), "busy", 2),
        (calls().args(|cx: &Scope| cx.input::<u8>()), "expression", 1),
    ];
    for (index, (step, kind, attempt)) in rows.into_iter().enumerate() {
        let workflow = Workflow::new("w").step(step.on_error(shown()));
        let server = shop().workflow(workflow).start().await.unwrap();
        let run = server.handle().start("w", &json!("x")).await.unwrap();
        let expected = json!({ "kind": kind, "attempt": attempt });
        assert_eq!(run.result().await.unwrap(), expected, "row {index}");
        server.stop().await.unwrap();
    }
}

#[tokio::test]
async fn closures_undo_steps_choose_times_and_make_results() {
    let undone = Arc::new(Mutex::new(Vec::new()));
    let notes = Arc::clone(&undone);
    let undo = Tool::function("undo", "d", json!({ "type": "object" }), move |args, _| {
        notes.lock().unwrap().push(args);
        async { Ok(json!(null)) }
    });
    let why = |cx: &Scope| {
        let error: Option<Value> = cx.error()?;
        Ok(
            json!({ "room": cx.data::<Value>()?["room"], "why": error.map(|it| it["message"].clone()) }),
        )
    };
    let book = Step::then("book", map(json!({ "room": "7" })));
    let trip = Workflow::new("trip")
        .step(book.compensate(Compensation::new(tool("undo")).args(why)))
        .step(Step::run("pay", "pay"));
    let later = Workflow::new("later")
        .step(Step::sleep_until("until", |cx: &Scope| Ok(cx.input::<u64>()? + 1)))
        .result(|cx: &Scope| Ok(json!({ "slept": cx.data::<u64>()? })));
    let server = shop()
        .define_tool(undo)
        .function("pay", |_| async { Err(StepError::terminal("no money")) })
        .workflow(trip)
        .workflow(later)
        .start()
        .await
        .unwrap();
    let handle = server.handle();
    let run = handle.start("later", &json!(1)).await.unwrap();
    assert_eq!(run.result().await.unwrap(), json!({ "slept": 1 }));
    let run = handle.start("trip", &json!(null)).await.unwrap();
    assert!(matches!(run.result().await, Err(RunError::Failed(_))));
    assert_eq!(*undone.lock().unwrap(), [json!({ "room": 7, "why": "no money" })]);
    server.stop().await.unwrap();
}

#[test]
fn a_closure_reads_who_answered() {
    #[derive(Deserialize, PartialEq, Debug)]
    struct By {
        id: String,
        verified: bool,
    }
    let without = Scope(expression::Scope::new());
    assert_eq!(without.resumed_by::<By>(), Ok(None));
    assert_eq!(without.error::<Value>(), Ok(None));
    let by = Arc::new(json!({ "id": "ann", "verified": true }));
    let answered = Scope(expression::Scope::new().with("resumed_by", by));
    let ann = By { id: "ann".to_owned(), verified: true };
    assert_eq!(answered.resumed_by(), Ok(Some(ann)));
}

#[test]
fn closures_of_equal_names_are_refused() {
    let when = |id: &str| {
        let block = Block::new("b").step(Step::map(format!("{id}-in"), json!("1")));
        Step::when("a", |_: &Scope| Ok(true), block)
    };
    let refused = shop().workflow(Workflow::new("w").step(when("x")).step(when("y"))).checked();
    let refused = refused.unwrap_err().to_string();
    assert!(refused.contains("workflow w: the closure a.when is set twice: "), "{refused}");
}
