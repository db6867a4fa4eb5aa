//! A workflow with typed Rust functions: an order is priced, waits for a person when it is expensive,
//! is paid with retries, and is sent.
//!
//! ```text
//! cargo run --example orders
//! ```
//!
//! It runs with `config.toml`, including its workflows and agents; `--config FILE` names another
//! file. A small order completes at once:
//!
//! ```text
//! curl localhost:3141/workflows/order/execute -H 'content-type: application/json' \
//!     -d '{"input": {"item": "lamp", "quantity": 2}}'
//! ```
//!
//! A large one suspends until it is resumed, also across restarts of the server:
//!
//! ```text
//! curl localhost:3141/workflows/order/execute -H 'content-type: application/json' \
//!     -d '{"input": {"item": "sofa", "quantity": 3}, "options": {"executionId": "sofas"}}'
//! curl localhost:3141/workflows/order/executions/sofas/resume \
//!     -H 'content-type: application/json' -d '{"resumeData": {"approved": true}}'
//! ```
//!
//! To guard against double clicks, a resume can name its suspension (`suspension.id` of
//! what `execute`, `state`, lists and `why` show): `"options": {"suspensionId": "..."}`.

#[path = "support/arguments.rs"]
mod arguments;

use std::error::Error;
use std::time::Duration;

use greenroom::prelude::*;
use greenroom::schemars::{self, JsonSchema};
use serde::{Deserialize, Serialize};
use serde_json::json;

fn main() -> Result<(), Box<dyn Error>> {
    let prices = PriceList { lamp: 40, sofa: 900 };
    arguments::greenroom()?.data(prices).workflow(order()).serve()?;
    Ok(())
}

/// Shared with the functions that ask for it.
struct PriceList {
    lamp: u64,
    sofa: u64,
}

/// Input of the workflow. Its JSON Schema refuses other inputs before anything runs.
#[derive(Deserialize, JsonSchema)]
struct Order {
    item: String,
    #[schemars(range(min = 1))]
    quantity: u64,
}

#[derive(Serialize, JsonSchema)]
struct Priced {
    total: u64,
}

/// The answer of a person.
#[derive(Deserialize, JsonSchema)]
struct Approval {
    approved: bool,
}

#[derive(Serialize, JsonSchema)]
struct Paid {
    status: &'static str,
    receipt: Option<String>,
}

/// Expressions read the output of the previous step as `data`, of any step as `steps.<id>`, and the
/// input of the execution as `input`.
fn order() -> Workflow {
    let approval = Suspend::when("data.total > 1000")
        .reason("{{ input.quantity }} x {{ input.item }} for {{ data.total }}")
        .payload(json!({ "total": "data.total" }))
        .deadline(Duration::from_secs(48 * 3600))
        .on_timeout_resume(json!({ "approved": false }));

    Workflow::new("order")
        .name("Order")
        .purpose("Prices, approves, pays and sends an order")
        .input_type::<Order>()
        // the step carries its function, which gets the output of the previous step
        .step(Step::call("price", price).output_type::<Priced>())
        // suspends before the body if the expression holds; `resume` is the resume data then
        .step(
            Step::map(
                "approve",
                json!({ "approved": "resume.approved if resume is not none else true" }),
            )
            .suspend(approval)
            .resume_type::<Approval>(),
        )
        .step(
            Step::call("pay", pay)
                .output_type::<Paid>()
                .retry(Retry::attempts(3).delay(Duration::from_millis(200)).factor(2.0))
                .timeout(Duration::from_secs(5)),
        )
        .result(json!({ "status": "data.status", "total": "steps.price.total",
            "receipt": "data.receipt" }))
}

/// Computes the price. A terminal failure is never retried; any other one is by the retry policy.
async fn price(Data(prices): Data<PriceList>, order: Order) -> Result<Priced, StepError> {
    let each = match order.item.as_str() {
        "lamp" => prices.lamp,
        "sofa" => prices.sofa,
        other => return Err(StepError::terminal(format!("{other} is not for sale"))),
    };
    Ok(Priced { total: each * order.quantity })
}

/// Pays. A finished step never runs again. One that a crash interrupts does, with the same key, by
/// which the bank recognizes the same payment.
async fn pay(approval: Approval, step: StepContext) -> Result<Paid, StepError> {
    if !approval.approved {
        return Ok(Paid { status: "refused", receipt: None });
    }
    let order: Order = step.input_as()?;
    if step.attempt == 1 && order.item == "sofa" {
        let error = StepError::new("the bank does not answer");
        return Err(error.retry_after(Duration::from_millis(300)));
    }
    // the record carries the ids of the execution: /api/logs?executionId=... finds it
    log::info!(attempt = step.attempt; "paying {}", step.idempotency_key);
    let receipt = format!("receipt for {}", step.idempotency_key);
    Ok(Paid { status: "paid", receipt: Some(receipt) })
}
