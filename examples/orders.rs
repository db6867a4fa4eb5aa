//! A workflow with Rust functions: an order is priced, waits for a person when it is expensive,
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

use greenroom::builder::{Retry, Step, Suspend, Workflow};
use greenroom_actors::function::{StepContext, StepError, StepOutcome};
use serde_json::json;

fn main() -> Result<(), Box<dyn Error>> {
    arguments::greenroom()?
        .function("price", price)
        .function("pay", pay)
        .workflow(order())
        .serve()?;
    Ok(())
}

/// Expressions read the output of the previous step as `data`, of any step as `steps.<id>`, and the
/// input of the execution as `input`.
fn order() -> Workflow {
    let approval = Suspend::when("data.total > 1000")
        .reason("{{ input.quantity }} x {{ input.item }} for {{ data.total }}")
        .payload(json!({ "total": "data.total" }))
        .deadline(Duration::from_secs(48 * 3600))
        .on_timeout_resume(json!({ "approved": false }));
    let answer = json!({ "type": "object", "required": ["approved"],
        "properties": { "approved": { "type": "boolean" } } });

    Workflow::new("order")
        .name("Order")
        .purpose("Prices, approves, pays and sends an order")
        .input_schema(json!({ "type": "object", "required": ["item", "quantity"],
            "properties": { "item": { "type": "string" },
                "quantity": { "type": "integer", "minimum": 1 } } }))
        .step(Step::run("price", "price"))
        // suspends before the body if the expression holds; `resume` is the resume data then
        .step(
            Step::map(
                "approve",
                json!({ "approved": "resume.approved if resume is not none else true" }),
            )
            .suspend(approval)
            .resume_schema(answer),
        )
        .step(
            Step::run("pay", "pay")
                .retry(Retry::attempts(3).delay(Duration::from_millis(200)).factor(2.0))
                .timeout(Duration::from_secs(5)),
        )
        .result(json!({ "status": "data.status", "total": "steps.price.total",
            "receipt": "data.receipt" }))
}

/// Computes the price. A step may fail with any text; its retry policy decides what follows.
async fn price(step: StepContext) -> Result<StepOutcome, StepError> {
    let item = step.input["item"].as_str().ok_or("the item is missing")?;
    let quantity = step.input["quantity"].as_u64().ok_or("the quantity is missing")?;
    let each = match item {
        "lamp" => 40,
        "sofa" => 900,
        other => return Err(format!("{other} is not for sale").into()),
    };
    Ok(json!({ "total": each * quantity }).into())
}

/// Pays. A finished step never runs again. One that a crash interrupts does, with the same key, by
/// which the bank recognizes the same payment.
async fn pay(step: StepContext) -> Result<StepOutcome, StepError> {
    if step.data["approved"] != true {
        return Ok(json!({ "status": "refused", "receipt": null }).into());
    }
    if step.attempt == 1 && step.input["item"] == "sofa" {
        return Err("the bank does not answer".into());
    }
    // the record carries the ids of the execution: /api/logs?executionId=... finds it
    log::info!(attempt = step.attempt; "paying {}", step.idempotency_key);
    let receipt = format!("receipt for {}", step.idempotency_key);
    Ok(json!({ "status": "paid", "receipt": receipt }).into())
}
