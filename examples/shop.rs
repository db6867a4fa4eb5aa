//! An order as a saga, with its tests: each line is reserved, a manager approves what is expensive, the
//! order is paid and shipped. If anything fails, what was reserved and paid is given back, in reverse.
//!
//! ```text
//! cargo run --example shop
//! cargo test --example shop
//! ```
//!
//! ```text
//! curl localhost:3141/workflows/shop/execute -H 'content-type: application/json' \
//!     -d '{"input": {"lines": [{"sku": "lamp", "count": 2}, {"sku": "anvil", "count": 1}]}}'
//! ```
//!
//! Anvils are never shipped: the events of that execution show the refund and both releases.

#[path = "support/arguments.rs"]
mod arguments;

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use greenroom::builder::Compensation;
use greenroom::prelude::*;
use greenroom::schemars::{self, JsonSchema};
use serde::{Deserialize, Serialize};
use serde_json::json;

const TWO_DAYS: Duration = Duration::from_secs(48 * 3600);

fn main() -> Result<(), Box<dyn Error>> {
    register(arguments::greenroom()?, Arc::default()).serve()?;
    Ok(())
}

/// Registers the workflow and what it needs.
fn register(server: Greenroom, ledger: Arc<Ledger>) -> Greenroom {
    server.data_arc(ledger).call("release", release).call("refund", refund).workflow(shop())
}

fn shop() -> Workflow {
    let approval = Suspend::when("data.cents > 100000")
        .reason("An order for {{ data.cents / 100 }}")
        .deadline(TWO_DAYS)
        .on_timeout_resume(json!({ "approved": false }));
    let line = Block::new("line")
        .step(Step::call("reserve", reserve).compensate(Compensation::run("release")));

    Workflow::new("shop")
        .name("Shop")
        .purpose("Reserves, approves, pays and ships an order, or nothing of it")
        .input_type::<Order>()
        .step(Step::for_each("lines", json!("input.lines"), line).concurrency(3))
        .step(Step::call("price", price))
        .step(Step::call("approve", approve).suspend(approval).resume_type::<Approval>())
        .step(
            Step::call("pay", pay)
                .retry(Retry::attempts(3).delay(Duration::from_secs(60)))
                .compensate(Compensation::run("refund")),
        )
        .step(Step::call("ship", ship))
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Order {
    lines: Vec<Line>,
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Line {
    sku: String,
    count: u64,
}

#[derive(Serialize, Deserialize)]
struct Reserved {
    sku: String,
    cents: u64,
}

#[derive(Serialize, Deserialize)]
struct Bill {
    cents: u64,
}

#[derive(Deserialize, JsonSchema)]
struct Approval {
    approved: bool,
}

async fn reserve(
    Data(ledger): Data<Ledger>,
    line: Line,
    step: StepContext,
) -> Result<Reserved, StepError> {
    ledger.enter(&step.idempotency_key, &line.sku, 1);
    let each = if line.sku == "sofa" { 90_000 } else { 4_000 };
    Ok(Reserved { sku: line.sku, cents: each * line.count })
}

/// Gets the output of `reserve`.
async fn release(
    Data(ledger): Data<Ledger>,
    reserved: Reserved,
    step: StepContext,
) -> Result<(), StepError> {
    ledger.enter(&step.idempotency_key, &reserved.sku, -1);
    Ok(())
}

async fn price(lines: Vec<Reserved>) -> Result<Bill, StepError> {
    Ok(Bill { cents: lines.iter().map(|line| line.cents).sum() })
}

/// Runs after the answer, if there was a question.
async fn approve(bill: Bill, step: StepContext) -> Result<Bill, StepError> {
    match step.resume_as::<Approval>()? {
        Some(Approval { approved: false }) => Err(StepError::terminal("not approved")),
        Some(Approval { approved: true }) | None => Ok(bill),
    }
}

/// The bank recognizes the key: a payment that a crash repeats is made once.
async fn pay(Data(ledger): Data<Ledger>, bill: Bill, step: StepContext) -> Result<Bill, StepError> {
    if step.attempt == 1 {
        return Err("the bank does not answer".into());
    }
    ledger.enter(&step.idempotency_key, "money", i64::try_from(bill.cents)?);
    Ok(bill)
}

async fn refund(
    Data(ledger): Data<Ledger>,
    bill: Bill,
    step: StepContext,
) -> Result<(), StepError> {
    ledger.enter(&step.idempotency_key, "money", -i64::try_from(bill.cents)?);
    Ok(())
}

async fn ship(bill: Bill, step: StepContext) -> Result<String, StepError> {
    let order: Order = step.input_as()?;
    if order.lines.iter().any(|line| line.sku == "anvil") {
        return Err(StepError::terminal("an anvil is too heavy"));
    }
    Ok(format!("parcel for {}", bill.cents))
}

/// A stand-in for the bank and the warehouse: entries by idempotency key, so that a repetition is
/// the same entry.
#[derive(Default)]
struct Ledger {
    entries: Mutex<BTreeMap<String, (String, i64)>>,
}

impl Ledger {
    fn enter(&self, key: &str, account: &str, amount: i64) {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.insert(key.to_owned(), (account.to_owned(), amount));
    }
}

#[cfg(test)]
mod tests {
    use greenroom::testing::{self, Case, Mock, Outcome};

    use super::*;

    fn case(skus: &[&str]) -> Case {
        let lines = skus.iter().map(|sku| Line { sku: (*sku).to_owned(), count: 1 });
        Case::new("shop").input(&Order { lines: lines.collect() })
    }

    fn server() -> Greenroom {
        register(Greenroom::new(), Arc::default())
    }

    /// Returns the sums of the accounts after a case.
    fn balance(ledger: &Ledger) -> BTreeMap<String, i64> {
        let mut sums = BTreeMap::new();
        for (account, amount) in ledger.entries.lock().unwrap().values() {
            *sums.entry(account.clone()).or_default() += amount;
        }
        sums
    }

    #[test]
    fn a_small_order_is_shipped_after_a_retry() {
        let case = case(&["lamp"]).expect("result == 'parcel for 4000'");
        let Outcome { took, .. } = testing::run(case.run(server)).unwrap();
        assert_eq!(took.as_secs(), 60);
    }

    #[test]
    fn a_manager_may_take_a_day() {
        let day = Duration::from_secs(24 * 3600);
        let case = case(&["sofa", "sofa"]).answer("approve", day, &json!({ "approved": true }));
        testing::run(case.expect("result == 'parcel for 180000'").run(server)).unwrap();
    }

    #[test]
    fn without_an_answer_nothing_stays_reserved() {
        let case = case(&["sofa", "sofa"]).expect_error("not approved").expect_took(TWO_DAYS);
        testing::run(case.expect_not_ran(["pay"]).run(server)).unwrap();
    }

    /// The execution is killed between any two records; each time everything is given back once.
    #[test]
    fn an_anvil_is_refunded_and_released_whatever_crashes() {
        let books = Arc::new(Mutex::new(Arc::new(Ledger::default())));
        let current = Arc::clone(&books);
        let case = case(&["lamp", "anvil"])
            .expect_error("an anvil is too heavy")
            .check(move |_| match balance(&current.lock().unwrap()) {
                sums if sums.len() == 3 && sums.values().all(|sum| *sum == 0) => Ok(()),
                sums => Err(format!("the books do not balance: {sums:?}")),
            })
            .crash_everywhere();
        let server = move || {
            let ledger = Arc::new(Ledger::default());
            *books.lock().unwrap() = Arc::clone(&ledger);
            register(Greenroom::new(), ledger)
        };
        let outcome = testing::run(case.run(server)).unwrap();
        assert!(outcome.kills > 10, "{outcome:?}");
    }

    #[test]
    fn a_broken_truck_is_mocked() {
        let case = case(&["lamp"]).mock_step("ship", Mock::failure("no truck"));
        testing::run(case.expect_error("no truck").run(server)).unwrap();
    }
}
